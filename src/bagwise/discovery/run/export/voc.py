"""PASCAL VOC: an XML file per image, one-based inclusive whole pixels, images copied under flat names."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise._utils.words import counted
from bagwise.discovery.run.export.collect import ExportImage, copy_images, flat_names, split, write_names
from bagwise.discovery.run.folder import RunFolder


def write_voc(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``JPEGImages``, ``Annotations``, ``ImageSets/Main`` and ``files.csv``."""
    names = flat_names([image.file for image in images])
    copy_images(run, images, names, folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    for image in images:
        name = names[image.file]
        tree = ET.ElementTree(_annotation(image, name, target.name))
        ET.indent(tree)
        tree.write(folder / "Annotations" / f"{Path(name).stem}.xml", encoding="utf-8")
    parts = split(images)
    for part, members in (*parts.items(), ("trainval", images)):
        lines = [Path(names[image.file]).stem + "\n" for image in members]
        write_text(folder / "ImageSets" / "Main" / f"{part}.txt", "".join(lines))
    write_names(folder / "files.csv", names)
    return [f"{counted(len(parts['train']), 'image')} for training, {len(parts['val']):,} for validation"]


def whole_pixels(boxes: np.ndarray, width: int, height: int) -> np.ndarray:
    """Zero-based corners with the end excluded to VOC's: from 1, end included, at least one pixel."""
    limits = np.array([width, height])
    first = np.clip(np.rint(boxes[:, :2]) + 1, 1, limits)
    last = np.clip(np.rint(boxes[:, 2:]), first, limits)
    return np.hstack([first, last]).astype(int)


def _annotation(image: ExportImage, name: str, folder: str) -> ET.Element:
    root = ET.Element("annotation")
    _add(root, "folder", folder)
    _add(root, "filename", name)
    source = ET.SubElement(root, "source")
    _add(source, "database", "bagwise")
    size = ET.SubElement(root, "size")
    for tag, value in (("width", image.width), ("height", image.height), ("depth", 3)):
        _add(size, tag, value)
    _add(root, "segmented", 0)
    pixels = whole_pixels(image.boxes, image.width, image.height).tolist()
    for label, box in zip(image.names, pixels, strict=True):
        item = ET.SubElement(root, "object")
        _add(item, "name", label)
        for tag, text in (("pose", "Unspecified"), ("truncated", "0"), ("difficult", "0")):
            _add(item, tag, text)
        corners = ET.SubElement(item, "bndbox")
        for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True):
            _add(corners, tag, value)
    return root


def _add(parent: ET.Element, tag: str, value: object) -> None:
    ET.SubElement(parent, tag).text = str(value)
