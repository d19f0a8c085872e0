"""Labels given in Python: a mapping, a list beside a list of images, or a data frame."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bagwise.discovery.sources.imageset import ImageSet, Labelling
from bagwise.discovery.sources.rows import Row, Rows, read_rows

Paths = Sequence[str | os.PathLike[str]]


def common_root(images: Paths) -> Path:
    """The deepest folder that all images lie in."""
    if not images:
        raise ValueError("the list of images is empty")
    return Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in images]))


def read_given(images: str | os.PathLike[str] | Paths, labels: Any) -> ImageSet:
    """Images with labels from Python.

    Parameters
    ----------
    images : path or sequence of paths
        A folder that the names in ``labels`` start from, or the images themselves.
    labels : mapping, sequence or pandas.DataFrame
        For every image a label or several: by name, in the order of ``images``, or in the columns that a table of
        labels has (see `read_source`). An empty list says that an image shows none of the classes.
    """
    if isinstance(images, (str, os.PathLike)):
        root, names = Path(images), None
        if not root.is_dir():
            raise ValueError(f"{root} is not a folder")
    else:
        names = [os.path.abspath(path) for path in images]
        root = common_root(images)
    if hasattr(labels, "to_dict") and hasattr(labels, "columns"):
        return read_rows(_frame_rows(labels), root, "python")
    if not isinstance(labels, Mapping):
        if names is None:
            raise ValueError("a list of labels needs a list of images beside it, not a folder: pass a mapping")
        labels = list(labels)
        if len(labels) != len(names):
            raise ValueError(f"there are {len(names)} images and {len(labels)} labels: give one entry for each image")
        labels = dict(zip(names, labels))
    found = Labelling(root.resolve())
    for number, (name, given) in enumerate(labels.items()):
        found.add(os.fspath(name), _several(given), f"entry {number} of the labels")
    return found.image_set("python")


def _several(given: str | Iterable[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str) else [str(label) for label in given]


def _frame_rows(frame: Any) -> Rows:
    """A data frame as rows of text, with the row's index from 0 for messages."""
    columns = [str(name) for name in frame.columns]
    rows: list[tuple[int, Row]] = []
    for number, values in enumerate(frame.itertuples(index=False, name=None)):
        rows.append((number, {name: _cell(value) for name, value in zip(columns, values)}))
    return Rows("the data frame", columns, True, rows)


def _cell(value: Any) -> str | list[str]:
    if isinstance(value, (list, tuple, set)):
        return [str(item) for item in value]
    missing = value is None or value != value  # NaN is not itself
    return "" if missing else str(value)
