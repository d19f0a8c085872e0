"""A run as a person left it: its labels, its classes and its boxes with the decisions in their place."""

import copy
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from bagwise._utils.boxes import overlaps
from bagwise._utils.rle import decode_mask, encode_mask
from bagwise.discovery.run.folder import BOXES, RunFolder, as_table, corners
from bagwise.review.constraints import SAME_BOX
from bagwise.review.decisions import Box, ItemState, Pair

Decisions = Mapping[Pair, ItemState]


def reviewed_run(run: RunFolder, decisions: Decisions) -> RunFolder:
    """The run with the decisions in place; nothing is written.

    Parameters
    ----------
    run : RunFolder
    decisions : mapping
        (file, label) -> state.

    Returns
    -------
    RunFolder
        The same folder, whose ``images`` lack the labels that a person called wrong and have those that a person
        added, whose ``classes`` end with new ones, and whose ``boxes`` are `reviewed_boxes`.
    """
    view = copy.copy(run)
    view.manifest = {**run.manifest, "classes": [*run.classes, *added_classes(run, decisions)]}
    column = run.images.column_names.index("labels")
    labels = pa.array(reviewed_labels(run, decisions), run.images.schema.field("labels").type)
    view.images = run.images.set_column(column, "labels", labels)
    view.boxes = reviewed_boxes(run, decisions)
    return view


def reviewed_labels(run: RunFolder, decisions: Decisions) -> list[list[str]]:
    """The labels of every image, without the wrong ones and with those that a person added at the end."""
    added: dict[str, list[str]] = {}
    for (file, label), state in decisions.items():
        if state.added and state.status != "absent":
            added.setdefault(file, []).append(label)
    corrected = []
    for file, labels in zip(run.images["file"].to_pylist(), run.images["labels"].to_pylist()):
        right = [name for name in labels if (file, name) not in decisions or decisions[file, name].status != "absent"]
        corrected.append([*right, *(name for name in added.get(file, ()) if name not in right)])
    return corrected


def added_classes(run: RunFolder, decisions: Decisions) -> list[str]:
    """Classes that the run did not have, in the order in which a person first used them."""
    files = set(run.images["file"].to_pylist())
    given = (pair for pair, state in decisions.items() if state.added and state.status != "absent")
    used = (label for file, label in given if file in files)
    return [label for label in dict.fromkeys(used) if label not in run.classes]


def reviewed_boxes(run: RunFolder, decisions: Decisions) -> pa.Table:
    """The run's boxes with the person's decisions in their place.

    Accepted boxes come as objects of confidence 1, in the person's order; a rejected item or one whose label is wrong
    has none; what was not decided keeps the model's boxes.

    Returns
    -------
    pyarrow.Table
        As ``boxes.parquet``. ``score`` and ``objectness`` of an accepted box are those of the model's box it was
        made from, and 0 where a person drew it. Its mask is that of the model's box it was made from or overlaps
        best, cut off at its sides: what the page shows. A label that a person added may have it from a box of the
        image's other labels.
    """
    files = run.images["file"].to_pylist()
    image_of = {file: i + 1 for i, file in enumerate(files)}
    classes = {*run.classes, *added_classes(run, decisions)}
    decided = {
        (image_of[file], label): state
        for (file, label), state in decisions.items()
        if state.status != "open" and file in image_of and label in classes
    }
    table = run.boxes
    pairs = list(zip(table["image_id"].to_pylist(), table["label"].to_pylist()))
    is_decided = np.fromiter((pair in decided for pair in pairs), dtype=bool, count=len(pairs))
    kept = table.filter(pa.array(~is_decided))
    rows_of: dict[tuple[int, str], list[int]] = {}
    rows_of_image: dict[int, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows_of.setdefault(pair, []).append(row)
        rows_of_image.setdefault(pair[0], []).append(row)
    own = corners(table)
    score, objectness = table["score"].to_numpy(), table["objectness"].to_numpy()
    masks: list[str] = table["mask"].to_pylist()
    sizes = list(zip(run.images["height"].to_pylist(), run.images["width"].to_pylist()))
    columns: dict[str, list] = {name: [] for name in BOXES.names}
    for (image_id, label), state in decided.items():
        rows = np.array(rows_of.get((image_id, label), []), dtype=np.int64)
        for rank, box in enumerate(state.boxes or ()):
            same = rows[np.abs(own[rows] - np.array(box)).max(axis=1) < 0.01] if len(rows) else rows
            known = (float(score[same[0]]), float(objectness[same[0]])) if len(same) else (0.0, 0.0)
            offered = rows_of.get((image_id, label)) or rows_of_image.get(image_id, [])
            masked = [row for row in offered if masks[row]]
            mask = _mask_of(box, own[masked], [masks[row] for row in masked], sizes[image_id - 1])
            values = (image_id, label, rank, "object", *box, known[0], 1.0, known[1], mask)
            for name, value in zip(BOXES.names, values, strict=True):
                columns[name].append(value)
    return pa.concat_tables([kept, as_table(columns, BOXES, "boxes")])


def _mask_of(box: Box, boxes: np.ndarray, masks: list[str], size: tuple[int, int]) -> str:
    """The mask that goes with a person's box: that of the model's box most like it, inside of the person's."""
    alike = overlaps(np.array([box], dtype=np.float32), boxes)[0] if masks else np.zeros(0)
    if not masks or alike.max() < SAME_BOX:
        return ""
    best = int(alike.argmax())
    if np.abs(boxes[best] - np.array(box)).max() < 0.01:
        return masks[best]
    x1, y1, x2, y2 = (round(side) for side in box)
    inside = np.zeros(size, dtype=bool)
    inside[y1:y2, x1:x2] = decode_mask(masks[best], *size)[y1:y2, x1:x2]
    return encode_mask(inside) if inside.any() else ""
