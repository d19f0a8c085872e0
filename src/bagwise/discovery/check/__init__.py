"""What to know about a set of images before a run."""
