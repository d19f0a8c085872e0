"""How sure an answer is, learned without a single drawn box.

Two questions, two answers. Is the class in the image? The best scores of its boxes, against images known to show the
class or not. Is this the place? Two views that know nothing of each other are asked: the class's model without the
figure map, and the figure map without the class. Where mistakes are independent, the two agree by mistake only rarely,
so they agree about as often as both are right: the accuracy of one is the square root of how often they agree. How
often they agree is learned from how the scores spread over places: the share that falls on boxes like the answer. One
curve serves all classes of a run: what a class's own images say of it is mostly chance, also where there are a hundred.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bagwise._utils.boxes import overlaps
from bagwise.bags import Bags
from bagwise.base import InstanceScorer

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
    """Probabilities that the class is shown, and that a box is its place; plain numbers, for the manifest.

    Attributes
    ----------
    shown_slope, shown_intercept : float
        Of the probability that the class is shown, given what speaks for it in the whole image.
    agree_slope, agree_intercept : float
        Of the probability that the two views agree, given `place_log_odds`: see `agreement_curve`.
    images : int
        That show the class: confidence stays below what so many can prove.
    """

    shown_slope: float = 1.0
    shown_intercept: float = 0.0
    agree_slope: float = 1.0
    agree_intercept: float = 0.0
    images: int = 0

    @property
    def most(self) -> float:
        """What so many images allow: of n answers that all were right the next is right with (n + 1) / (n + 2)."""
        return (self.images + 1) / (self.images + 2)

    def shown(self, presence: float) -> float:
        """Probability that the class is shown in an image, from its `ScoredImage.presence`."""
        return self.most * float(Logistic(self.shown_slope, self.shown_intercept)(np.array(presence)))

    def place(self, log_odds: np.ndarray) -> np.ndarray:
        """Probability that a box is the class's place, from its `place_log_odds`."""
        return self.most * np.sqrt(self.agreement(log_odds))

    @classmethod
    def fit(cls, presence: np.ndarray, shows: np.ndarray) -> "Calibration":
        """Learn how likely the class is shown from images that the scoring models had not seen.

        Parameters
        ----------
        presence : array (n,)
            What speaks for the class in each image.
        shows : bool array (n,)
            Whether the image shows the class.
        """
        shown = Logistic.fit(presence, shows)
        return cls(shown.slope, shown.intercept, images=int(shows.sum()))

    @property
    def agreement(self) -> Logistic:
        """The probability that the two views agree, given `place_log_odds`."""
        return Logistic(self.agree_slope, self.agree_intercept)

    def agreeing(self, curve: Logistic) -> "Calibration":
        """A copy with another `agreement`."""
        return replace(self, agree_slope=curve.slope, agree_intercept=curve.intercept)


class Agreement(NamedTuple):
    """What models said of images of a class that they had not seen.

    Attributes
    ----------
    log_odds : array (n,)
        `place_log_odds` of the answers.
    agreed : bool array (n,)
        Whether the two views chose the same place.
    """

    log_odds: np.ndarray
    agreed: np.ndarray


def agreement_curve(found: Iterable[Agreement]) -> Logistic:
    """How likely the two views agree, given `place_log_odds`, learned from the classes of a run together."""
    parts = [each for each in found if len(each.log_odds)]
    if not parts:
        return Logistic()
    log_odds, agreed = (np.concatenate(each) for each in zip(*parts, strict=True))
    # One image more in which they agree and one in which they do not, neither better nor worse than the others: of few
    # images nothing is certain.
    middle = np.full(2, log_odds.mean())
    return Logistic.fit(np.append(log_odds, middle), np.append(agreed, [True, False]))


def scores_in_parts(model: InstanceScorer, bags: Bags) -> np.ndarray:
    """Score of every box, (n_instances,), some bags at a time: scoring may need a larger copy of its input."""
    starts = range(0, len(bags), BAGS_AT_ONCE)
    return np.concatenate([model.instance_scores(bags[start : start + BAGS_AT_ONCE]) for start in starts])


def same_place(box: np.ndarray, other: np.ndarray) -> bool:
    """Whether two boxes (4,) overlap enough to be one place."""
    return bool(overlaps(box[None], other[None])[0, 0] > SAME_PLACE)


def place_log_odds(boxes: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Log-odds of the share of an image's scores that falls on boxes like some of them.

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
