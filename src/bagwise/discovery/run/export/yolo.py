"""YOLO: images and text labels in train and val folders, and the data.yaml that names them."""

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote as shell_quote

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise._utils.words import counted
from bagwise.discovery.run.export.collect import ExportImage, copy_images, flat_names, split, write_names
from bagwise.discovery.run.folder import RunFolder


def write_yolo(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``images/{train,val}``, ``labels/{train,val}``, ``data.yaml`` and ``files.csv``; a box per object."""
    return _write(run, images, folder, target, _box_lines, "yolo detect train", "yolo11n.pt")


def write_yolo_seg(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """The same for segmentation: of every object the outline of its largest part, or its box where it has no mask."""
    return _write(run, images, folder, target, _outline_lines, "yolo segment train", "yolo11n-seg.pt")


def _write(
    run: RunFolder,
    images: list[ExportImage],
    folder: Path,
    target: Path,
    lines_of: Callable[[ExportImage, dict[str, int]], list[str]],
    command: str,
    model: str,
) -> list[str]:
    names = flat_names([image.file for image in images])
    number = {label: index for index, label in enumerate(run.classes)}
    parts = split(images)
    for part, members in parts.items():
        copy_images(run, members, names, folder / "images" / part)
        (folder / "labels" / part).mkdir(parents=True)
        for image in members:
            path = folder / "labels" / part / f"{Path(names[image.file]).stem}.txt"
            path.write_text("".join(lines_of(image, number)), encoding="utf-8")
    # Without "path" the folders are taken from where data.yaml lies, so that the data set can be moved.
    # A JSON string is a YAML string, whatever is in the label.
    lines = ["train: images/train", "val: images/val", "", f"nc: {len(number)}", "names:"]
    lines += [f"  {index}: {json.dumps(label, ensure_ascii=False)}" for label, index in number.items()]
    write_text(folder / "data.yaml", "\n".join(lines) + "\n")
    write_names(folder / "files.csv", names)
    counts = f"{counted(len(parts['train']), 'image')} for training, {len(parts['val']):,} for validation"
    return [
        counts,
        f"train with: {command} data={shell_quote(str(target / 'data.yaml'))} model={model}",
    ]


def _outline_lines(image: ExportImage, number: dict[str, int]) -> list[str]:
    lines = []
    for name, (x1, y1, x2, y2), outlines in zip(image.names, image.boxes.tolist(), image.polygons(), strict=True):
        points = outlines[0] if outlines else np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])
        shares = (points / [image.width, image.height]).clip(0, 1).ravel()
        lines.append(f"{number[name]} " + " ".join(f"{value:.6f}" for value in shares) + "\n")
    return lines


def _box_lines(image: ExportImage, number: dict[str, int]) -> list[str]:
    lines = []
    for name, (x1, y1, x2, y2) in zip(image.names, image.boxes.tolist(), strict=True):
        centre = (x1 + x2) / 2 / image.width, (y1 + y2) / 2 / image.height
        size = (x2 - x1) / image.width, (y2 - y1) / image.height
        lines.append(f"{number[name]} " + " ".join(f"{value:.6f}" for value in (*centre, *size)) + "\n")
    return lines
