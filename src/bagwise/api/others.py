"""To and from other packages: supervision and FiftyOne, where they are installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from bagwise._utils.rle import decode_mask
from bagwise.discovery.run.export.fiftyone import relative
from bagwise.discovery.run.folder import RunFolder, corners


def needed(package: str) -> Any:
    """Import a package that is no part of bagwise's dependencies, or say how to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"this needs the package '{package}', which is not installed: pip install {package}"
        ) from error


def _by_image(run: RunFolder, boxes: pa.Table) -> list[tuple[dict[str, Any], pa.Table]]:
    """Every image with its rows of the table of boxes."""
    ids = boxes["image_id"].to_numpy()
    return [(image, boxes.filter(pa.array(ids == image["image_id"]))) for image in run.images.to_pylist()]


def to_supervision(run: RunFolder, boxes: pa.Table, masks: bool) -> dict[str, Any]:
    """``supervision.Detections`` by the path of the image, with masks if wished."""
    detections = needed("supervision").Detections
    number = {label: index for index, label in enumerate(run.classes)}
    found = {}
    for image, rows in _by_image(run, boxes):
        names = rows["label"].to_pylist()
        found[str(run.image_path(image["file"]))] = detections(
            xyxy=corners(rows).reshape(-1, 4),
            mask=_masks(rows, image["width"], image["height"]) if masks else None,
            confidence=rows["confidence"].to_numpy(),
            class_id=np.array([number[name] for name in names], dtype=int),
            data={"class_name": np.array(names, dtype=str)},
        )
    return found


def _masks(rows: pa.Table, width: int, height: int) -> np.ndarray:
    """Masks of shape (n, height, width); an object that has none gets its box."""
    masks = np.zeros((len(rows), height, width), dtype=bool)
    for mask, text, box in zip(masks, rows["mask"].to_pylist(), corners(rows)):
        if text:
            mask[:] = decode_mask(text, height, width)
        else:
            x1, y1, x2, y2 = box.round().astype(int)
            mask[max(y1, 0) : y2, max(x1, 0) : x2] = True
    return masks


def to_fiftyone(run: RunFolder, boxes: pa.Table, name: str | None, field: str) -> Any:
    """A ``fiftyone.Dataset`` with the images, their labels and the objects."""
    fo = needed("fiftyone")
    dataset = fo.Dataset(name)
    samples = []
    for image, rows in _by_image(run, boxes):
        sample = fo.Sample(filepath=str(run.image_path(image["file"]).resolve()))
        labels = [fo.Classification(label=label) for label in image["labels"]]
        sample["labels"] = fo.Classifications(classifications=labels)
        shares = relative(corners(rows), image["width"], image["height"])
        columns = rows["label"].to_pylist(), shares, rows["confidence"].to_pylist()
        sample[field] = fo.Detections(
            detections=[
                fo.Detection(label=each, bounding_box=box, confidence=sure) for each, box, sure in zip(*columns)
            ]
        )
        samples.append(sample)
    dataset.add_samples(samples)
    return dataset


def from_fiftyone(samples: Any, field: str = "ground_truth") -> tuple[list[str], list[list[str] | None]]:
    """Images and labels of a FiftyOne data set or view, for `bagwise.discover`.

    Parameters
    ----------
    samples : fiftyone.Dataset, fiftyone.DatasetView or iterable of samples
    field : str, default="ground_truth"
        A classification, several, or detections, whose classes are then taken.

    Returns
    -------
    images : list of str
    labels : list of (list of str or None)
        None for a sample that nobody labelled.

    Examples
    --------
    >>> import bagwise
    >>> images, labels = bagwise.from_fiftyone(dataset)  # doctest: +SKIP
    >>> found = bagwise.discover(images, labels)  # doctest: +SKIP
    """
    images, labels = [], []
    for sample in samples:
        images.append(sample["filepath"])
        labels.append(_labels(sample[field]))
    return images, labels


def _labels(value: Any) -> list[str] | None:
    if value is None:
        return None
    for several in ("classifications", "detections"):
        if hasattr(value, several):
            return sorted({str(item.label) for item in getattr(value, several)})
    return None if value.label is None else [str(value.label)]
