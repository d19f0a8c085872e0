"""Unlabelled images and the teacher's maps of them."""

from pathlib import Path

import cv2
import numpy as np


def find_images(voc: str | Path, bsds: str | Path) -> tuple[list[Path], list[Path]]:
    """Images to learn from and images held out: every tenth of VOC2007 train is held out, BSDS500 is all learned."""
    first = sorted((Path(voc) / "JPEGImages").glob("*.jpg"))
    second = sorted((Path(bsds) / "images").rglob("*.jpg"))
    if not first or not second:
        raise ValueError(f"no images under {Path(voc) / 'JPEGImages'} or {Path(bsds) / 'images'}: check both folders")
    return [path for i, path in enumerate(first) if i % 10] + second, first[::10]


def read_image(path: Path) -> np.ndarray:
    """uint8 (h, w, 3) RGB."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError(f"{path} cannot be read as an image")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def read_target(folder: str | Path, path: Path) -> np.ndarray:
    """The teacher's map of an image: uint8 (320, 320), the whole image squeezed into a square."""
    return np.load(Path(folder) / f"{path.stem}.npy")
