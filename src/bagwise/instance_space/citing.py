"""Key instances by votes: instances vote for those that they count among their nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.matrices import in_form_of
from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedScorer
from bagwise.distances import squared_distances
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler

# Squared distances are taken for equal when they differ by less than so many rounding errors of the longest row.
EQUAL = 64
MOST_ROUNDS = 100
SETTLED = 1e-10


class CitationVote(CalibratedScorer):
    """Key instances found by votes on a graph of citers.

    Every training instance votes for the instances that it counts among its nearest ones of other bags: for them with
    the label of a positive bag, against them with that of a negative one. An instance has the mean of the votes for
    it. Instances of negative bags are known; those of positive bags are not, so their own vote is, in part, what
    others have voted for them, until nothing changes any more. A bag has the score of its best instance.

    Parameters
    ----------
    n_neighbors : int, default=10
        How many instances each one votes for.
    refinement : float, default=0.5
        How much of the vote of an instance of a positive bag is what others vote for it, from 0, where it votes with
        the label of its bag (VF in the paper), to less than 1 (VFr).
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
    instances_ : the scaled training instances
    reach_ : (n_instances,) array
        Squared distance up to which each of them votes.
    mass_ : (n_instances,) array
        How many instances each of them stands for, by the weights of the bags.
    votes_ : (n_instances, n_problems) array
        Their votes, from -1 to 1.
    neutral_ : (n_problems,) array
        Mean vote, with which every count begins: the score where nobody votes.
    threshold_ : (n_problems,) array
        What is taken from scores, so that zero tells the training bags apart best when their own instances do not vote.

    References
    ----------
    Guoqing Liu, Jianxin Wu, Zhi-Hua Zhou: Key Instance Detection in Multi-Instance Learning. ACML 2012.

    Examples
    --------
    >>> from bagwise import CitationVote
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = CitationVote().fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "refinement": [Interval(Real, 0, 1, closed="left")],
        "scaling": SCALING_CONSTRAINT,
    }

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        refinement: float = 0.5,
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.refinement = refinement
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        self.instances_, self.mass_ = bags.instances, weight[bags.bag_of_instance]
        hidden = targets[bags.bag_of_instance]
        label = np.where(hidden, 1.0, -1.0)
        self.neutral_ = self.mass_ @ label / self.mass_.sum()
        citers = self._citers(bags)
        self.votes_ = label
        scores = self._count(citers)
        for _ in range(MOST_ROUNDS if self.refinement else 0):
            former = self.votes_
            self.votes_ = np.where(hidden, (1 - self.refinement) + self.refinement * scores, -1.0)
            scores = self._count(citers)
            if np.abs(self.votes_ - former).max() < SETTLED:
                break
        best = np.maximum.reduceat(scores, bags.offsets[:-1], axis=0)
        self.threshold_ = np.array([best_threshold(z, target, weight) for z, target in zip(best.T, targets.T)])

    def _citers(self, bags: Bags) -> sparse.csr_array:
        """(n, n) mass with which each training instance (column) votes for each (row); none within a bag."""
        from bagwise.instance_space._citing_loops import reach_of_rows

        self.reach_ = np.empty(bags.n_instances)
        bag, parts = bags.bag_of_instance, []
        scale = EQUAL * longest(bags.instances)
        copies = np.maximum(self.mass_ - 1, 0)
        for part, squared in distances(bags.instances, bags.instances):
            own = bag[part]
            tolerance = scale * float(np.finfo(squared.dtype).eps)
            reach_of_rows(squared, own, self.mass_, bag, self.n_neighbors, tolerance, self.reach_[part])
            voter, cited = np.nonzero(squared <= self.reach_[part][:, None])
            mass = np.where(own[voter] == bag[cited], copies[part][voter], self.mass_[part][voter])
            parts.append(sparse.csr_array((mass, (voter, cited)), shape=squared.shape))
        found = sparse.csr_array(sparse.vstack(parts).T)
        found.eliminate_zeros()
        return found

    def _count(self, citers: Any) -> FloatArray:
        """(n, n_problems) mean vote of the citers of each instance, one neutral vote included."""
        return (citers @ self.votes_ + self.neutral_) / (citers.sum(axis=1)[:, None] + 1)

    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        x = in_form_of(self.instances_, self.scaler_.transform(bags).instances)
        scores = np.empty((bags.n_instances, len(self.neutral_)))
        for part, squared in distances(x, self.instances_):
            scores[part] = self._count((squared <= self.reach_) * self.mass_)
        return scores - self.threshold_


def distances(rows: Any, others: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Squared distances of rows to other rows, a block of rows at a time."""
    single = Bags.from_arrays(others, np.arange(others.shape[0] + 1), check_finite=False)
    return squared_distances(rows, single, exact=False)


def longest(x: Any) -> float:
    """Largest squared length of a row."""
    squares = x.multiply(x).sum(axis=1) if sparse.issparse(x) else np.einsum("ij,ij->i", x, x)
    return float(np.max(squares))


def best_threshold(scores: FloatArray, target: NDArray[np.bool_], weight: FloatArray) -> float:
    """The middle between two neighbouring scores that tells the classes apart with least weight on the wrong side."""
    steps, place = np.unique(scores, return_inverse=True)
    positive, negative = (np.bincount(place, weight * part, minlength=len(steps)) for part in (target, ~target))
    wrong = np.cumsum(positive) + negative.sum() - np.cumsum(negative)  # with the threshold above each step
    if len(steps) == 1:
        return float(steps[0])
    best = int(np.argmin(wrong[:-1]))
    return float((steps[best] + steps[best + 1]) / 2)
