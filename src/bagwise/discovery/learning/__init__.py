"""One model per class, and where it sees its object."""
