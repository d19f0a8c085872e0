"""The demo images: 81 public-domain images in nine classes, embedded in the package.

All of them carry boxes placed by eye around whole objects, so that what `bagwise discover` finds without boxes
can be scored. What counts as a whole object of each class is written under ``info``, ``rules`` in the file of boxes.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class DemoPhotos:
    """Where the demo images lie, and whom to thank for them.

    Attributes
    ----------
    root : Path
        Folder with one subfolder of images per class: an input of ``bagwise discover``.
    truth : Path
        COCO file with the boxes of every image; file names are relative to `root`.
        Annotations carry an extra key ``difficult`` (0 or 1).
    credits : list of dict
        One entry per image, with the keys ``file`` (relative to `root`), ``author``, ``source`` and ``licence``.
    """

    root: Path
    truth: Path
    credits: list[dict[str, str]]


def load_demo_photos() -> DemoPhotos:
    """Locate the embedded demo images, their boxes and their credits.

    Returns
    -------
    DemoPhotos
        Paths into the installed package: read them, do not write there.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its data files.
    """
    # Start from the top package: it is a regular directory whatever `bagwise.datasets` re-exports.
    root = Path(str(files("bagwise").joinpath("datasets", "photos")))
    truth, credits_file = root / "truth.json", root / "CREDITS.csv"
    for needed in (truth, credits_file):
        if not needed.is_file():
            raise FileNotFoundError(
                f"The demo images are incomplete: {needed} is missing; reinstall bagwise as ordinary files."
            )
    with credits_file.open(encoding="utf-8", newline="") as lines:
        return DemoPhotos(root=root, truth=truth, credits=list(csv.DictReader(lines)))
