"""BSDS500 as laid out by BAGWISE_DATA/bsds500: images, and one boundary map per annotator.

``images/{train,val,test}/ID.jpg``; ``boundaries/{train,val,test}/ID.npz`` with ``bits`` (packed along the last axis)
and ``shape`` (annotators, height, width).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import distance_transform_edt


@dataclass(frozen=True)
class Example:
    """One image: ``image`` uint8 (h, w, 3) RGB and ``boundaries`` bool (annotators, h, w)."""

    name: str
    image: np.ndarray
    boundaries: np.ndarray


def load_split(root: str | Path, *splits: str) -> list[Example]:
    """Read the named splits, ordered by split and name."""
    examples = []
    for split in splits:
        for path in sorted((Path(root) / "images" / split).glob("*.jpg")):
            packed = np.load(Path(root) / "boundaries" / split / f"{path.stem}.npz")
            boundaries = np.unpackbits(packed["bits"], axis=-1, count=packed["shape"][2]).astype(bool)
            with Image.open(path) as image:
                examples.append(Example(path.stem, np.asarray(image.convert("RGB")), boundaries))
    if not examples:
        raise ValueError(f"no images of {' or '.join(splits)} under {Path(root) / 'images'}: is this BSDS500?")
    return examples


def held_out(examples: list[Example]) -> tuple[list[Example], list[Example]]:
    """Split into what to train on and every sixth example, on which variants are compared."""
    return [e for i, e in enumerate(examples) if i % 6 != 0], examples[::6]


def soft_target(boundaries: np.ndarray, sigma: float) -> np.ndarray:
    """How strongly the annotators together call each pixel a boundary.

    Parameters
    ----------
    boundaries : bool array (annotators, h, w)
    sigma : float
        Width, in pixels, of the bell each annotator's line is given: hands differ by a pixel or two.

    Returns
    -------
    float32 array (h, w) in [0, 1]
    """
    bells = [np.exp(-(distance_transform_edt(~lines) ** 2) / (2 * sigma**2)) for lines in boundaries if lines.any()]
    return (sum(bells, np.zeros(boundaries.shape[1:])) / len(boundaries)).astype(np.float32)
