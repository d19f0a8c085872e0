"""PASCAL VOC folders: the XML annotations of 2007 and later, and the text annotations of 2006."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from bagwise.discovery.sources.images import EXTENSIONS
from bagwise.discovery.sources.imageset import ImageSet, Problem, clean_label, valid_box
from bagwise.metrics.truth import TruthBox

IMAGE_FOLDERS = ("JPEGImages", "PNGImages")
LABEL_2006 = re.compile(
    r"(?:PAS)?(?P<name>[^\s\"]+?)(?P<pose>Left|Right|Frontal|Rear)?(?P<truncated>Trunc)?(?P<difficult>Difficult)?"
)
BOX_2006 = re.compile(
    r'Bounding box for object \d+ "(?P<label>[^"]+)" \(Xmin, Ymin\) - \(Xmax, Ymax\) : '
    r"\((?P<x1>\d+), (?P<y1>\d+)\) - \((?P<x2>\d+), (?P<y2>\d+)\)"
)


def find_voc_root(path: Path) -> Path | None:
    """The folder that holds Annotations and images: ``path`` itself, or its one subfolder VOC<year>."""
    for folder in (path, *sorted(path.glob("VOC[0-9]*"))):
        if (folder / "Annotations").is_dir() and _image_folder(folder) is not None:
            return folder
    return None


def read_voc(root: Path, split: str | None) -> ImageSet:
    """Read a VOC folder.

    Parameters
    ----------
    root : Path
        Holds ``Annotations``, ``JPEGImages`` or ``PNGImages``, and ``ImageSets`` when a split is asked for.
    split : str or None
        Name of a list in ``ImageSets/Main`` or ``ImageSets``, such as "train"; None takes every annotation.
    """
    names = _names_of_split(root, split) if split else sorted({p.stem for p in (root / "Annotations").iterdir()})
    truth: dict[str, list[TruthBox]] = {}
    problems: list[Problem] = []
    for name in names:
        image = _image_of(root, name)
        if image is None:
            folder = _image_folder(root)
            problems.append(Problem(name, f"there is no image of this name in {folder.name if folder else root}"))
            continue
        try:
            boxes = _read_annotation(root, name)
        except (ValueError, OSError, expat.ExpatError) as error:
            problems.append(Problem(image, f"its annotation cannot be read: {error}"))
            continue
        truth[image] = [box for box in boxes if box is not None]
        if len(truth[image]) < len(boxes):
            problems.append(Problem(image, "a box of its annotation encloses nothing and is left out"))
    return ImageSet.from_truth(root, truth, problems, "voc")


def _image_folder(root: Path) -> Path | None:
    return next((root / name for name in IMAGE_FOLDERS if (root / name).is_dir()), None)


def _image_of(root: Path, name: str) -> str | None:
    folder = _image_folder(root)
    if folder is None:
        return None
    for extension in (".jpg", ".png", *sorted(EXTENSIONS)):
        if (folder / f"{name}{extension}").is_file():
            return f"{folder.name}/{name}{extension}"
    return None


def _names_of_split(root: Path, split: str) -> list[str]:
    folders = [folder for folder in (root / "ImageSets" / "Main", root / "ImageSets") if folder.is_dir()]
    for folder in folders:
        file = folder / f"{split}.txt"
        if Path(split).name == split and file.is_file():
            lines = (line.split() for line in file.read_text(encoding="utf-8-sig").splitlines())
            # A list of one class has a second column: 1 present, 0 difficult, -1 absent.
            return list(dict.fromkeys(line[0] for line in lines if line and line[1:2] != ["-1"]))
    known = sorted({p.stem for folder in folders for p in folder.glob("*.txt") if "_" not in p.stem})
    raise ValueError(f"{root} has no split {split!r}; its ImageSets holds: {', '.join(known) or 'none'}")


def _read_annotation(root: Path, name: str) -> list[TruthBox | None]:
    xml, text = (root / "Annotations" / f"{name}{extension}" for extension in (".xml", ".txt"))
    if xml.is_file():
        return [_xml_object(element) for element in parse_xml(xml.read_bytes()).iter("object")]
    if text.is_file():
        return [_text_object(match) for match in BOX_2006.finditer(text.read_text(encoding="latin-1"))]
    raise ValueError(f"there is no {xml.name} or {text.name}")


def parse_xml(data: bytes) -> ET.Element:
    """Parse XML that may come from a stranger: a document type, the way to entity bombs, is refused."""
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate()

    def refuse(*_: object) -> NoReturn:
        raise ValueError("it declares a document type, which annotations do not need and attacks do")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def _xml_object(element: ET.Element) -> TruthBox | None:
    label = clean_label(element.findtext("name") or "")
    corners = element.find("bndbox")
    if not label or corners is None:
        raise ValueError("an object has no name or no bndbox")
    x1, y1, x2, y2 = (float(corners.findtext(tag) or "nan") for tag in ("xmin", "ymin", "xmax", "ymax"))
    box = valid_box((x1 - 1, y1 - 1, x2, y2))
    if box is None:
        return None
    truncated, pose = element.findtext("truncated"), (element.findtext("pose") or "").strip()
    return TruthBox(
        label,
        box,
        difficult=(element.findtext("difficult") or "0").strip() == "1",
        truncated=None if truncated is None else truncated.strip() == "1",
        pose=pose if pose and pose != "Unspecified" else None,
    )


def _text_object(match: re.Match[str]) -> TruthBox | None:
    parts = LABEL_2006.fullmatch(match["label"])
    if parts is None:
        raise ValueError(f"unknown object label {match['label']!r}")
    box = valid_box((int(match["x1"]) - 1, int(match["y1"]) - 1, int(match["x2"]), int(match["y2"])))
    if box is None:
        return None
    return TruthBox(
        parts["name"], box, difficult=bool(parts["difficult"]), truncated=bool(parts["truncated"]), pose=parts["pose"]
    )
