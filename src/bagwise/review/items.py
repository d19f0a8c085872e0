"""What there is to check: one item for each label of each image, with its boxes in order of preference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bagwise.discovery.run.folder import BOXES, RunFolder, as_table, corners
from bagwise.review.decisions import Box, ItemState, Pair


@dataclass(frozen=True)
class Suggestion:
    """The model's word on one item: the objects it found, and what it would try next.

    For a label that a person added there is no word yet; the candidates are then those of the image's other labels.
    """

    objects: tuple[Box, ...]
    candidates: tuple[Box, ...]
    masks: tuple[str, ...]  # of the candidates; empty where there is none


class _ModelBoxes(NamedTuple):
    """Rows ``start[i] : start[i + 1]`` belong to item i, in order of rank; items added since have none."""

    start: np.ndarray
    boxes: np.ndarray
    is_object: np.ndarray
    confidence: np.ndarray
    masks: pa.Array

    def rows(self, item: int) -> slice:
        """The rows of an item."""
        return slice(self.start[item], self.start[item + 1]) if item + 1 < len(self.start) else slice(0, 0)


class Items:
    """Every (image, label) pair of a run, numbered from 0 in the order of images, then of classes.

    Labels that a person gave to images follow, in the order of `add`: a number, once given, stays.

    Parameters
    ----------
    run : RunFolder
    given : sequence of (file, label), default ()
        Labels that a person gave; those that the images have not from their source become items of their own.

    Attributes
    ----------
    classes : list of str
        Those of the run, then those that a person added.
    image_id : list of int
    label_index : list of int
        Position in the classes.
    pairs : list of (file, label)
    number : dict
        The way back: (file, label) -> item.
    n_of_run : int
        How many of the items the run had by itself.
    """

    def __init__(self, run: RunFolder, given: Sequence[Pair] = ()):
        self.classes = list(run.classes)
        self.files: list[str] = run.images["file"].to_pylist()
        self.width: list[int] = run.images["width"].to_pylist()
        self.height: list[int] = run.images["height"].to_pylist()
        self._image_of = {file: i for i, file in enumerate(self.files, start=1)}
        labels = run.images["labels"].to_pylist()
        named = {(file, label) for file, names in zip(self.files, labels) for label in names}
        boxed = {
            (self.files[image_id - 1], label)
            for image_id, label in zip(run.boxes["image_id"].to_pylist(), run.boxes["label"].to_pylist())
        }
        # A refit finds boxes for a label that a person added; by that the label does not become one of the source.
        added = [pair for pair in given if pair not in named and pair[0] in self._image_of]
        self._position = position = {label: i for i, label in enumerate(self.classes)}
        self._of_image: dict[int, list[int]] = {}
        own = [pair for pair in (named | boxed) - set(added) if pair[1] in position]
        self.image_id: list[int] = []
        self.label_index: list[int] = []
        self.pairs: list[Pair] = []
        self.number: dict[Pair, int] = {}
        for pair in [*sorted(own, key=lambda pair: (self._image_of[pair[0]], position[pair[1]])), *added]:
            self.add(pair)
        self.n_of_run = len(self.pairs) - len(added)
        self._model = self._read_boxes(run.boxes)

    def add(self, pair: Pair) -> int:
        """The number of a pair, which becomes an item if it is none yet."""
        if pair not in self.number:
            if pair[1] not in self._position:
                self._position[pair[1]] = len(self.classes)
                self.classes.append(pair[1])
            image = self._image_of[pair[0]]
            self.image_id.append(image)
            self.label_index.append(self._position[pair[1]])
            self.pairs.append(pair)
            self._of_image.setdefault(image, []).append(len(self.pairs) - 1)
            self.number[pair] = len(self.pairs) - 1  # last: who finds the number finds the rest
        return self.number[pair]

    def has_image(self, file: str) -> bool:
        return file in self._image_of

    def is_listed(self, item: int, state: ItemState) -> bool:
        """Whether the image has the label: a label that was added and taken back is none."""
        return item < self.n_of_run or state.added

    def __len__(self) -> int:
        return len(self.pairs)

    def size(self, item: int) -> tuple[int, int]:
        """Width and height of the item's image."""
        image = self.image_id[item] - 1
        return self.width[image], self.height[image]

    def _read_boxes(self, boxes: pa.Table) -> _ModelBoxes:
        boxes = as_table(boxes, BOXES, "boxes")
        count = len(self)
        named = zip(boxes["image_id"].to_pylist(), boxes["label"].to_pylist())
        # A box of no item, such as one for a label that another program added, goes to the end, past all of them.
        item = np.array([self.number.get((self.files[image - 1], label), count) for image, label in named], dtype=int)
        order = np.lexsort((boxes["rank"].to_numpy(), item))
        start = np.searchsorted(item[order], np.arange(count + 1))
        corner = corners(boxes)[order].astype(float)
        filled = start[1:] > start[:-1]
        confidence = np.zeros(count)
        confidence[filled] = boxes["confidence"].to_numpy()[order][start[:-1][filled]]
        is_object = (boxes["kind"].to_numpy(zero_copy_only=False) == "object")[order]
        masks = boxes["mask"].combine_chunks().take(pa.array(order))
        return _ModelBoxes(start, corner.round(2), is_object, confidence, masks)

    def confidence(self, item: int) -> float:
        """How sure the model is of its first box; 0 where it has none."""
        model = self._model
        return float(model.confidence[item]) if item < len(model.confidence) else 0.0

    def suggestion(self, item: int) -> Suggestion:
        """The model's word on an item."""
        model = self._model
        rows = model.rows(item)
        if rows.start == rows.stop:
            found: dict[Box, str] = {}
            for other in self._of_image[self.image_id[item]]:
                rows = model.rows(other)
                found |= zip(map(_as_box, model.boxes[rows].tolist()), model.masks[rows].to_pylist())
            return Suggestion((), tuple(found), tuple(found.values()))
        boxes = [_as_box(box) for box in model.boxes[rows].tolist()]
        objects = tuple(box for box, is_object in zip(boxes, model.is_object[rows]) if is_object)
        # An answer is there even where the run marked none: the first box of all.
        return Suggestion(objects or tuple(boxes[:1]), tuple(boxes), tuple(model.masks[rows].to_pylist()))

    def first_shown(self, item: int, state: ItemState) -> Box | None:
        """The first of `shown_boxes`, quickly: the list of all items asks for every one of them."""
        if state.boxes is not None:
            return state.boxes[0] if state.boxes else None
        model = self._model
        rows = model.rows(item)
        if rows.start == rows.stop:
            return None
        row = rows.start + int(model.is_object[rows].argmax())
        return _as_box(model.boxes[row].tolist())

    def shown_boxes(self, item: int, state: ItemState) -> tuple[Box, ...]:
        """What the page draws: the person's boxes, or else the model's."""
        return self.suggestion(item).objects if state.boxes is None else state.boxes


def _as_box(values: list[float]) -> Box:
    x1, y1, x2, y2 = values
    return x1, y1, x2, y2
