"""A run from images to boxes, its folder and its exports."""
