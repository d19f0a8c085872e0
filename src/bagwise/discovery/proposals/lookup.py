"""Look-up tables of an image's contours, made once, from which the search of Edge Boxes scores boxes.

What calls the search's loops stays in one file with them: numba's cache sees changes of the file alone.
"""

from typing import NamedTuple

import numpy as np

from bagwise._utils.compiled import loop
from bagwise.discovery.proposals.groups import Contours

# Scores fall with the half-perimeter to this power (κ): larger boxes hold more edges by chance.
KAPPA = 1.5


class Index(NamedTuple):
    """Look-up tables that make the score of a box cheap.

    Attributes
    ----------
    groups, edges : float64 arrays (h + 1, w + 1)
        Integral images of group strength, placed at the group's pixel, and of pixel strength.
    row_runs, column_runs : int32 arrays
        Groups met along every row (column), each run of equal labels once.
    row_place : int32 array (h, w + 1), column_place : int32 array (w, h + 1)
        Runs of the row (column) up to pixel c, exclusive, are those before ``place[r, c]``.
    norms : float64 array (h + w + 1,)
        What the score of a box of this width and height together is multiplied by.
    """

    groups: np.ndarray
    edges: np.ndarray
    row_runs: np.ndarray
    row_place: np.ndarray
    column_runs: np.ndarray
    column_place: np.ndarray
    norms: np.ndarray


def build_index(thin: np.ndarray, contours: Contours) -> Index:
    """Look-up tables for `score_box`."""
    labels = contours.labels
    groups, edges = _integrals(thin, labels, contours.strength, contours.x, contours.y)
    row_runs, row_place = _runs(labels)
    column_runs, column_place = _runs(np.ascontiguousarray(labels.T))
    return Index(groups, edges, row_runs, row_place, column_runs, column_place, _norms(sum(labels.shape)))


@loop
def _integrals(thin, labels, strength, x, y):
    """Integral images of group strength and of the strength of pixels that are in a group."""
    height, width = labels.shape
    groups, edges = np.zeros((height + 1, width + 1)), np.zeros((height + 1, width + 1))
    # No two groups share a pixel.
    for group in range(len(strength)):
        groups[y[group] + 1, x[group] + 1] = strength[group]
    group_column, edge_column = np.zeros(width), np.zeros(width)
    for v in range(height):
        group_sum, edge_sum = 0.0, 0.0
        for u in range(width):
            group_column[u] += groups[v + 1, u + 1]
            group_sum += group_column[u]
            groups[v + 1, u + 1] = group_sum
            if labels[v, u] >= 0:
                edge_column[u] += thin[v, u]
            edge_sum += edge_column[u]
            edges[v + 1, u + 1] = edge_sum
    return groups, edges


@loop
def _runs(labels):
    height, width = labels.shape
    runs = np.empty(labels.size, np.int32)
    place = np.empty((height, width + 1), np.int32)
    size = 0
    for y in range(height):
        last = -1
        place[y, 0] = size
        for x in range(width):
            if labels[y, x] >= 0 and labels[y, x] != last:
                runs[size] = labels[y, x]
                size += 1
            last = labels[y, x]
            place[y, x + 1] = size
    return runs[:size].copy(), place


@loop
def _norms(largest):
    """A power takes as long as a whole box that is given up early."""
    norms = np.empty(largest + 1)
    norms[0] = 0.0
    for together in range(1, largest + 1):
        norms[together] = (together / 2.0) ** -KAPPA
    return norms
