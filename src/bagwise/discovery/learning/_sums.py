"""Compiled part of `evidence`: sums over boxes, read off a table of sums."""

import numpy as np

from bagwise._utils.compiled import loop


@loop
def sums_between(table, x, y):
    """Sum of a picture between x[i, 0] and x[i, 1], y[i, 0] and y[i, 1], in cells, float64 (n,); see `box_sums`."""
    rows, columns = table.shape[0] - 1, table.shape[1] - 1
    sums = np.empty(len(x))
    corner = np.empty((2, 2))
    for i in range(len(x)):
        for a in range(2):
            r = min(max(int(y[i, a]), 0), rows - 1)
            v = y[i, a] - r
            for b in range(2):
                c = min(max(int(x[i, b]), 0), columns - 1)
                u = x[i, b] - c
                # Sums grow linearly across a cell, so between corners they are read off in proportion.
                top = table[r, c] * (1 - u) + table[r, c + 1] * u
                low = table[r + 1, c] * (1 - u) + table[r + 1, c + 1] * u
                corner[a, b] = top * (1 - v) + low * v
        sums[i] = corner[1, 1] - corner[0, 1] - corner[1, 0] + corner[0, 0]
    return sums
