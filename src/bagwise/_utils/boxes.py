"""Arithmetic of boxes: overlap, and keeping one box of many that overlap."""

import numpy as np


def areas(boxes: np.ndarray) -> np.ndarray:
    """Area of each box (n, 4) in square pixels: (n,)."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def overlaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of every box (n, 4) with every other (m, 4): (n, m)."""
    common = intersections(boxes, others)
    return common / (areas(boxes)[:, None] + areas(others)[None, :] - common)


def intersections(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Common area of every box (n, 4) with every other (m, 4): (n, m)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.maximum(high - low, 0).prod(axis=2)


def suppress(boxes: np.ndarray, scores: np.ndarray, threshold: float, limit: int) -> np.ndarray:
    """Greedy non-maximum suppression.

    Parameters
    ----------
    boxes : array (n, 4)
    scores : array (n,)
    threshold : float
        A box that overlaps a better one by more than this is dropped.
    limit : int
        Most boxes to keep.

    Returns
    -------
    int array (k,)
        Rows that are kept, best first; of equal scores the earlier row wins.
    """
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(order) and len(kept) < limit:
        best = order[0]
        kept.append(int(best))
        order = order[overlaps(boxes[best : best + 1], boxes[order])[0] <= threshold]
        order = order[order != best]
    return np.array(kept, dtype=np.int64)
