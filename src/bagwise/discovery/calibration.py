"""How sure an answer is, learnt without a single drawn box.

Two questions, two answers. Is the class in the photograph? The best score, against photographs known to show it or
not. Is this the place? Scores spread over places: the share of them that falls on boxes like this one, against how
often two models that learnt from different photographs choose the same place. Models that agree can be wrong together,
so this second figure is an upper limit in the mean; it ranks answers by how much they can be trusted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bagwise.bags import Bags
from bagwise.base import InstanceScorer

from .boxes import overlaps

FOLDS = 3
BAGS_AT_ONCE = 128
SAME_PLACE = 0.5  # overlap
STRONGEST = 10.0  # log-odds beyond which a share is as good as 0 or 1


@dataclass(frozen=True)
class Logistic:
    """A probability that rises with a number."""

    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return expit(self.slope * np.asarray(values) + self.intercept)

    @classmethod
    def fit(cls, values: np.ndarray, outcomes: np.ndarray) -> "Logistic":
        """Logistic regression; where there is nothing to learn from, the values are taken for log-odds."""
        spread = float(np.std(values)) if len(values) else 0.0
        if spread == 0 or outcomes.all() or not outcomes.any():
            return cls()
        fitted = LogisticRegression(C=100.0).fit(values[:, None] / spread, outcomes)
        slope = float(fitted.coef_[0, 0]) / spread
        if slope <= 0:  # a better score is never worse news
            return cls(0.0, float(logit(outcomes.mean())))
        return cls(slope, float(fitted.intercept_[0]))


@dataclass(frozen=True)
class Calibration:
    """Probabilities that the class is shown, and that a box is its place; plain numbers, for the manifest."""

    shown_slope: float = 1.0
    shown_intercept: float = 0.0
    place_slope: float = 1.0
    place_intercept: float = 0.0

    @property
    def shown(self) -> Logistic:
        """Of a box's score."""
        return Logistic(self.shown_slope, self.shown_intercept)

    @property
    def place(self) -> Logistic:
        """Of `place_log_odds`."""
        return Logistic(self.place_slope, self.place_intercept)


def scores_in_parts(model: InstanceScorer, bags: Bags) -> np.ndarray:
    """Score of every box, (n_instances,), some bags at a time: scoring may need a larger copy of its input."""
    starts = range(0, len(bags), BAGS_AT_ONCE)
    return np.concatenate([model.instance_scores(bags[start : start + BAGS_AT_ONCE]) for start in starts])


def place_log_odds(boxes: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Log-odds of the share of a photograph's scores that falls on boxes like some of them.

    Parameters
    ----------
    boxes : array (n, 4)
    scores : array (n,)
        Log-odds: the softmax over boxes is the distribution over places.
    rows : int array (k,)

    Returns
    -------
    array (k,)
    """
    share = np.exp(scores - scores.max())
    like = overlaps(boxes[rows], boxes) > SAME_PLACE
    inside = (like * share).sum(axis=1)
    outside = (~like * share).sum(axis=1)
    tiny = np.finfo(float).tiny
    return np.clip(np.log(inside + tiny) - np.log(outside + tiny), -STRONGEST, STRONGEST)


def calibrate(
    bags: Bags,
    y: np.ndarray,
    boxes: Sequence[np.ndarray],
    fit: Callable[[Bags, np.ndarray], InstanceScorer],
) -> Calibration:
    """Calibrate by models of one third of the photographs each, on photographs that they had not seen.

    Parameters
    ----------
    bags : Bags
        Photographs that show the class first, then those that do not.
    y : bool array (n_bags,)
    boxes : sequence of arrays (n_i, 4)
        Of the photographs that show the class.
    fit : callable
        Learns from bags and labels.
    """
    folds = min(FOLDS, int(y.sum()), int((~y).sum()))
    if folds < FOLDS:
        return Calibration()
    fold = np.empty(len(y), dtype=int)
    for side in (y, ~y):
        fold[side] = np.arange(int(side.sum())) % folds
    models = [fit(bags[fold == k], y[fold == k]) for k in range(folds)]
    best, odds, agreed = np.empty(len(y)), [], []
    for k in range(folds):
        held_out = np.flatnonzero(fold == k)
        part = bags[held_out]
        scores = [part.split(scores_in_parts(models[other], part)) for other in range(folds) if other != k]
        for number, (one, two) in enumerate(zip(*scores)):
            bag = held_out[number]
            best[bag] = (one.max() + two.max()) / 2
            if y[bag]:
                chosen = np.array([one.argmax(), two.argmax()])
                here = boxes[bag]
                agreed += 2 * [overlaps(here[chosen[:1]], here[chosen[1:]])[0, 0] > SAME_PLACE]
                odds += [place_log_odds(here, z, chosen[i : i + 1])[0] for i, z in enumerate((one, two))]
    shown, place = Logistic.fit(best, y), Logistic.fit(np.array(odds), np.array(agreed))
    return Calibration(shown.slope, shown.intercept, place.slope, place.intercept)
