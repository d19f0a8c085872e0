"""What miFV and miVLAD share: instances projected, bags coded against a codebook, a linear SVM on the codes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from bagwise._utils.mixture import Projection
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray, check_bags
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.calibration import out_of_fold
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler, row_weights

CODE_CONSTRAINTS: dict[str, list] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "energy": [Interval(Real, 0, 1, closed="right")],
    "scaling": SCALING_CONSTRAINT,
    "random_state": ["random_state"],
}

# Few codes and few bags: Newton's method is at the end soon, and nothing is left to chance.
TOLERANCE = 1e-8


class BagCoder(TransformerMixin, BaseEstimator):
    """Base of the transformers that turn a bag into one vector of unit length through a codebook of instances."""

    _parameter_constraints = CODE_CONSTRAINTS

    def __init__(
        self,
        n_components: int = 1,
        *,
        energy: float = 0.95,
        scaling: str | None = "standard",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.energy = energy
        self.scaling = scaling
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the projection and the codebook from all instances, without labels.

        Parameters
        ----------
        X : bags
        y : ignored
        sample_weight : (n_bags,) array, optional
            A bag of weight two counts as the bag twice.
        """
        self._validate_params()
        bags = check_bags(self, X, reset=True)
        weight = row_weights(bags, sample_weight)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=sample_weight)
        x = self.scaler_.transform(bags).instances
        self.projection_ = Projection.fit(x, self.energy, weight)
        self._fit_codebook(self.projection_(x), check_random_state(self.random_state), weight)
        return self

    def transform(self, X: Any) -> FloatArray:
        """(n_bags, n_codes) one vector for each bag."""
        check_is_fitted(self)
        bags = check_bags(self, X, reset=False)
        codes = self._codes(self.projection_(self.scaler_.transform(bags).instances), bags)
        codes = np.sign(codes) * np.sqrt(np.abs(codes))
        norm = np.linalg.norm(codes, axis=1, keepdims=True)
        return codes / np.where(norm > 0, norm, 1)

    @abstractmethod
    def _fit_codebook(self, x: FloatArray, rng: np.random.RandomState, weight: FloatArray | None) -> None:
        """Learn from projected instances and their weights."""

    @abstractmethod
    def _codes(self, x: FloatArray, bags: Bags) -> FloatArray:
        """(n_bags, n_codes) sums over each bag's projected instances, before they are normalised."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BagCodeSVC(CalibratedClassifier):
    """Base of the classifiers that put a linear SVM on the codes of bags."""

    coder: type[BagCoder]

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CODE_CONSTRAINTS,
    }

    def __init__(
        self,
        C: float = 1.0,
        n_components: int = 1,
        *,
        energy: float = 0.95,
        scaling: str | None = "standard",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.energy = energy
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        try:
            super()._fit(bags, targets, weight)
        finally:
            self.__dict__.pop("_training_codes", None)  # of no use after fit

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.coder_ = self.coder(self.n_components, energy=self.energy, scaling=self.scaling, random_state=seed)
        self._training_codes = self.coder_.fit(bags, sample_weight=weight).transform(bags)
        self.coef_, self.intercept_ = self._machines(self._training_codes, targets, weight)

    def _machines(
        self, codes: FloatArray, targets: NDArray[np.bool_], weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(n_problems, n_codes) weights and (n_problems,) intercepts."""
        from sklearn.svm import LinearSVC  # here, because it is slow to import

        coef, intercept = np.empty((targets.shape[1], codes.shape[1])), np.empty(targets.shape[1])
        for k, target in enumerate(targets.T):
            machine = LinearSVC(C=self.C, dual=False, tol=TOLERANCE).fit(codes, target, sample_weight=weight)
            coef[k], intercept[k] = machine.coef_[0], machine.intercept_[0]
        return coef, intercept

    def _unseen_scores(
        self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray, fold: NDArray[np.int64]
    ) -> FloatArray:
        """As in the base, but with the codes of all bags, which have seen no labels."""

        def scores_of_fold(train: NDArray[np.int64], test: NDArray[np.int64]) -> FloatArray:
            coef, intercept = self._machines(self._training_codes[train], targets[train], weight[train])
            return self._training_codes[test] @ coef.T + intercept

        return out_of_fold(scores_of_fold, fold)

    def _raw_scores(self, bags: Bags) -> FloatArray:
        return self.coder_.transform(bags) @ self.coef_.T + self.intercept_
