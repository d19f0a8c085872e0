"""How a fitted RMI-SVM scores: instances by a linear function, bags by pooling and calibration, tensors as tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bagwise._utils.mapped import bag_blocks
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer, check_bags
from bagwise.calibration import calibrated
from bagwise.pooling import noisy_or_log_odds, size_prior, softplus
from bagwise.preprocessing import InstanceNystroem, InstanceScaler, gaussian_gamma, row_weights
from bagwise.rmi.tensors import TensorBags, as_arrays, dispatched, like, linear_scores, tensor_bags


def _tensors_for_tensors(method: Callable[[Any, Any], NDArray]) -> Callable[[Any, Any], Any]:
    """Make a method of bags answer with tensors where scikit-learn's array API dispatch asks for it."""

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        values = method(self, X)
        return like(X, values) if dispatched(X) else values

    return call


class View(NamedTuple):
    """How the linear function sees instances."""

    scaling: str | None
    kernel: str


@dataclass(frozen=True)
class InstanceMap:
    """What happens to instances before the linear function: scaling, and perhaps a map for a Gaussian kernel."""

    scaler: InstanceScaler
    kernel_map: InstanceNystroem | None

    @classmethod
    def fit(cls, bags: Bags, view: View, weight: FloatArray, rng: RandomState, gamma: Any, n_components: int) -> Self:
        """Learn the scaling from all bags, and the map where the view asks for one."""
        scaler = InstanceScaler(view.scaling).fit(bags, sample_weight=weight)
        if view.kernel == "linear":
            return cls(scaler, None)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        # Of a file that is too large for memory, a first block stands for all.
        part, block = next(bag_blocks(bags))
        scaled = scaler.transform(block)
        width = gaussian_gamma(gamma, scaled.instances, row_weights(scaled, weight[part]))
        return cls(scaler, InstanceNystroem(n_components, width, seed).fit(scaled))

    def __call__(self, bags: Bags) -> Bags:
        bags = self.scaler.transform(bags)
        return bags if self.kernel_map is None else self.kernel_map.transform(bags)

    @property
    def n_features(self) -> int:
        """How many columns come out."""
        return self.scaler.n_features_in_ if self.kernel_map is None else len(self.kernel_map.landmarks_)


class LinearScorer(InstanceScorer):
    """A bag classifier whose instances are scored by a linear function after scaling, and perhaps a kernel map."""

    scaler_: InstanceScaler
    kernel_map_: InstanceNystroem | None
    coef_: FloatArray
    intercept_: FloatArray
    pooling_: str
    calibration_: FloatArray | None

    @property
    def _map(self) -> InstanceMap:
        return InstanceMap(self.scaler_, self.kernel_map_)

    def _checked(self, X: Any) -> Bags:
        if not dispatched(X):
            return super()._checked(as_arrays(X))
        check_is_fitted(self)
        tensors = tensor_bags(X)
        # One row of zeros stands for all: only the number of columns is compared.
        check_bags(self, Bags(np.zeros((1, tensors.instances.shape[1]))), reset=False)
        return cast(Bags, tensors)  # what scores bags here knows both

    def _instance_scores(self, bags: Bags) -> FloatArray:
        if isinstance(bags, TensorBags):
            return self._tensor_scores(bags)
        return np.concatenate([self._block_scores(block) for _, block in bag_blocks(bags)])

    def _pooled(self, bags: Bags, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scores with what the pooling adds to them, and the (n_bags, n_problems) calibrated log-odds."""
        if self.pooling_ == "normalized":
            scores = scores + np.repeat(size_prior(bags.offsets), np.diff(bags.offsets))[:, None]
        log_odds = noisy_or_log_odds(scores, bags.offsets)
        return scores, log_odds if self.calibration_ is None else calibrated(log_odds, self.calibration_)

    def _bag_scores(self, bags: Bags) -> FloatArray:
        if isinstance(bags, TensorBags):
            return self._pooled(bags, self._tensor_scores(bags))[1]
        return np.concatenate([self._pooled(block, self._block_scores(block))[1] for _, block in bag_blocks(bags)])

    def _instance_log_survival(self, bags: Bags, scores: FloatArray) -> FloatArray:
        """(n_instances, n_problems) -log(1 - p): the bag's -log(1 - P), in shares that the scores give."""
        scores, log_odds = self._pooled(bags, scores)
        own, sizes = softplus(scores), np.diff(bags.offsets)
        together = np.add.reduceat(own, bags.offsets[:-1], axis=0)
        share = np.divide(own, np.repeat(together, sizes, axis=0), out=np.zeros_like(own), where=own > 0)
        return share * np.repeat(softplus(log_odds), sizes, axis=0)

    def _block_scores(self, bags: Bags) -> FloatArray:
        z = np.asarray(self._map(bags).instances @ self.coef_.T, dtype=np.float64) + self.intercept_
        return z if bags.prior is None else z + bags.prior[:, None]

    def _tensor_scores(self, bags: TensorBags) -> FloatArray:
        return linear_scores(bags, self.scaler_, self.kernel_map_, self.coef_, self.intercept_)

    @_tensors_for_tensors
    def decision_function(self, X: Any) -> FloatArray:
        """(n_bags,) score of the positive class, or (n_bags, n_classes) scores of each against the rest."""
        return super().decision_function(X)

    @_tensors_for_tensors
    def predict(self, X: Any) -> NDArray:
        """(n_bags,) the most likely label of each bag."""
        return super().predict(X)

    @_tensors_for_tensors
    def predict_proba(self, X: Any) -> FloatArray:
        """(n_bags, n_classes) probabilities, calibrated where ``calibration_`` is not None, made to sum to one."""
        return super().predict_proba(X)

    @_tensors_for_tensors
    def instance_scores(self, X: Any) -> FloatArray:
        """(n_instances,) score of every instance, or (n_instances, n_classes) with more than two classes.

        In the order of ``bags.instances``: the higher, the more it makes its bag positive.
        """
        return super().instance_scores(X)

    @_tensors_for_tensors
    def instance_proba(self, X: Any) -> FloatArray:
        """(n_instances,) probability that each instance is positive, or (n_instances, n_classes).

        The noisy-OR of a bag's instances is the bag's probability: 1 - Π (1 - p_ij) = P_i, where P_i is the calibrated
        one (of the class against the rest, with more than two classes). Calibration changes -log(1 - P_i), and every
        instance of the bag gets the share of it that its score gives, so that within a bag the order is that of
        ``instance_scores``.
        """
        bags = self._checked(X)
        if isinstance(bags, TensorBags):
            survival = self._instance_log_survival(bags, self._tensor_scores(bags))
        else:
            parts = [self._instance_log_survival(block, self._block_scores(block)) for _, block in bag_blocks(bags)]
            survival = np.concatenate(parts)
        return self._one_or_all(-np.expm1(-survival))
