"""Methods that score instances."""
