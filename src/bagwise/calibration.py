"""From scores to probabilities: a logistic curve fitted to out-of-fold scores of the training bags.

A score of a bag that the model was fitted on says little about bags it has never seen. So the training bags are put
into folds, each fold is scored by a model fitted on the others, and a logistic curve with two parameters is fitted to
those scores, one for each binary problem (Platt 1999). Where nothing was learned, its slope is as good as zero and
every probability is the share of the positive class.

How a classifier uses it: `calibrate` returns an array (n_problems, 2), slope and offset of each problem. A fitted
classifier that keeps it as ``_calibration`` gets, from the base class, ``decision_function`` =
``calibrated(scores, _calibration)``, which are log-odds; ``predict_proba`` is their logistic function (divided by
the sum over classes, where there are more than two), and ``predict`` decides at one half.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

FloatArray = NDArray[np.float64]

N_FOLDS = 5
# A curve that fell with the score would say that the model has learned the opposite: that is chance. The smallest
# slope moves no probability by more than a millionth, but keeps the order of the bags.
SMALLEST_SLOPE = 1e-6
NEWTON_STEPS = 100
# Scores that are more deviations than this from the median are in a tail.
FAR = 5.0
# How many deviations lie between the lowest and the highest tenth of a normal distribution.
BETWEEN_TENTHS = 2.563


def fold_of_each_bag(
    targets: NDArray[np.bool_], n_folds: int = N_FOLDS, random_state: int = 0
) -> NDArray[np.int64] | None:
    """Put bags into folds, the bags of each class spread evenly over them.

    Parameters
    ----------
    targets : (n_bags, n_problems) bool array
        One column of targets for each binary problem, as `BagClassifier._fit` gets them.
    n_folds : int, default=5
        Where a class has fewer bags, there are as many folds as it has bags.
    random_state : int, default=0

    Returns
    -------
    (n_bags,) the fold of each bag, or None where a class has a single bag: without it there would be nothing to learn.
    """
    classes, code = np.unique(targets, axis=0, return_inverse=True)
    code = code.ravel()
    counts = np.bincount(code, minlength=len(classes))
    n_folds = min(n_folds, int(counts.min()))
    if n_folds < 2:
        return None
    rng = np.random.RandomState(random_state)
    order = rng.permutation(len(code))
    order = order[np.argsort(code[order], kind="stable")]  # class by class, shuffled within each
    fold = np.empty(len(code), dtype=np.int64)
    fold[order] = np.arange(len(code)) % n_folds
    return fold


def out_of_fold(
    scores_of_fold: Callable[[NDArray[np.int64], NDArray[np.int64]], FloatArray], fold: NDArray[np.int64]
) -> FloatArray:
    """Score every bag by a model that was fitted without it.

    Parameters
    ----------
    scores_of_fold : function of (training bags, held-out bags), two arrays of indices
        Fits a model on the former and returns the (n_held_out, n_problems) scores of the latter.
    fold : (n_bags,) int array
        The fold of each bag; see `fold_of_each_bag`.

    Returns
    -------
    (n_bags, n_problems) array
    """
    scores: FloatArray | None = None
    for f in range(int(fold.max()) + 1):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        part = scores_of_fold(train, test)
        if scores is None:
            scores = np.empty((len(fold), part.shape[1]))
        scores[test] = part
    assert scores is not None
    return scores


def fit_logistic(
    scores: FloatArray, target: NDArray[np.bool_], weight: FloatArray | None = None, *, total: float | None = None
) -> tuple[float, float]:
    """Fit the probability 1 / (1 + exp(-(slope * score + offset))) to labels, as Platt does.

    The targets are not 0 and 1 but (n + 1) / (n + 2) for the n positive bags and 1 / (n + 2) for the n negative ones,
    so that the slope stays finite where the scores tell the classes apart without an error.

    Parameters
    ----------
    scores : (n_bags,) array
    target : (n_bags,) bool array
    weight : (n_bags,) array, default=None
        Weights of the bags; only their ratios matter, unless ``total`` says how many bags they stand for.
    total : float, default=None
        What the weights are made to sum to; None for the number of bags.

    Returns
    -------
    slope, offset
        The slope is never negative: see ``SMALLEST_SLOPE``.

    Examples
    --------
    >>> slope, offset = fit_logistic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True]))
    >>> round(slope, 2), round(offset / slope, 2)
    (0.41, -2.5)
    """
    scores = np.asarray(scores, dtype=np.float64)
    share = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = share * ((len(share) if total is None else total) / share.sum())
    n_positive, n_negative = share[target].sum(), share[~target].sum()
    wanted = np.where(target, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    centre = share @ scores / share.sum()
    spread = np.sqrt(share @ (scores - centre) ** 2 / share.sum())
    if not spread > 0:
        return 0.0, _base_log_odds(wanted, share)
    x = (scores - centre) / spread
    slope, offset = _newton(x, wanted, share)
    if slope < SMALLEST_SLOPE:
        slope, offset = SMALLEST_SLOPE, _base_log_odds(wanted, share)
    return float(slope / spread), float(offset - slope * centre / spread)


def _base_log_odds(wanted: FloatArray, share: FloatArray) -> float:
    rate = share @ wanted / share.sum()
    return float(np.log(rate / (1 - rate)))


def _newton(x: FloatArray, wanted: FloatArray, share: FloatArray) -> tuple[float, float]:
    """Slope and offset of least cross-entropy; it is convex, so Newton's steps, halved where too long, get there."""
    columns = np.stack([x, np.ones_like(x)])

    def loss(w: FloatArray) -> float:
        z = w @ columns
        return float(share @ (np.logaddexp(0, z) - wanted * z))

    w = np.array([0.0, _base_log_odds(wanted, share)])
    best = loss(w)
    for _ in range(NEWTON_STEPS):
        p = expit(w @ columns)
        gradient = columns @ (share * (p - wanted))
        curvature = (columns * (share * p * (1 - p))) @ columns.T + 1e-10 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        length = 1.0
        while length > 1e-6 and loss(w - length * step) > best:
            length /= 2
        value = loss(w - length * step)
        if value > best:
            break
        gained, w, best = best - value, w - length * step, value
        if not gained > 1e-12 * best:
            break
    return float(w[0]), float(w[1])


