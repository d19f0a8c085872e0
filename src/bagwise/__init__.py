"""Multiple-instance learning, and object discovery in photographs with image-level labels."""
