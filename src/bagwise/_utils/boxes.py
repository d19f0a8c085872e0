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
    # Compiled code is imported on first use.
    from bagwise._utils._box_loops import greedy

    return greedy(boxes, np.argsort(-scores, kind="stable"), boxes.dtype.type(threshold), limit)


def likest(boxes: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each box (n, 4) the first of the others (m, 4), of one precision, that it overlaps most, and how much.

    Returns
    -------
    which : int64 array (n,)
        Zero where it overlaps none.
    overlap : array (n,)
    """
    # Compiled code is imported on first use.
    from bagwise._utils import _box_loops

    return _box_loops.likest(boxes, others)
