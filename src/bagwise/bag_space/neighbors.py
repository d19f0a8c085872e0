"""Citation-kNN: nearest neighbours between bags, asked in both directions."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from bagwise.bag_space.nearest import hausdorff
from bagwise.bag_space.svm import in_form_of
from bagwise.bags import Bags
from bagwise.base import BagClassifier, FloatArray
from bagwise.preprocessing import SCALINGS, InstanceScaler

EQUAL = 1e-6


class CitationKNN(BagClassifier):
    """Nearest neighbours between bags, references and citers.

    A bag is compared with the training bags by a distance between sets. Its references are the training bags nearest
    to it; its citers are the training bags that would count it among their own nearest. Both vote, and a tie is
    negative. Bags at the same distance share the places that are left for them, so that the order of the training
    bags never matters, and a bag of weight two takes two places.

    Parameters
    ----------
    n_references : int
        Number of nearest training bags that vote.
    n_citers : int
        A training bag votes when the new bag is among this many of its own nearest.
    metric : {"modified", "minimal"}
        The mean distance of a bag's instances to the other bag's nearest, in the direction in which it is larger
        (modified Hausdorff), or the distance of the two nearest instances (minimal Hausdorff, the paper's).
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.

    Attributes
    ----------
    instances_, offsets_ : the scaled training bags
    distances_ : (n_bags, n_bags) array
        Between training bags.
    targets_, weight_ : the labels and weights of the training bags

    References
    ----------
    Jun Wang, Jean-Daniel Zucker: Solving the Multiple-Instance Problem: A Lazy Learning Approach. ICML 2000.

    Examples
    --------
    >>> from bagwise import CitationKNN
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = CitationKNN().fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "n_references": [Interval(Integral, 1, None, closed="left")],
        "n_citers": [Interval(Integral, 0, None, closed="left")],
        "metric": [StrOptions({"minimal", "modified"})],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
    }

    def __init__(
        self,
        n_references: int = 2,
        n_citers: int = 4,
        *,
        metric: str = "modified",
        scaling: str | None = "auto",
    ) -> None:
        self.n_references = n_references
        self.n_citers = n_citers
        self.metric = metric
        self.scaling = scaling

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        bags = self.scaler_.transform(bags)
        self.instances_, self.offsets_ = bags.instances, bags.offsets
        self.targets_, self.weight_ = targets, weight
        self.distances_ = hausdorff(bags, bags, kind=self.metric)

    def _bag_scores(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) share of the votes that are positive minus the share that are not."""
        bags = self.scaler_.transform(bags)
        bags = bags.with_instances(in_form_of(self.instances_, bags.instances))
        training = Bags.from_arrays(self.instances_, self.offsets_, check_finite=False)
        distance = hausdorff(training, bags, kind=self.metric)  # (n_training, n_bags)
        votes = self._references(distance) + self._citers(distance)
        return (votes.T @ np.where(self.targets_, 1.0, -1.0)) / votes.sum(axis=0)[:, None]

    def _equal(self) -> float:
        """Distances that differ by less than this are taken for equal: rounding alone may make such a difference."""
        return EQUAL * float(self.distances_.max())

    def _references(self, distance: FloatArray) -> FloatArray:
        """(n_training, n_bags) votes of the training bags nearest to each new one."""
        votes = np.empty_like(distance)
        for q, column in enumerate(distance.T):
            order = np.argsort(column, kind="stable")
            group = np.empty(len(column), dtype=np.int64)
            group[order] = np.cumsum(np.diff(column[order], prepend=-np.inf) > self._equal()) - 1
            mass = np.bincount(group, weights=self.weight_)
            left = self.n_references - (np.cumsum(mass) - mass)
            votes[:, q] = self.weight_ * np.clip(left / mass, 0, 1)[group]
        return votes

    def _citers(self, distance: FloatArray) -> FloatArray:
        """(n_training, n_bags) votes of the training bags that count the new one among their nearest."""
        from bagwise.bag_space._nearest_loops import weight_before

        nearer, equal = weight_before(self.distances_, self.weight_, distance, self._equal())
        return self.weight_[:, None] * np.clip((self.n_citers - nearer) / (equal + 1), 0, 1)
