"""A run judged by boxes that people drew."""