def usual_range(scores: FloatArray, weight: FloatArray) -> FloatArray:
    """Where the scores of each problem usually lie, for `without_tails`.

    Parameters
    ----------
    scores : (n_bags, n_problems) array
    weight : (n_bags,) array
        Weights of the bags.

    Returns
    -------
    (n_problems, 2) array
        The median, and the deviation of a normal distribution with the same eight tenths in the middle; 0 where no
        score lies in a tail.
    """
    found = np.zeros((scores.shape[1], 2))
    for k, score in enumerate(scores.T):
        order = np.argsort(score, kind="stable")
        mass = np.cumsum(weight[order])
        low, median, high = score[order][np.searchsorted(mass, np.array([0.1, 0.5, 0.9]) * mass[-1])]
        deviation = (high - low) / BETWEEN_TENTHS
        if deviation > 0 and (np.abs(score - median)[weight > 0] > FAR * deviation).any():
            found[k] = median, deviation
    return found


def without_tails(scores: FloatArray, usual: FloatArray) -> FloatArray:
    """The same scores in the same order, those in a tail growing with the logarithm only of how far they are out.

    A likelihood that falls with a distance, or a linear function of columns with outliers, has scores a thousand times
    as far out as the others. A single such bag on the wrong side would make the logistic curve of all bags flat.

    Parameters
    ----------
    scores : (n, n_problems) array
    usual : (n_problems, 2) array
        From `usual_range`.

    Examples
    --------
    >>> without_tails(np.array([[-1000.0], [-2.0], [1.0], [4.0]]), np.array([[0.0, 1.0]])).round(1).ravel()
    array([-11.9,  -2. ,   1. ,   4. ])
    """
    median, deviation = usual.T
    safe = np.where(deviation > 0, deviation, 1.0)
    excess = np.where(deviation > 0, np.maximum(np.abs(scores - median) / safe - FAR, 0), 0)
    return np.where(excess > 0, median + np.sign(scores - median) * safe * (FAR + np.log1p(excess)), scores)


def calibrated(scores: FloatArray, calibration: FloatArray) -> FloatArray:
    """(n_bags, n_problems) log-odds of scores of that shape, by the slope and offset of each problem."""
    return scores * calibration[:, 0] + calibration[:, 1]


