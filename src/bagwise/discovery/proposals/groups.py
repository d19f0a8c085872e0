"""Contours for Edge Boxes: thin edges gathered into groups of like direction, and how well groups continue each other.

Follows Zitnick and Dollár, "Edge Boxes: Locating Object Proposals from Edges" (2014), section 3.1.
Kernels run without the interpreter's lock and keep no state.
"""

from typing import NamedTuple

import numpy as np

from bagwise._utils.compiled import loop

# A group ends when its direction has turned by this much in all.
MAX_TURN = np.pi / 2
# Groups weaker than this, in summed strength, join their neighbours.
MIN_GROUP = 0.25
# Groups further apart than this many pixels do not continue each other.
REACH = 2
# Sharpness of the affinity (γ; the paper has 2, recall is a point better with 4), and the least that counts.
SHARPNESS = 4.0
MIN_AFFINITY = 0.05


class Contours(NamedTuple):
    """Groups of edge pixels and their ties.

    Attributes
    ----------
    labels : int32 array (h, w)
        Group of each pixel, -1 for none.
    strength : float32 array (n,)
        Summed strength of each group.
    x, y : int32 arrays (n,)
        The pixel of each group nearest its mean position. Being a pixel of the group, it tells for a box whose rim
        the group does not meet whether the group is inside.
    tangent : float32 array (n,)
        Mean direction along the group, radians.
    starts : int64 array (n + 1,), neighbours : int32 array, affinity : float32 array
        Ties of group i: ``neighbours[starts[i]:starts[i + 1]]``, with affinities in (0, 1].
    """

    labels: np.ndarray
    strength: np.ndarray
    x: np.ndarray
    y: np.ndarray
    tangent: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    affinity: np.ndarray


def find_contours(thin: np.ndarray, normals: np.ndarray, min_strength: float) -> Contours:
    """Group the pixels of a thinned edge map that are at least ``min_strength``."""
    labels = group_pixels(thin, normals, np.float32(min_strength))
    labels, count = absorb_small(thin, normals, labels)
    strength, mean_x, mean_y, tangent = describe(thin, normals, labels, count)
    x, y = anchor(labels, mean_x, mean_y)
    return Contours(labels, strength, x, y, tangent, *tie(labels, mean_x, mean_y, tangent))


@loop
def _turn(a, b):
    """Angle between two undirected directions in [0, π): at most π/2."""
    difference = abs(a - b)
    return min(difference, np.float32(np.pi) - difference)


