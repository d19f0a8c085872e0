"""Boxes that people drew."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TruthBox:
    """A box drawn by a person. Flags that the annotation does not give are None."""

    label: str
    box: tuple[float, float, float, float]  # x1, y1, x2, y2; zero-based, exclusive at the end
    difficult: bool = False
    truncated: bool | None = None
    pose: str | None = None
