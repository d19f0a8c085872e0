"""Compiled part of `masks`: which pixels of a box are kept, and where they lie."""

import numpy as np

from bagwise._utils.compiled import loop


@loop
def quantile(values, share):
    """As `numpy.quantile`, of a picture (rows, columns)."""
    sorted_values = np.sort(values.copy().ravel())
    place = share * (len(sorted_values) - 1)
    below = int(place)
    part = place - below
    low, high = sorted_values[below], sorted_values[min(below + 1, len(sorted_values) - 1)]
    # As numpy does, from the nearer side: exact at both ends.
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


@loop
def large_parts(labels, areas, smallest, least_filled):
    """Pixels of the connected parts of a mask that are not much smaller than its largest, bool (rows, columns).

    Parameters
    ----------
    labels : int32 array (rows, columns)
        The part of each pixel; 0 belongs to none.
    areas : int32 array (n_parts,)
    smallest : float
        Share of the largest part's area from which a part is kept.
    least_filled : float
        Where less than this share of all pixels is kept, all are.
    """
    largest = 0
    for part in range(1, len(areas)):
        largest = max(largest, areas[part])
    kept = np.zeros(len(areas), np.bool_)
    total = 0
    for part in range(1, len(areas)):
        kept[part] = areas[part] >= smallest * largest
        total += areas[part] if kept[part] else 0
    pixels = np.ones(labels.shape, np.bool_)
    if total / labels.size >= least_filled:
        for r in range(labels.shape[0]):
            for c in range(labels.shape[1]):
                pixels[r, c] = kept[labels[r, c]]
    return pixels


@loop
def extent(pixels):
    """The box around what is set: left, top, and one beyond the last column and row."""
    rows, columns = pixels.shape
    left, top, right, bottom = columns, rows, 0, 0
    for r in range(rows):
        first, last = columns, -1
        for c in range(columns):
            if pixels[r, c]:
                first = c
                break
        if first == columns:
            continue
        for c in range(columns - 1, -1, -1):
            if pixels[r, c]:
                last = c
                break
        left, right = min(left, first), max(right, last + 1)
        top, bottom = min(top, r), r + 1
    return left, top, right, bottom