@loop
def group_pixels(thin, normals, min_strength):
    """Grow groups from the top left: always the 8-neighbour that turns least, until the turns sum to `MAX_TURN`.

    Returns
    -------
    int32 array (h, w)
        Group of each pixel, -1 for none.
    """
    height, width = thin.shape
    labels = np.full((height, width), -1, np.int32)
    frontier = np.empty(thin.size, np.int32)
    turns = np.empty(thin.size, np.float32)
    count = 0
    for y0 in range(height):
        for x0 in range(width):
            if thin[y0, x0] < min_strength or labels[y0, x0] >= 0:
                continue
            labels[y0, x0] = count
            y, x, size, total = y0, x0, 0, np.float32(0)
            while True:
                for v in range(max(y - 1, 0), min(y + 2, height)):
                    for u in range(max(x - 1, 0), min(x + 2, width)):
                        if labels[v, u] < 0 and thin[v, u] >= min_strength:
                            frontier[size] = v * width + u
                            turns[size] = _turn(normals[y, x], normals[v, u])
                            size += 1
                # Drop what has been labelled since it was seen, and find the least turn.
                best, left = -1, 0
                for k in range(size):
                    place = frontier[k]
                    if labels[place // width, place % width] >= 0:
                        continue
                    frontier[left], turns[left] = place, turns[k]
                    if best < 0 or turns[left] < turns[best]:
                        best = left
                    left += 1
                size = left
                if best < 0:
                    break
                total += turns[best]
                if total > MAX_TURN:
                    break
                y, x = frontier[best] // width, frontier[best] % width
                labels[y, x] = count
            count += 1
    return labels


@loop
def absorb_small(thin, normals, labels):
    """Give the pixels of weak groups to the neighbouring strong group of nearest direction, ring by ring.

    Returns
    -------
    labels : int32 array (h, w)
        Strong groups renumbered from 0 in order; weak ones that touch no strong group get -1.
    count : int
    """
    height, width = labels.shape
    strength = np.zeros(labels.max() + 1 if labels.size else 0, np.float32)
    for y in range(height):
        for x in range(width):
            if labels[y, x] >= 0:
                strength[labels[y, x]] += thin[y, x]
    number = np.full(len(strength), -1, np.int32)
    count = 0
    for group in range(len(strength)):
        if strength[group] > MIN_GROUP:
            number[group] = count
            count += 1
    result = np.full((height, width), -1, np.int32)
    loose = np.empty(labels.size, np.int32)
    size = 0
    for y in range(height):
        for x in range(width):
            if labels[y, x] >= 0:
                result[y, x] = number[labels[y, x]]
                if result[y, x] < 0:
                    loose[size] = y * width + x
                    size += 1
    adopted = np.empty(size, np.int32)
    while size:
        # All of a ring choose before any is adopted, so the order of pixels does not matter.
        for k in range(size):
            y, x = loose[k] // width, loose[k] % width
            adopted[k] = -1
            least = np.float32(4)
            for v in range(max(y - 1, 0), min(y + 2, height)):
                for u in range(max(x - 1, 0), min(x + 2, width)):
                    if result[v, u] >= 0 and _turn(normals[y, x], normals[v, u]) < least:
                        least = _turn(normals[y, x], normals[v, u])
                        adopted[k] = result[v, u]
        left = 0
        for k in range(size):
            if adopted[k] >= 0:
                result[loose[k] // width, loose[k] % width] = adopted[k]
            else:
                loose[left] = loose[k]
                left += 1
        if left == size:
            break
        size = left
    return result, count


@loop
def describe(thin, normals, labels, count):
    """Summed strength, mean x, mean y and mean tangent of every group, pixels weighted by strength."""
    sums = np.zeros((count, 5), np.float64)
    height, width = labels.shape
    for y in range(height):
        for x in range(width):
            group = labels[y, x]
            if group >= 0:
                weight = thin[y, x]
                sums[group, 0] += weight
                sums[group, 1] += weight * x
                sums[group, 2] += weight * y
                # Directions are undirected: average them at twice their angle.
                sums[group, 3] += weight * np.cos(2 * normals[y, x])
                sums[group, 4] += weight * np.sin(2 * normals[y, x])
    strength = sums[:, 0].astype(np.float32)
    x_mean = (sums[:, 1] / sums[:, 0]).astype(np.float32)
    y_mean = (sums[:, 2] / sums[:, 0]).astype(np.float32)
    tangent = (np.arctan2(sums[:, 4], sums[:, 3]) / 2 + np.pi / 2).astype(np.float32)
    return strength, x_mean, y_mean, tangent


@loop
def anchor(labels, mean_x, mean_y):
    """The pixel of each group nearest its mean position, the first of equals: x and y, int32 (n,)."""
    least = np.full(len(mean_x), np.float32(np.inf))
    x, y = np.zeros(len(mean_x), np.int32), np.zeros(len(mean_x), np.int32)
    for v in range(labels.shape[0]):
        for u in range(labels.shape[1]):
            group = labels[v, u]
            if group >= 0:
                away = (u - mean_x[group]) ** 2 + (v - mean_y[group]) ** 2
                if away < least[group]:
                    least[group], x[group], y[group] = away, u, v
    return x, y


@loop
def tie(labels, x, y, tangent):
    """Ties between groups that come within `REACH` pixels: |cos(θi − θij) cos(θj − θij)|^γ.

    Returns
    -------
    starts : int64 array (n + 1,), neighbours : int32 array, affinity : float32 array
        Symmetric, ordered by group and neighbour; ties under `MIN_AFFINITY` are left out.
    """
    height, width = labels.shape
    count = len(x)
    keys = np.empty(1024, np.int64)
    size = 0
    for v in range(height):
        for u in range(width):
            group = labels[v, u]
            if group < 0:
                continue
            last = group
            # Half of the window, right and below, meets every pair once.
            for dy in range(min(REACH + 1, height - v)):
                for s in range(u - REACH if dy else u + 1, u + REACH + 1):
                    if s < 0 or s >= width:
                        continue
                    other = labels[v + dy, s]
                    if other < 0 or other in (group, last):
                        continue
                    last = other
                    if size == len(keys):
                        larger = np.empty(2 * size, np.int64)
                        larger[:size] = keys
                        keys = larger
                    keys[size] = min(group, other) * np.int64(count) + max(group, other)
                    size += 1
    keys = np.unique(keys[:size])
    value = np.empty(len(keys), np.float32)
    degree = np.zeros(count + 1, np.int64)
    for k in range(len(keys)):
        i, j = keys[k] // count, keys[k] % count
        between = np.arctan2(y[j] - y[i], x[j] - x[i])
        value[k] = abs(np.cos(tangent[i] - between) * np.cos(tangent[j] - between)) ** SHARPNESS
        if value[k] >= MIN_AFFINITY:
            degree[i + 1] += 1
            degree[j + 1] += 1
    starts = np.cumsum(degree)
    neighbours = np.empty(starts[-1], np.int32)
    affinity = np.empty(starts[-1], np.float32)
    free = starts[:-1].copy()
    for k in range(len(keys)):
        if value[k] >= MIN_AFFINITY:
            i, j = keys[k] // count, keys[k] % count
            for a, b in ((i, j), (j, i)):
                neighbours[free[a]] = b
                affinity[free[a]] = value[k]
                free[a] += 1
    return starts, neighbours, affinity
