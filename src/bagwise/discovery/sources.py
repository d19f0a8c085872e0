"""From what the user has, a folder per class, a table of labels, a VOC or a COCO folder, to an `ImageSet`."""

import csv
from pathlib import Path

from .images import EXTENSIONS
from .imageset import FileFinder, ImageSet, Problem, TruthBox, clean_label, image_files
from .sources_coco import find_coco_file, read_coco
from .sources_voc import find_voc_root, read_voc

__all__ = ["ImageSet", "Problem", "TruthBox", "read_source", "read_unlabelled"]

LABEL_SEPARATORS = (";", "|")  # inside one cell; commas separate cells


def read_source(path: str | Path, labels: str | Path | None = None, split: str | None = None) -> ImageSet:
    """Read labelled photographs.

    Parameters
    ----------
    path : path
        A folder with one subfolder per class; or with ``labels``, the folder that the table's names start from;
        or a VOC folder; or a COCO folder or annotation file.
    labels : path, optional
        A table (.csv, .tsv): image, then one or more labels; or a COCO file (.json).
    split : str, optional
        Which list of a VOC or COCO folder: "train", "val", ...

    Returns
    -------
    ImageSet
        What is missing or unclear is in its ``problems``, by name.

    Raises
    ------
    ValueError
        When no labelled photograph is left; the sentence says what was looked for.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    images = _dispatch(path, Path(labels) if labels is not None else None, split)
    if not any(images.labels):
        first = f" (first problem: {images.problems[0].file}: {images.problems[0].reason})" if images.problems else ""
        raise ValueError(f"{path} holds no usable labelled image{first}")
    return images


def read_unlabelled(path: str | Path) -> ImageSet:
    """Photographs without labels: one file, or every image under a folder."""
    path = Path(path)
    if path.is_file():
        return ImageSet(path.parent, [path.name], [()], kind="images")
    if not path.is_dir():
        raise ValueError(f"{path} does not exist")
    files = [file.relative_to(path).as_posix() for file in image_files(path)]
    if not files:
        raise ValueError(f"{path} holds no image ({', '.join(sorted(EXTENSIONS))})")
    return ImageSet(path, files, [()] * len(files), kind="images")


def _dispatch(path: Path, labels: Path | None, split: str | None) -> ImageSet:
    if labels is not None:
        if not labels.is_file():
            raise ValueError(f"{labels} does not exist")
        if split is not None:
            raise ValueError("a split belongs to a VOC or COCO folder; a table of labels has none")
        return read_coco(labels, path) if labels.suffix.lower() == ".json" else _read_table(path, labels)
    if path.is_file():
        if path.suffix.lower() != ".json":
            raise ValueError(f"{path} is a file: pass a folder, or a COCO .json file")
        return read_coco(path, path.parent)
    voc = find_voc_root(path)
    if voc is not None:
        return read_voc(voc, split)
    coco = find_coco_file(path, split)
    if coco is not None:
        return read_coco(coco, path)
    if split is not None:
        raise ValueError(f"{path} is neither a VOC nor a COCO folder, so it has no split {split!r}")
    return _read_folders(path)


def _read_folders(root: Path) -> ImageSet:
    """The first folder below the root is the class; deeper ones do not matter."""
    files: list[str] = []
    labels: list[tuple[str, ...]] = []
    problems: list[Problem] = []
    for path in image_files(root):
        relative = path.relative_to(root)
        if len(relative.parts) == 1:
            problems.append(Problem(relative.name, "lies outside the class folders, so it has no label"))
        else:
            files.append(relative.as_posix())
            labels.append((clean_label(relative.parts[0]),))
    filled = {file.split("/")[0] for file in files}
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in filled:
            problems.append(Problem(folder.name, "this class folder holds no image"))
    return ImageSet(root, files, labels, problems=problems)


def _read_table(root: Path, table: Path) -> ImageSet:
    """Image name first, labels in the other cells; a repeated image collects the labels of all its rows."""
    try:
        text = table.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{table} is not UTF-8 text: save it as UTF-8") from None
    first_line = text.partition("\n")[0]
    delimiter = max(",\t;", key=first_line.count)
    rows = list(csv.reader(text.splitlines(), delimiter=delimiter))
    finder, problems = FileFinder(root), []
    labels: dict[str, set[str]] = {}
    for number, row in enumerate(rows, start=1):
        name = row[0].strip() if row else ""
        if not any(cell.strip() for cell in row) or (number == 1 and Path(name).suffix.lower() not in EXTENSIONS):
            continue  # an empty line, or the heading
        try:
            file = finder.find(name)
        except ValueError as error:
            problems.append(Problem(name or f"row {number} of {table.name}", str(error)))
            continue
        found = {clean_label(part) for cell in row[1:] for part in _split_cell(cell)} - {""}
        if not found:
            problems.append(Problem(file, f"row {number} of {table.name} gives it no label"))
            continue
        labels.setdefault(file, set()).update(found)
    return ImageSet(root, list(labels), [tuple(sorted(v)) for v in labels.values()], problems=problems, kind="csv")


def _split_cell(cell: str) -> list[str]:
    for separator in LABEL_SEPARATORS:
        cell = cell.replace(separator, "\n")
    return cell.split("\n")
