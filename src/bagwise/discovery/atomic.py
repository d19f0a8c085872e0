"""Kept for its importers; see bagwise.atomic."""

from bagwise.atomic import replacing, write_text

__all__ = ["replacing", "write_text"]
