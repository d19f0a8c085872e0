"""COCO annotation files."""

import json
from pathlib import Path
from typing import Any

from bagwise.discovery.sources.imageset import FileFinder, ImageSet, Problem, clean_label, valid_box
from bagwise.metrics.truth import TruthBox


def find_coco_file(root: Path, split: str | None) -> Path | None:
    """The annotation file of a COCO root: annotations/instances_SPLIT.json, or the only file that could be it."""
    folder = root / "annotations"
    if split:
        named = [folder / f"instances_{split}.json", folder / f"{split}.json", root / split / "_annotations.coco.json"]
        return next((file for file in named if file.is_file()), None)
    files = sorted(folder.glob("*.json")) or [f for f in (root / "_annotations.coco.json",) if f.is_file()]
    if len(files) > 1:
        splits = ", ".join(file.stem.removeprefix("instances_") for file in files)
        raise ValueError(f"{root} has {len(files)} annotation files: choose one with --split ({splits})")
    return files[0] if files else None


def read_coco(document: Any, file: Path, root: Path) -> ImageSet:
    """Read COCO annotations, with boxes or without.

    Parameters
    ----------
    document : dict
        What the file holds: ``images``, ``annotations`` and ``categories``. An annotation without a ``bbox`` is a
        label of its image as a whole.
    file : Path
        For messages.
    root : Path
        Where the images are; their file names are looked up from here.
    """
    if not isinstance(document, dict):
        raise ValueError(
            f"{file} is not a COCO file: it should hold images, annotations and categories "
            "(a file with an object for each image in a line of its own is called .jsonl)"
        )
    names = {c["id"]: clean_label(str(c["name"])) for c in _rows(document, "categories", ("id", "name"), file)}
    finder, problems = FileFinder(root), []
    found: dict[Any, str] = {}
    for image in _rows(document, "images", ("id", "file_name"), file):
        try:
            found[image["id"]] = finder.find(str(image["file_name"]))
        except ValueError as error:
            problems.append(Problem(str(image["file_name"]), str(error)))
    known = {image["id"] for image in document["images"]}
    truth: dict[str, list[TruthBox]] = {name: [] for name in found.values()}
    boxless: dict[str, set[str]] = {}
    for annotation in _rows(document, "annotations", ("image_id", "category_id"), file):
        image_id, label = annotation["image_id"], names.get(annotation["category_id"])
        if image_id not in known or label is None:
            what = f"annotation {annotation.get('id', '?')}"
            problems.append(Problem(what, "its image_id or category_id is not in the file"))
        elif image_id in found and not annotation.get("bbox"):
            boxless.setdefault(found[image_id], set()).add(label)
        elif image_id in found:
            _add_box(truth, found[image_id], label, annotation, problems)
    return ImageSet.from_truth(root, truth, problems, "coco", boxless)


def _add_box(
    truth: dict[str, list[TruthBox]], name: str, label: str, annotation: dict[str, Any], problems: list[Problem]
) -> None:
    try:
        x, y, width, height = map(float, annotation["bbox"])
        box = valid_box((x, y, x + width, y + height))
    except (KeyError, TypeError, ValueError):
        box = None
    if box is None:
        problems.append(Problem(name, f"annotation {annotation.get('id', '?')} has no usable bbox and is left out"))
        return
    # A crowd box is no single object: like a difficult one it neither makes the image positive nor counts.
    truth[name].append(TruthBox(label, box, difficult=bool(annotation.get("iscrowd", 0))))


def load_json(file: Path) -> Any:
    """What a JSON file holds, or one sentence on why it cannot be read."""
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from None


def _rows(document: dict[str, Any], key: str, fields: tuple[str, ...], file: Path) -> list[dict[str, Any]]:
    rows = document.get(key)
    if not isinstance(rows, list) or not all(isinstance(r, dict) and _are_plain(r, fields) for r in rows):
        raise ValueError(f"{file} is not a COCO file: '{key}' should be a list of objects with {' and '.join(fields)}")
    return rows


def _are_plain(row: dict[str, Any], fields: tuple[str, ...]) -> bool:
    """Whether a row has these fields, each a number or a name and not a list of things."""
    return all(isinstance(row.get(field), (int, float, str)) for field in fields)
