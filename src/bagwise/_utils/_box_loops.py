"""Compiled part of `boxes`: comparing one box with many."""

import numpy as np

from bagwise._utils.compiled import loop, part_of_loop


@part_of_loop
def _area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


@part_of_loop
def _overlap(box, other):
    """Intersection over union, in the precision of the boxes; 1 of two boxes of no area."""
    nothing = box[0] - box[0]
    wide = max(min(box[2], other[2]) - max(box[0], other[0]), nothing)
    high = max(min(box[3], other[3]) - max(box[1], other[1]), nothing)
    common = wide * high
    together = _area(box) + _area(other) - common
    return common / together if together > nothing else nothing + 1


@loop
def greedy(boxes, order, threshold, limit):
    """Rows that are kept, of ``order`` from the best to the worst; see `suppress`."""
    kept = np.empty(min(limit, len(order)), np.int64)
    count = 0
    for row in order:
        if count == len(kept):
            break
        free = True
        for k in range(count):
            if _overlap(boxes[kept[k]], boxes[row]) > threshold:
                free = False
                break
        if free:
            kept[count] = row
            count += 1
    return kept[:count].copy()


@loop
def likest(boxes, others):
    """For each box the first of the others that it overlaps most, int64 (n,), and how much, (n,)."""
    which = np.zeros(len(boxes), np.int64)
    overlap = np.zeros(len(boxes), boxes.dtype)
    for i in range(len(boxes)):
        for k in range(len(others)):
            found = _overlap(boxes[i], others[k])
            if found > overlap[i]:
                which[i], overlap[i] = k, found
    return which, overlap
