"""FiftyOne's image classification data sets (``fiftyone.types.FiftyOneImageClassificationDataset``).

::

    DATASET/data/NAME.jpg
    DATASET/labels.json      {"classes": ["cat", "dog"], "labels": {"NAME": 0, "OTHER": [0, 1]}}

A label is a number, a place in ``classes``, or, where there are none, the class itself; or an object with such a
``label`` in it; or a list of these. ``null`` is an image that nobody labelled.
"""

from pathlib import Path
from typing import Any

from bagwise.discovery.sources.imageset import ImageSet, Labelling


def find_fiftyone_file(root: Path) -> Path | None:
    """The labels of a FiftyOne folder, if it is one."""
    if (root / "samples.json").is_file() and (root / "metadata.json").is_file():
        raise ValueError(
            f"{root} is a FiftyOneDataset, whose samples may have labels of many kinds: export it as "
            "FiftyOneImageClassificationDataset, or pass bagwise.from_fiftyone(dataset, field) to bagwise.discover"
        )
    file = root / "labels.json"
    return file if file.is_file() and (root / "data").is_dir() else None


def is_fiftyone(document: Any) -> bool:
    """Whether a JSON document looks like FiftyOne's labels."""
    return isinstance(document, dict) and isinstance(document.get("labels"), dict)


def read_fiftyone(document: dict[str, Any], file: Path, root: Path) -> ImageSet:
    """Read FiftyOne's classification labels.

    Parameters
    ----------
    document : dict
        What labels.json holds.
    file : Path
        For messages.
    root : Path
        Where the images are.
    """
    classes = document.get("classes") or []
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"{file} is not FiftyOne's: 'classes' should be a list of names")
    found = Labelling(root)
    for name, target in document["labels"].items():
        where = f"the entry {name!r} of {file.name}"
        found.add(name, None if target is None else _labels(target, classes, where), where)
    return found.image_set("fiftyone")


def _labels(target: Any, classes: list[str], where: str) -> list[str]:
    if isinstance(target, list):
        return [label for item in target for label in _labels(item, classes, where)]
    if isinstance(target, dict):
        inner = target.get("label", target.get("classifications"))
        return [] if inner is None else _labels(inner, classes, where)
    if isinstance(target, str):
        return [target]
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(classes):
        return [classes[target]]
    raise ValueError(f"{where} is {target!r}, which is none of the {len(classes)} classes")
