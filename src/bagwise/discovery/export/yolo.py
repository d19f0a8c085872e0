"""YOLO: images and text labels in train and val folders, and the data.yaml that names them."""

import json
from pathlib import Path
from shlex import quote as shell_quote

from bagwise.atomic import write_text
from bagwise.discovery.export.collect import ExportImage, copy_images, flat_names, split, write_names
from bagwise.discovery.runfolder import RunFolder
from bagwise.discovery.words import counted


def write_yolo(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``images/{train,val}``, ``labels/{train,val}``, ``data.yaml`` and ``files.csv``."""
    names = flat_names([image.file for image in images])
    number = {label: index for index, label in enumerate(run.classes)}
    parts = split(images)
    for part, members in parts.items():
        copy_images(run, members, names, folder / "images" / part)
        (folder / "labels" / part).mkdir(parents=True)
        for image in members:
            path = folder / "labels" / part / f"{Path(names[image.file]).stem}.txt"
            path.write_text("".join(_lines(image, number)), encoding="utf-8")
    # Without "path" the folders are taken from where data.yaml lies, so that the data set can be moved.
    # A JSON string is a YAML string, whatever is in the label.
    lines = ["train: images/train", "val: images/val", "", f"nc: {len(number)}", "names:"]
    lines += [f"  {index}: {json.dumps(label, ensure_ascii=False)}" for label, index in number.items()]
    write_text(folder / "data.yaml", "\n".join(lines) + "\n")
    write_names(folder / "files.csv", names)
    counts = f"{counted(len(parts['train']), 'image')} for training, {len(parts['val']):,} for validation"
    return [
        counts,
        f"train with: yolo detect train data={shell_quote(str(target / 'data.yaml'))} model=yolo11n.pt",
    ]


def _lines(image: ExportImage, number: dict[str, int]) -> list[str]:
    lines = []
    for name, (x1, y1, x2, y2) in zip(image.names, image.boxes.tolist(), strict=True):
        centre = (x1 + x2) / 2 / image.width, (y1 + y2) / 2 / image.height
        size = (x2 - x1) / image.width, (y2 - y1) / image.height
        lines.append(f"{number[name]} " + " ".join(f"{value:.6f}" for value in (*centre, *size)) + "\n")
    return lines
