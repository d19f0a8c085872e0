"""From labelled photographs to boxes around the objects."""
