"""Citation-kNN: nearest neighbours between bags, asked in both directions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._utils.matrices import in_form_of
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.calibration import out_of_fold
from bagwise.distances import hausdorff
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler

EQUAL = 1e-6


class CitationKNN(CalibratedClassifier):
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
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: the distances
        between training bags are known already, so it costs nothing.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    has_own_probabilities = True  # the share of the votes

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "n_references": [Interval(Integral, 1, None, closed="left")],
        "n_citers": [Interval(Integral, 0, None, closed="left")],
        "metric": [StrOptions({"minimal", "modified"})],
        "scaling": SCALING_CONSTRAINT,
    }

    def __init__(
        self,
        n_references: int = 2,
        n_citers: int = 4,
        *,
        metric: str = "modified",
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.n_references = n_references
        self.n_citers = n_citers
        self.metric = metric
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        self.instances_, self.offsets_ = bags.instances, bags.offsets
        self.targets_, self.weight_ = targets, weight
        self.distances_ = hausdorff(bags, bags, kind=self.metric)

    def _raw_scores(self, bags: Bags) -> FloatArray:
        bags = self.scaler_.transform(bags)
        bags = bags.with_instances(in_form_of(self.instances_, bags.instances))
        training = Bags.from_arrays(self.instances_, self.offsets_, check_finite=False)
        distance = hausdorff(training, bags, kind=self.metric)  # (n_training, n_bags)
        return self._vote(distance)

    def _vote(self, distance: FloatArray) -> FloatArray:
        """(n_bags, n_problems) share of the votes that are positive minus the share that are not."""
        votes = self._references(distance) + self._citers(distance)
        return (votes.T @ np.where(self.targets_, 1.0, -1.0)) / votes.sum(axis=0)[:, None]

    def _unseen_scores(
        self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray, fold: NDArray[np.int64]
    ) -> FloatArray:
        def scores_of_fold(train: NDArray[np.int64], test: NDArray[np.int64]) -> FloatArray:
            model = self._fold_model()
            model.targets_, model.weight_ = targets[train], weight[train]
            model.distances_ = self.distances_[np.ix_(train, train)]
            return model._vote(self.distances_[np.ix_(train, test)])

        return out_of_fold(scores_of_fold, fold)

    def _bag_probabilities(self, bags: Bags) -> FloatArray:
        """Without calibration, the share of the votes."""
        if self.calibration_ is None:
            return (1 + self._raw_scores(bags)) / 2
        return super()._bag_probabilities(bags)

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
        from bagwise._utils.nearest_loops import weight_before

        nearer, equal = weight_before(self.distances_, self.weight_, distance, self._equal())
        return self.weight_[:, None] * np.clip((self.n_citers - nearer) / (equal + 1), 0, 1)
