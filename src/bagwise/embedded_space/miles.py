"""MILES: bags described by how near they come to each training instance, and a sparse linear machine on top."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bagwise._utils.matrices import in_form_of
from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer, check_bags
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.calibration import out_of_fold
from bagwise.distances import squared_distances
from bagwise.preprocessing import GAMMA_CONSTRAINT, SCALING_CONSTRAINT, InstanceScaler, gaussian_gamma, row_weights

# How many features may join the working set each time, at least.
NEWCOMERS = 64
# Most passes over the features of the working set in a round.
MAX_PASSES = 1000


class MILESTransformer(TransformerMixin, BaseEstimator):
    """Describe bags by their similarity to each training instance.

    Feature k of a bag is the largest exp(-γ ‖x - x_k‖²) over its instances x, where x_k is training instance k.

    Parameters
    ----------
    gamma : float, "scale" or "distance", default "distance"
        1 / σ²; "distance" is one over the mean squared distance between two training instances, "scale" what
        scikit-learn means by it.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.

    Attributes
    ----------
    prototypes_ : (n_prototypes, n_features) array or CSR matrix
        The scaled training instances.
    gamma_ : float
    """

    _parameter_constraints = {  # noqa: RUF012 - as scikit-learn has them
        **CALIBRATE,
        "gamma": GAMMA_CONSTRAINT,
        "scaling": SCALING_CONSTRAINT,
    }

    def __init__(self, gamma: float | str = "distance", *, scaling: str | None = "auto") -> None:
        self.gamma = gamma
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the training instances; labels are not looked at."""
        self._validate_params()
        bags = check_bags(self, X, reset=True)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=sample_weight)
        self.prototypes_ = self.scaler_.transform(bags).instances
        self.gamma_ = gaussian_gamma(self.gamma, self.prototypes_, row_weights(bags, sample_weight))
        return self

    def transform(self, X: Any) -> FloatArray:
        """(n_bags, n_prototypes) similarities."""
        check_is_fitted(self)
        bags = self.scaler_.transform(check_bags(self, X, reset=False))
        return similarities(self.prototypes_, bags, self.gamma_).T

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def similarities(prototypes: Any, bags: Bags, gamma: float) -> FloatArray:
    """(n_prototypes, n_bags) largest exp(-γ ‖x - prototype‖²) over the instances x of each bag."""
    bags = bags.with_instances(in_form_of(prototypes, bags.instances))
    out = None
    for part, squares in squared_distances(prototypes, bags, exact=False):
        if out is None:
            out = np.empty((prototypes.shape[0], len(bags)), dtype=squares.dtype)
        np.exp(-gamma * squares, out=out[part], dtype=squares.dtype)
    return np.empty((0, len(bags))) if out is None else out


