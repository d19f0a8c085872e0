"""One-to-one matching of the pixels of two boundary maps within a distance."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def match_pixels(y, x, numbers, dy, dx, size):  # pragma: no cover - machine code
    """Maximum matching of predicted pixels with truth pixels.

    Parameters
    ----------
    y, x : int arrays (n,)
        Predicted pixels, in the coordinates of ``numbers``.
    numbers : int32 array
        Number of the truth pixel at each place, -1 elsewhere, with a border as wide as the largest offset.
    dy, dx : int arrays (k,)
        Offsets to look at, nearest first.
    size : int
        Number of truth pixels.

    Returns
    -------
    int32 array (n,)
        Number of the partner, -1 for none.
    """
    count, near = len(y), len(dy)
    partner = np.full(count, -1, np.int32)
    owner = np.full(size, -1, np.int32)
    # Greedy, nearest pairs first: leaves few pixels for the search.
    for k in range(near):
        for i in range(count):
            if partner[i] < 0:
                j = numbers[y[i] + dy[k], x[i] + dx[k]]
                if j >= 0 and owner[j] < 0:
                    partner[i] = j
                    owner[j] = i
    # Breadth-first search of an alternating path from each pixel left over. What a failed search has visited can be on
    # no later path either, so its marks stay: all failures together cost one pass over the pairs.
    seen = np.zeros(size, np.bool_)
    came_from = np.empty(size, np.int32)
    visited = np.empty(size, np.int32)
    queue = np.empty(count, np.int32)
    for start in range(count):
        if partner[start] >= 0:
            continue
        head, tail, marks, end = 0, 1, 0, -1
        queue[0] = start
        while head < tail and end < 0:
            i = queue[head]
            head += 1
            for k in range(near):
                j = numbers[y[i] + dy[k], x[i] + dx[k]]
                if j < 0 or seen[j]:
                    continue
                seen[j] = True
                visited[marks] = j
                marks += 1
                came_from[j] = i
                if owner[j] < 0:
                    end = j
                    break
                queue[tail] = owner[j]
                tail += 1
        if end < 0:
            continue
        while end >= 0:
            i = came_from[end]
            before = partner[i]
            partner[i] = end
            owner[end] = i
            end = before
        for k in range(marks):
            seen[visited[k]] = False
    return partner


def match(predicted: np.ndarray, truth: np.ndarray, radius: float) -> np.ndarray:
    """Pair as many pixels of two maps as can be paired one to one within ``radius``.

    Parameters
    ----------
    predicted, truth : bool arrays (h, w)

    Returns
    -------
    bool array (h, w)
        The pixels of ``predicted`` that have a partner.
    """
    height, width = truth.shape
    reach = int(radius)
    numbers = np.full((height + 2 * reach, width + 2 * reach), -1, np.int32)
    size = int(truth.sum())
    numbers[reach : reach + height, reach : reach + width][truth] = np.arange(size, dtype=np.int32)
    dy, dx = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1)
    order = np.argsort(np.hypot(dy, dx), kind="stable")
    order = order[np.hypot(dy, dx)[order] <= radius]
    y, x = np.nonzero(predicted)
    partner = match_pixels(y + reach, x + reach, numbers, dy[order], dx[order], size)
    matched = np.zeros_like(predicted)
    matched[y, x] = partner >= 0
    return matched