def shrunk(
    curve: tuple[float, float],
    loss: float,
    target: NDArray[np.bool_],
    weight: FloatArray | None = None,
    n_compared: int = 1,
) -> tuple[float, float]:
    """Take from a curve what chance explains, in its slope and in its offset.

    The slope: scores that know nothing still fit the labels of n bags a little, by 2n times the gain in log loss over
    the base rate being 1 on average, and about 1 + log(c) for the best of c candidates. A gain g is multiplied by
    1 - (1 + log c) / g; where that is not positive, nothing was learned, and every bag gets the base rate but for a
    millionth.

    The offset: it carries the log-odds d = log(n_positive / n_negative) of the training bags, whose sampling variance
    is v = 1 / n_positive + 1 / n_negative. James and Stein's estimate of the true log-odds is d max(0, 1 - v / d²): of
    95 positive bags among 180 nothing is left, of 10 nearly all. Otherwise weak scores would follow the draw of the
    training bags.

    Parameters
    ----------
    curve : slope and offset, as `fit_logistic` returns them
    loss : float
        `log_loss` of the curve on the scores that it was fitted to.
    target : (n_bags,) bool array
    weight : (n_bags,) array, default=None
    n_compared : int, default=1
        How many candidates this curve was the best of.

    Returns
    -------
    slope, offset
    """
    share = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = share * (len(share) / share.sum())
    n_positive, n_negative = share[target].sum(), share[~target].sum()
    log_odds = float(np.log(n_positive / n_negative))
    gain = 2 * len(target) * (base_rate_log_loss(target, share) - loss)
    by_chance = 1 + np.log(n_compared)
    learned = 1 - by_chance / gain if gain > by_chance else 0.0
    learned = max(learned, SMALLEST_SLOPE)  # which keeps the order of the bags, and who is above one half
    # Weights make classes uneven by intention, not by chance: what chance does depends on the number of bags.
    variance = sum(np.sum(part**2) / np.sum(part) ** 2 for part in (share[target], share[~target]))
    even = 0.0 if variance >= log_odds**2 else log_odds * (1 - variance / log_odds**2)
    return float(learned * curve[0]), float(even + learned * (curve[1] - log_odds))


def log_loss(log_odds: FloatArray, target: NDArray[np.bool_], weight: FloatArray | None = None) -> float:
    """Mean cross-entropy of labels under log-odds."""
    return float(np.average(np.logaddexp(0, np.where(target, -log_odds, log_odds)), weights=weight))


def base_rate_log_loss(target: NDArray[np.bool_], weight: FloatArray | None = None) -> float:
    """What `log_loss` is when every bag gets the share of positive bags as its probability."""
    rate = np.average(target, weights=weight)
    return float(-(xlogy(rate, rate) + xlogy(1 - rate, 1 - rate)))


def calibrate(
    scores_of_fold: Callable[[NDArray[np.int64], NDArray[np.int64]], FloatArray],
    targets: NDArray[np.bool_],
    weight: FloatArray | None = None,
    *,
    n_folds: int = N_FOLDS,
    random_state: int = 0,
) -> FloatArray | None:
    """Calibrate a classifier on out-of-fold scores of its training bags: ``n_folds`` more fits on a part of them.

    Parameters
    ----------
    scores_of_fold : function of (training bags, held-out bags), two arrays of indices
        Fits a model on the former and returns the (n_held_out, n_problems) scores of the latter.
    targets : (n_bags, n_problems) bool array
    weight : (n_bags,) array, default=None
    n_folds : int, default=5
    random_state : int, default=0

    Returns
    -------
    (n_problems, 2) slope and offset of each binary problem, or None where a class has a single bag.
    """
    fold = fold_of_each_bag(targets, n_folds, random_state)
    if fold is None:
        return None
    scores = out_of_fold(scores_of_fold, fold)
    curves = []
    for score, target in zip(scores.T, targets.T, strict=True):
        slope, offset = fit_logistic(score, target, weight)
        loss = log_loss(slope * score + offset, target, weight)
        curves.append(shrunk((slope, offset), loss, target, weight))
    return np.array(curves)
