"""From what the user has, a folder per class, a table of labels, a VOC, COCO or FiftyOne folder, to an `ImageSet`."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from bagwise.discovery.sources.coco import find_coco_file, load_json, read_coco
from bagwise.discovery.sources.fiftyone import find_fiftyone_file, is_fiftyone, read_fiftyone
from bagwise.discovery.sources.given import common_root, read_given
from bagwise.discovery.sources.huggingface import find_metadata
from bagwise.discovery.sources.images import EXTENSIONS
from bagwise.discovery.sources.imageset import (
    NONE_OF_THESE,
    ImageSet,
    Problem,
    clean_label,
    image_files,
    plain_label,
)
from bagwise.discovery.sources.tables import read_table
from bagwise.discovery.sources.voc import find_voc_root, read_voc
from bagwise.metrics.truth import TruthBox

__all__ = ["ImageSet", "Problem", "TruthBox", "read_source", "read_unlabelled"]

PARTS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation", "dev"})
UNLABELLED = "_unlabeled"  # the folder that FiftyOne's export of class folders has for the others
Images = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_source(
    path: Images,
    labels: Any = None,
    split: str | None = None,
    negative: Collection[str] | None = None,
) -> ImageSet:
    """Read labelled images.

    Parameters
    ----------
    path : path or sequence of paths
        A folder with one subfolder per class; a VOC, COCO or FiftyOne folder; Hugging Face's image folder; a COCO
        file; or, with ``labels``, the folder that the names in them start from, or the images themselves.
    labels : path, mapping, sequence or pandas.DataFrame, optional
        A table (.csv, .tsv, .jsonl) with a column of images and either columns called label, labels, class and so on
        (several labels in a cell are separated by commas, semicolons or bars) or one column for each class with 0
        or 1 in it; or a COCO or FiftyOne file (.json). From Python also a mapping of names to labels, one entry for
        each of a sequence of images, or a data frame with the columns of a table.
    split : str, optional
        Which part of a VOC, COCO or Hugging Face folder: "train", "val", ...
    negative : collection of str, optional
        Labels (or class folders) that mean "none of these". By default "none", "none of these", "negative",
        "negatives", "background" and "no label"; pass an empty collection to take all labels for classes.

    Returns
    -------
    ImageSet
        What is missing or unclear is in its ``problems``, by name.

    Raises
    ------
    ValueError
        When no labelled image is left; the sentence says what was looked for.
    """
    if labels is not None and not isinstance(labels, (str, os.PathLike)):
        images = read_given(path, labels)
        shown = "the images given"
    elif isinstance(path, (str, os.PathLike)):
        if not Path(path).exists():
            raise ValueError(f"{path} does not exist")
        images = _dispatch(Path(path), Path(labels) if labels is not None else None, split)
        shown = str(path)
    elif labels is None:
        raise ValueError("images given one by one need labels: pass a list, a mapping or a table of them")
    else:
        images = _dispatch(common_root(path), Path(labels), split)
        shown = str(images.root)
    if labels is not None and isinstance(labels, (str, os.PathLike)):
        images = _with_folders_of_negatives(images, negative)
    images = images.with_negatives(negative)
    if not any(images.labels):
        first = f" (first problem: {images.problems[0].file}: {images.problems[0].reason})" if images.problems else ""
        advice = ": put the images of each class into a folder with its name, or give a table of labels"
        raise ValueError(f"{shown} holds no usable labelled image{first}{advice if labels is None else ''}")
    return images


def read_unlabelled(path: Images) -> ImageSet:
    """Images without labels: one file, every image under a folder, or the ones given."""
    if not isinstance(path, (str, os.PathLike)):
        root = common_root(path)
        files = [Path(os.path.abspath(file)).relative_to(root).as_posix() for file in path]
        return ImageSet(root, list(dict.fromkeys(files)), [()] * len(set(files)), kind="images")
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
        return _read_json(labels, path) if labels.suffix.lower() == ".json" else read_table(labels, path)
    if path.is_file():
        if path.suffix.lower() != ".json":
            raise ValueError(f"{path} is a file: pass a folder, or a COCO .json file")
        return _read_json(path, path.parent)
    voc = find_voc_root(path)
    if voc is not None:
        return read_voc(voc, split)
    coco = find_coco_file(path, split)
    if coco is not None:
        return _read_json(coco, path)
    metadata = find_metadata(path, split)
    if metadata is not None:
        return read_table(metadata, metadata.parent)
    part = path / split if split is not None else path
    fiftyone = find_fiftyone_file(part)
    if fiftyone is not None:
        return _read_json(fiftyone, part / "data")
    if split is not None and (Path(split).name != split or not part.is_dir()):
        raise ValueError(f"{path} has no split {split!r}: it is no VOC or COCO folder, and has no folder of that name")
    return _read_folders(part)


def _read_json(file: Path, root: Path) -> ImageSet:
    document = load_json(file)
    return read_fiftyone(document, file, root) if is_fiftyone(document) else read_coco(document, file, root)


def _with_folders_of_negatives(images: ImageSet, negative: Collection[str] | None) -> ImageSet:
    """With the images in a folder called none and the like, of which the file of labels says nothing."""
    names = {plain_label(name) for name in (NONE_OF_THESE if negative is None else negative)}
    folders = [path for path in sorted(images.root.iterdir()) if path.is_dir() and plain_label(path.name) in names]
    found = {file.relative_to(images.root).as_posix(): path.name for path in folders for file in image_files(path)}
    for file in images.files:
        found.pop(file, None)
    if not found:
        return images
    files, labels = [*images.files, *found], [*images.labels, *((name,) for name in found.values())]
    unsure = [*images.unsure, *[()] * len(found)]
    return ImageSet(images.root, files, labels, images.truth, images.problems, images.kind, unsure)


def _read_folders(root: Path) -> ImageSet:
    """The first folder below the root is the class; deeper ones do not matter."""
    files: list[str] = []
    labels: list[tuple[str, ...]] = []
    problems: list[Problem] = []
    for path in image_files(root):
        relative = path.relative_to(root)
        if len(relative.parts) == 1:
            problems.append(Problem(relative.name, "lies outside the class folders, so it has no label"))
        elif relative.parts[0] == UNLABELLED:
            problems.append(Problem(relative.as_posix(), f"lies in {UNLABELLED}, so it has no label"))
        else:
            files.append(relative.as_posix())
            labels.append((clean_label(relative.parts[0]),))
    filled = {file.split("/")[0] for file in files}
    if filled and {name.casefold() for name in filled} <= PARTS and all(file.count("/") > 1 for file in files):
        if len(filled) > 1:
            parts = ", ".join(sorted(filled))
            raise ValueError(f"{root} has the parts {parts} with folders of their own: choose one with --split")
        return _read_folders(root / filled.pop())
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in {*filled, UNLABELLED}:
            problems.append(Problem(folder.name, "this class folder holds no image"))
    return ImageSet(root, files, labels, problems=problems)
