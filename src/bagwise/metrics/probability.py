"""How far probabilities can be trusted."""

import numpy as np
from numpy.typing import ArrayLike


def expected_calibration_error(y_true: ArrayLike, probability: ArrayLike, n_bins: int = 10) -> float:
    """Mean distance between how sure the answers are and how often they are right.

    Answers are sorted by their confidence, the probability of the label that was chosen, into bins of equal width;
    the distance of each bin counts by the number of answers in it (Guo et al. 2017).

    Parameters
    ----------
    y_true : (n,) array of int
        Column of the true class of each answer.
    probability : (n, n_classes) array
    n_bins : int, default=10

    Returns
    -------
    float
        0 for perfect calibration, at most 1.

    Examples
    --------
    >>> from bagwise.metrics.probability import expected_calibration_error
    >>> certain = [[0.0, 1.0], [0.0, 1.0]]  # sure twice, right once
    >>> expected_calibration_error([1, 0], certain)
    0.5
    """
    truth, p = np.asarray(y_true), np.asarray(probability, dtype=np.float64)
    confidence = p.max(axis=1)
    right = (p.argmax(axis=1) == truth).astype(np.float64)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gap = np.bincount(bins, weights=right - confidence, minlength=n_bins)
    return float(np.abs(gap).sum() / len(truth))
