"""What there is to check: one item for each label of each image, with its boxes in order of preference."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bagwise.discovery.runfolder import BOXES, RunFolder, as_table, corners
from bagwise.review.decisions import Box, ItemState, Pair


@dataclass(frozen=True)
class Suggestion:
    """The model's word on one item: the objects it found, and what it would try next."""

    objects: tuple[Box, ...]
    candidates: tuple[Box, ...]


class _ModelBoxes(NamedTuple):
    """Rows ``start[i] : start[i + 1]`` belong to item i, in order of rank."""

    start: np.ndarray
    boxes: np.ndarray
    is_object: np.ndarray
    confidence: np.ndarray


class Items:
    """Every (image, label) pair of a run, numbered from 0 in the order of images, then of classes.

    Attributes
    ----------
    image_id : int32 array (n_items,)
    label_index : int32 array (n_items,)
        Position in the run's classes.
    pairs : list of (file, label)
    number : dict
        The way back: (file, label) -> item.
    """

    def __init__(self, run: RunFolder):
        self.classes = run.classes
        self.files: list[str] = run.images["file"].to_pylist()
        self.width: list[int] = run.images["width"].to_pylist()
        self.height: list[int] = run.images["height"].to_pylist()
        position = {label: i for i, label in enumerate(self.classes)}
        boxed = set(zip(run.boxes["image_id"].to_pylist(), run.boxes["label"].to_pylist()))
        named = {
            (image_id, label)
            for image_id, labels in zip(run.images["image_id"].to_pylist(), run.images["labels"].to_pylist())
            for label in labels
            if label in position
        }
        ordered = sorted((image_id, position[label]) for image_id, label in boxed | named)
        self.image_id = np.array([image_id for image_id, _ in ordered], dtype=np.int32)
        self.label_index = np.array([label for _, label in ordered], dtype=np.int32)
        self.pairs: list[Pair] = [(self.files[image_id - 1], self.classes[label]) for image_id, label in ordered]
        self.number = {pair: i for i, pair in enumerate(self.pairs)}
        self.read_boxes(run.boxes)

    def __len__(self) -> int:
        return len(self.pairs)

    def size(self, item: int) -> tuple[int, int]:
        """Width and height of the item's image."""
        image = int(self.image_id[item]) - 1
        return self.width[image], self.height[image]

    def read_boxes(self, boxes: pa.Table) -> None:
        """Take the model's boxes, at first and again after a refit."""
        boxes = as_table(boxes, BOXES, "boxes")
        position = {label: i for i, label in enumerate(self.classes)}
        code = boxes["label"].combine_chunks().dictionary_encode()
        names = code.dictionary.to_pylist()
        label = np.array([position[name] for name in names], dtype=np.int64)[code.indices.to_numpy()]
        image = boxes["image_id"].to_numpy().astype(np.int64)
        order = np.lexsort((boxes["rank"].to_numpy(), label, image))
        own = self.image_id.astype(np.int64) * len(self.classes) + self.label_index
        of_row = np.searchsorted(own, (image * len(self.classes) + label)[order])
        start = np.searchsorted(of_row, np.arange(len(self) + 1))
        corner = corners(boxes)[order].astype(float)
        filled = start[1:] > start[:-1]
        confidence = np.zeros(len(self))
        confidence[filled] = boxes["confidence"].to_numpy()[order][start[:-1][filled]]
        is_object = (boxes["kind"].to_numpy(zero_copy_only=False) == "object")[order]
        # One assignment: a request that reads meanwhile sees the old boxes or the new ones, never a mixture.
        self._model = _ModelBoxes(start, corner.round(2), is_object, confidence)

    def confidence(self, item: int) -> float:
        """How sure the model is of its first box; 0 where it has none."""
        return float(self._model.confidence[item])

    def suggestion(self, item: int) -> Suggestion:
        """The model's word on an item."""
        model = self._model
        rows = slice(model.start[item], model.start[item + 1])
        boxes = [_as_box(box) for box in model.boxes[rows].tolist()]
        objects = tuple(box for box, found in zip(boxes, model.is_object[rows]) if found)
        # An answer is there even where the run marked none: the first box of all.
        return Suggestion(objects or tuple(boxes[:1]), tuple(boxes))

    def first_shown(self, item: int, state: ItemState) -> Box | None:
        """The first of `shown_boxes`, quickly: the list of all items asks for every one of them."""
        if state.boxes is not None:
            return state.boxes[0] if state.boxes else None
        model = self._model
        start, stop = model.start[item], model.start[item + 1]
        if start == stop:
            return None
        row = start + int(model.is_object[start:stop].argmax())
        return _as_box(model.boxes[row].tolist())

    def shown_boxes(self, item: int, state: ItemState) -> tuple[Box, ...]:
        """What the page draws: the person's boxes, or else the model's."""
        return self.suggestion(item).objects if state.boxes is None else state.boxes


def _as_box(values: list[float]) -> Box:
    x1, y1, x2, y2 = values
    return x1, y1, x2, y2


def reviewed_boxes(run: RunFolder, decisions: dict[Pair, ItemState]) -> pa.Table:
    """The run's boxes with the person's decisions in their place.

    Accepted boxes come as objects of confidence 1, in the person's order; a rejected item has none; what was not
    decided keeps the model's boxes.

    Returns
    -------
    pyarrow.Table
        As ``boxes.parquet``. ``score`` and ``objectness`` of an accepted box are those of the model's box it was
        made from, and 0 where a person drew it.
    """
    files = run.images["file"].to_pylist()
    image_of = {file: i + 1 for i, file in enumerate(files)}
    decided = {
        (image_of[file], label): state
        for (file, label), state in decisions.items()
        if state.status != "open" and file in image_of and label in run.classes
    }
    table = run.boxes
    pairs = list(zip(table["image_id"].to_pylist(), table["label"].to_pylist()))
    is_decided = np.fromiter((pair in decided for pair in pairs), dtype=bool, count=len(pairs))
    kept = table.filter(pa.array(~is_decided))
    rows_of: dict[tuple[int, str], list[int]] = {}
    for row in np.flatnonzero(is_decided).tolist():
        rows_of.setdefault(pairs[row], []).append(row)
    own = corners(table)
    score, objectness = table["score"].to_numpy(), table["objectness"].to_numpy()
    columns: dict[str, list] = {name: [] for name in BOXES.names}
    for (image_id, label), state in decided.items():
        rows = np.array(rows_of.get((image_id, label), []), dtype=np.int64)
        for rank, box in enumerate(state.boxes or ()):
            same = rows[np.abs(own[rows] - np.array(box)).max(axis=1) < 0.01] if len(rows) else rows
            known = (float(score[same[0]]), float(objectness[same[0]])) if len(same) else (0.0, 0.0)
            for name, value in zip(BOXES.names, (image_id, label, rank, "object", *box, known[0], 1.0, known[1])):
                columns[name].append(value)
    return pa.concat_tables([kept, as_table(columns, BOXES, "boxes")])
