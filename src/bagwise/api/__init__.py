"""Objects in images from Python: what `bagwise.discover` and `bagwise.detect` are, and what they return."""

from bagwise.api.calls import detect, discover
from bagwise.api.others import from_fiftyone
from bagwise.api.result import Discovery, FoundBox

__all__ = ["Discovery", "FoundBox", "detect", "discover", "from_fiftyone"]
