"""FiftyOne: ``data`` and ``labels.json`` of a ``fiftyone.types.FiftyOneImageDetectionDataset``."""

import json
from pathlib import Path
from shlex import quote as shell_quote

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise.discovery.run.export.collect import ExportImage, copy_images, flat_names, write_names
from bagwise.discovery.run.folder import RunFolder


def write_fiftyone(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``data/NAME.EXT``, ``labels.json`` and ``files.csv``.

    A box is left, top, width and height in shares of the image; a class is its place in ``classes``.
    """
    names = flat_names([image.file for image in images])
    copy_images(run, images, names, folder / "data")
    number = {label: index for index, label in enumerate(run.classes)}
    labels = {Path(names[image.file]).stem: _objects(image, number) for image in images}
    write_text(folder / "labels.json", json.dumps({"classes": run.classes, "labels": labels}, ensure_ascii=False))
    write_names(folder / "files.csv", names)
    load = "fiftyone datasets create --type fiftyone.types.FiftyOneImageDetectionDataset --dataset-dir"
    return [f"load with: {load} {shell_quote(str(target))}"]


def relative(boxes: np.ndarray, width: int, height: int) -> list[list[float]]:
    """Corners in pixels to FiftyOne's boxes: left, top, width and height, in shares of the image."""
    shares = boxes.reshape(-1, 4).astype(np.float64) / [width, height, width, height]
    return np.hstack([shares[:, :2], shares[:, 2:] - shares[:, :2]]).round(6).tolist()


def _objects(image: ExportImage, number: dict[str, int]) -> list[dict[str, object]]:
    boxes = relative(image.boxes, image.width, image.height)
    return [
        {"label": number[label], "bounding_box": box, "confidence": round(sure, 6)}
        for label, box, sure in zip(image.names, boxes, image.confidence.tolist(), strict=True)
    ]
