"""APR: the axis-parallel rectangle of iterated discrimination, the first multiple-instance method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedScorer
from bagwise.instance_space._dual import IntArray
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler

MAX_ROUNDS = 10
# First instances that are tried, and first columns.
MAX_SEEDS = 10
MAX_SWEEPS = 10
# The kernel of the density estimate is at least this wide, in the unit of the scaled columns.
LEAST_DEVIATION = 1e-2


class APR(CalibratedScorer):
    """Axis-parallel rectangle by iterated discrimination.

    The rectangle has an instance of every positive bag inside. It is grown greedily around one instance of each, in
    the columns chosen so far (all at first); then the columns are chosen anew, as few as keep the negative instances
    out; and both again until the choice repeats itself. At last the borders move outwards, so far that a density
    estimate expects a share ``epsilon`` of positive instances beyond them. An instance's score is one in the
    middle of the rectangle, zero at its border and negative outside, before calibration; a bag's is its highest.

    Takes dense instances only: a rectangle has borders in columns that are zero too.

    Parameters
    ----------
    tau : float
        Share of a kernel of the density estimate that fits into the tight rectangle: the larger, the narrower.
    epsilon : float
        Share of positive instances expected outside of each column's borders.
    margin : float
        A column keeps a negative instance out strongly when that is further than this from its border, or further
        than in any other column; the unit is that of the scaled columns.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    Attributes
    ----------
    features_ : list of (n_chosen,) arrays, one for each problem
        The columns in which the rectangle has borders.
    low_, high_ : lists of (n_chosen,) arrays
        The borders, for scaled instances.

    References
    ----------
    Thomas G. Dietterich, Richard H. Lathrop, Tomás Lozano-Pérez: Solving the Multiple Instance Problem with
    Axis-Parallel Rectangles. Artificial Intelligence 89, 1997.

    Examples
    --------
    >>> from bagwise import APR
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = APR().fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    accepts_sparse = False

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "tau": [Interval(Real, 0, 1, closed="neither")],
        "epsilon": [Interval(Real, 0, 1, closed="neither")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
    }

    def __init__(
        self,
        tau: float = 0.995,
        epsilon: float = 0.01,
        *,
        margin: float = 1.0,
        scaling: str | None = "standard",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.tau = tau
        self.epsilon = epsilon
        self.margin = margin
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        self.features_, self.low_, self.high_ = [], [], []
        for positive in targets.T:
            negatives = bags[~positive]
            box = iterated_discrimination(
                bags[positive],
                weight[positive],
                negatives.instances,
                np.repeat(weight[~positive], negatives.sizes),
                margin=self.margin,
                expand=lambda inside, share: expanded(inside, share, self.tau, self.epsilon),
            )
            self.features_.append(box.features)
            self.low_.append(box.low)
            self.high_.append(box.high)

    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        x = self.scaler_.transform(bags).instances
        scores = np.empty((len(x), len(self.features_)))
        for k, (features, low, high) in enumerate(zip(self.features_, self.low_, self.high_)):
            part = x[:, features].astype(np.float64)
            scores[:, k] = 1 - np.abs((part - (low + high) / 2) / ((high - low) / 2)).max(axis=1)
        return scores


@dataclass
class Rectangle:
    """Borders in some of the columns."""

    features: IntArray  # (n_chosen,) columns
    low: FloatArray  # (n_chosen,)
    high: FloatArray  # (n_chosen,)

    def holds(self, x: FloatArray) -> NDArray[np.bool_]:
        """(n,) whether each instance lies inside."""
        part = x[:, self.features]
        return np.asarray(((part >= self.low) & (part <= self.high)).all(axis=1))


def iterated_discrimination(
    positives: Bags,
    positive_weight: FloatArray,
    negatives: FloatArray,
    negative_weight: FloatArray,
    *,
    margin: float,
    expand: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
) -> Rectangle:
    """Grow a rectangle and choose columns by turns, until the columns stay the same, and expand it.

    One instance of the smallest positive bag must be inside: see `starts` for where growing begins. Returns the
    rectangle that holds fewest negative instances; of several, the one that was smallest before it was expanded.

    Parameters
    ----------
    positives : Bags
    positive_weight : (n_bags,) array
    negatives : (n, d) array of negative instances
    negative_weight : (n,) array
    margin : float
    expand : function of the instances inside, (n_bags, n_chosen), and their weights, to the borders
    """
    from bagwise.instance_space._apr_loops import grow

    x, offsets = positives.instances.astype(np.float64), positives.offsets
    tried = []
    for seed, bag, features in starts(positives, x, negatives, negative_weight, margin):
        for _ in range(MAX_ROUNDS):
            inside = x[grow(x, offsets, features, seed, bag, MAX_SWEEPS)]
            before, features = features, discriminating(inside, negatives, negative_weight, margin)
            # Not only where the rounds end: a choice of more columns may grow around other instances, and worse ones.
            box = Rectangle(features, *expand(inside[:, features], positive_weight))
            let_in = float(negative_weight[box.holds(negatives)].sum())
            tried.append((let_in, float(np.ptp(inside, axis=0).sum()), box))
            if np.array_equal(before, features):
                break
    return min(tried, key=lambda attempt: attempt[:2])[2]


def starts(
    positives: Bags, x: FloatArray, negatives: FloatArray, negative_weight: FloatArray, margin: float
) -> Iterator[tuple[int, int, IntArray]]:
    """First instances, the bag of each, and the columns in which to grow around it.

    From the instances of the smallest positive bag that lie nearest to where all bags meet: all columns, and those
    that tell the instance alone from the negative ones. And from the columns that on their own let in fewest negative
    instances, the instance in the middle of each one's interval: where most columns are noise, the first rectangle of
    all columns follows the noise.
    """
    from bagwise.instance_space._apr_loops import best_windows

    offsets = positives.offsets
    bag, seeds = nearest_of_smallest_bag(x, offsets)
    everything = np.arange(positives.n_features)
    for seed in seeds:
        yield seed, bag, everything
    for seed in seeds:
        yield seed, bag, discriminating(x[[seed]], negatives, negative_weight, margin)
    bag_of_row = positives.bag_of_instance
    negatives = np.ascontiguousarray(negatives, dtype=np.float64)
    low, high, let_in = best_windows(
        x,
        bag_of_row,
        len(positives),
        np.argsort(x, axis=0, kind="stable"),
        negatives,
        negative_weight,
        np.argsort(negatives, axis=0, kind="stable"),
    )
    for column in np.lexsort([high - low, let_in])[:MAX_SEEDS]:
        middle = (low[column] + high[column]) / 2
        seed = int(np.argmin(np.abs(x[:, column] - middle)))
        yield seed, int(bag_of_row[seed]), np.array([column])


def nearest_of_smallest_bag(x: FloatArray, offsets: IntArray) -> tuple[int, IntArray]:
    """The bag of fewest instances, of several that with the instance nearest to where all bags meet; and its instances.

    In every column, a rectangle with an instance of each bag must reach from the lowest of the bags' highest values
    to the highest of their lowest. Of a large bag only the instances nearest to that are returned.
    """
    highest = np.maximum.reduceat(x, offsets[:-1]).min(axis=0)
    lowest = np.minimum.reduceat(x, offsets[:-1]).max(axis=0)
    low, high = np.minimum(highest, lowest), np.maximum(highest, lowest)
    away = np.maximum(np.maximum(low - x, x - high), 0).sum(axis=1)
    bag = int(np.lexsort([np.minimum.reduceat(away, offsets[:-1]), np.diff(offsets)])[0])
    rows = np.arange(offsets[bag], offsets[bag + 1])
    return bag, np.sort(rows[np.argsort(away[rows], kind="stable")[:MAX_SEEDS]])


def discriminating(inside: FloatArray, negatives: FloatArray, weight: FloatArray, margin: float) -> IntArray:
    """Sorted columns that keep the negative instances out of the rectangle around ``inside``.

    Takes the column that strongly keeps out most of those not kept out yet, until nothing is left to gain; all
    columns when none keeps anything out.
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    beyond = np.maximum(np.maximum(low - negatives, negatives - high), 0)
    furthest = beyond.max(axis=1, keepdims=True, initial=0)
    strong = (beyond > 0) & ((beyond > margin) | (beyond == furthest))
    left = weight.astype(np.float64)
    features: list[int] = []
    while len(left):
        gain = left @ strong
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        features.append(best)
        still_in = ~strong[:, best]
        strong, left = strong[still_in], left[still_in]
    return np.array(sorted(features)) if features else np.arange(inside.shape[1])


def expanded(inside: FloatArray, weight: FloatArray, tau: float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Borders beyond which Gaussian kernels around the instances inside have epsilon / 2 of their mass each.

    Parameters
    ----------
    inside : (n, n_chosen) array
    weight : (n,) array

    Returns
    -------
    low, high : (n_chosen,) arrays
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    deviation = np.maximum((high - low) / 2 / ndtri((1 + tau) / 2), LEAST_DEVIATION)
    share = weight / weight.sum()

    def border(values: FloatArray) -> FloatArray:
        """Where the mass below is epsilon / 2: Newton's steps, and halving where one leads out of what is left."""
        reach = deviation * (1 - ndtri(epsilon / 2))
        below, above = values.min(axis=0) - reach, values.max(axis=0) + reach
        at = (below + above) / 2
        for _ in range(60):
            z = (at - values) / deviation
            excess = share @ ndtr(z) - epsilon / 2
            below, above = np.where(excess < 0, at, below), np.where(excess < 0, above, at)
            density = share @ np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * deviation)
            following = at - excess / np.maximum(density, np.finfo(np.float64).tiny)
            following = np.where((following >= below) & (following <= above), following, (below + above) / 2)
            if np.all(np.abs(following - at) <= 1e-13 * reach):
                break
            at = following
        return np.asarray(at)

    return border(inside), -border(-inside)
