"""What miFV and miVLAD share: instances projected, bags coded against a codebook, a linear SVM on the codes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bagwise.bags import Bags
from bagwise.base import BagClassifier, FloatArray, check_bags
from bagwise.embedded_space.mixture import Projection
from bagwise.preprocessing import SCALINGS, InstanceScaler

CODE_CONSTRAINTS: dict[str, list] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "energy": [Interval(Real, 0, 1, closed="right")],
    "scaling": [StrOptions({s for s in SCALINGS if s}), None],
    "random_state": ["random_state"],
}


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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the projection and the codebook from all instances, without labels."""
        self._validate_params()
        bags = check_bags(self, X, reset=True)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        x = self.scaler_.transform(bags).instances
        self.projection_ = Projection.fit(x, self.energy)
        self._fit_codebook(self.projection_(x), check_random_state(self.random_state))
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
    def _fit_codebook(self, x: FloatArray, rng: np.random.RandomState) -> None:
        """Learn from projected instances."""

    @abstractmethod
    def _codes(self, x: FloatArray, bags: Bags) -> FloatArray:
        """(n_bags, n_codes) sums over each bag's projected instances, before they are normalised."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BagCodeSVC(BagClassifier):
    """Base of the classifiers that put a linear SVM on the codes of bags."""

    coder: type[BagCoder]

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
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
        class_weight: dict | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.energy = energy
        self.scaling = scaling
        self.class_weight = class_weight
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        from sklearn.svm import LinearSVC  # here, because it is slow to import
        from sklearn.utils import compute_class_weight

        self._validate_params()
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self.coder_ = self.coder(self.n_components, energy=self.energy, scaling=self.scaling, random_state=seed)
        codes = self.coder_.fit(bags).transform(bags)
        if isinstance(self.class_weight, dict):
            labels = targets.argmax(axis=1) if targets.shape[1] > 1 else targets[:, 0].astype(int)
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[labels])
            weight = weight * by_class[labels]
        balance = "balanced" if self.class_weight == "balanced" else None
        self.coef_ = np.empty((targets.shape[1], codes.shape[1]))
        self.intercept_ = np.empty(targets.shape[1])
        for k in range(targets.shape[1]):
            machine = LinearSVC(C=self.C, class_weight=balance, random_state=seed, max_iter=10000)
            machine.fit(codes, targets[:, k], sample_weight=weight)
            self.coef_[k], self.intercept_[k] = machine.coef_[0], machine.intercept_[0]

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return self.coder_.transform(bags) @ self.coef_.T + self.intercept_