class MILES(CalibratedClassifier, InstanceScorer):
    """Multiple-instance learning via embedded instance selection.

    A bag is described by its similarity to every training instance, and a linear machine whose weights have an
    absolute-value penalty picks the few instances that matter, for either class. An instance's score is its part in
    its bag's score: the weights of the chosen instances to which it comes nearest of its bag, times the similarity.

    Parameters
    ----------
    C : float
        Weight of the squared hinge loss of a bag against the penalty Σ |w|.
    gamma : float, "scale" or "distance", default "distance"
        1 / σ² of the similarity; see `MILESTransformer`.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    max_iter : int, default=100
        Most rounds of the solver, in each of which some features join.
    tol : float
        Largest violation of the optimality conditions, where the penalty's slope is one.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on the same similarities.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    Attributes
    ----------
    prototypes_ : (n_chosen, n_features) array or CSR matrix
        Training instances with a weight other than zero in some problem, scaled.
    coef_ : (n_problems, n_chosen) array
        One row for two classes, else one per class.
    intercept_ : (n_problems,) array
    gamma_ : float
    n_iter_ : int
        How often the solver changed its working set, in the problem that took most.

    References
    ----------
    Yixin Chen, Jinbo Bi, James Z. Wang: MILES: Multiple-Instance Learning via Embedded Instance Selection.
    IEEE TPAMI 28(12), 2006.

    Examples
    --------
    >>> from bagwise import MILES
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MILES().fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        **MILESTransformer._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "distance",
        *,
        scaling: str | None = "auto",
        max_iter: int = 100,
        tol: float = 1e-2,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.scaling = scaling
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        try:
            super()._fit(bags, targets, weight)
        finally:
            self.__dict__.pop("_features", None)  # large, and of no use after fit

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        self.gamma_ = gaussian_gamma(self.gamma, bags.instances, row_weights(bags, weight))
        self._features = similarities(bags.instances, bags, self.gamma_)
        weights, self.intercept_, self.n_iter_ = self._machines(self._features, targets, weight)
        self.converged_ = self.n_iter_ < self.max_iter
        chosen = np.flatnonzero(weights.any(axis=0))
        self.prototypes_ = bags.instances[chosen]
        self.coef_ = weights[:, chosen]

    def _machines(
        self, features: FloatArray, targets: NDArray[np.bool_], weight: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        """(n_problems, n_prototypes) weights, (n_problems,) intercepts, and the most rounds."""
        # The intercept makes up for it, and coordinate descent is a hundred times faster on features around zero.
        mean = np.average(features, axis=1, weights=weight).astype(np.float64)
        features = features - mean[:, None].astype(features.dtype)
        solved = [
            sparse_machine(features, np.where(positive, 1.0, -1.0), self.C * weight, self.max_iter, self.tol)
            for positive in targets.T
        ]
        weights = np.array([w for w, _, _ in solved])
        intercept = np.array([b for _, b, _ in solved]) - weights @ mean
        return weights, intercept, max(1, *(n_rounds for _, _, n_rounds in solved))

    def _unseen_scores(
        self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray, fold: NDArray[np.int64]
    ) -> FloatArray:
        """As in the base, but with the scaling and the width of all bags, which have seen no labels."""
        bag_of_prototype = bags.bag_of_instance

        def scores_of_fold(train: NDArray[np.int64], test: NDArray[np.int64]) -> FloatArray:
            own = self._features[np.isin(bag_of_prototype, train)]
            weights, intercept, _ = self._machines(own[:, train], targets[train], weight[train])
            return own[:, test].T.astype(np.float64) @ weights.T + intercept

        return out_of_fold(scores_of_fold, fold)

    def _raw_scores(self, bags: Bags) -> FloatArray:
        features = similarities(self.prototypes_, self.scaler_.transform(bags), self.gamma_)
        return features.T.astype(np.float64) @ self.coef_.T + self.intercept_

    def _instance_scores(self, bags: Bags) -> FloatArray:
        bags = self.scaler_.transform(bags)
        alone = Bags.from_arrays(bags.instances, np.arange(bags.n_instances + 1), check_finite=False)
        scores = np.zeros((bags.n_instances, len(self.coef_)))
        for k in range(len(self.coef_.T)):  # one chosen instance at a time: there are few, but perhaps many instances
            similarity = similarities(self.prototypes_[k : k + 1], alone, self.gamma_)[0]
            best = np.maximum.reduceat(similarity, bags.offsets[:-1])
            nearest = similarity == np.repeat(best, bags.sizes)
            ties = np.repeat(np.add.reduceat(nearest.astype(float), bags.offsets[:-1]), bags.sizes)
            scores += np.where(nearest, similarity / ties, 0)[:, None] * self.coef_[:, k]
        # Parts of the bag's score: they are calibrated by the slope alone.
        return scores if self.calibration_ is None else scores * self.calibration_[:, 0]


def sparse_machine(
    features: FloatArray, y: FloatArray, cost: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, float, int]:
    """Minimise Σ_k |w_k| + Σ_i cost_i max(0, 1 - y_i (w · f_i + b))², with few features at a time.

    Parameters
    ----------
    features : (n_features, n_bags) array
    y : (n_bags,) array of +1 and -1
    cost : (n_bags,) array

    Returns
    -------
    w : (n_features,) array
    b : float
    n_rounds : int
        How often the working set changed.
    """
    from bagwise.embedded_space._l1_loops import descend

    n_features = len(features)
    w, margin = np.zeros(n_features), np.ones(len(y))
    bias, constant, free = np.zeros(1), np.ones((1, len(y)), dtype=features.dtype), np.zeros(1)
    only = np.zeros(1, dtype=np.int64)
    n_rounds = 0
    while n_rounds < max_iter:
        descend(constant, only, free, y, cost, bias, margin, 100, tol / 10)
        slope = -2 * (features @ (cost * y * np.maximum(margin, 0)).astype(features.dtype))
        violation = np.where(w == 0, np.maximum(np.abs(slope) - 1, 0), np.abs(slope + np.sign(w)))
        if violation.max(initial=0) <= tol:
            break
        n_rounds += 1
        size = max(NEWCOMERS, 2 * np.count_nonzero(w))
        newcomers = np.argsort(-violation, kind="stable")[:size]
        working = np.union1d(np.flatnonzero(w), newcomers[violation[newcomers] > 0])
        part = np.concatenate([features[working], constant])
        weights = np.append(w[working], bias)
        penalty = np.append(np.ones(len(working)), 0.0)
        descend(part, np.arange(len(part)), penalty, y, cost, weights, margin, MAX_PASSES, tol / 2)
        w[working], bias[0] = weights[:-1], weights[-1]
        margin = 1 - y * (weights[:-1] @ part[:-1] + bias[0])  # anew, so that rounding cannot pile up
    return w, float(bias[0]), n_rounds
