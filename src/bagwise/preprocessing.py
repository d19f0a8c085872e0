"""Transformers that work on the instances of bags: bags in, bags out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from bagwise.bags import Bags
from bagwise.base import check_bags
from bagwise.mapped import forget, row_blocks

SCALINGS = ("auto", "standard", "unit", "global", None)


class _InstanceTransformer(TransformerMixin, BaseEstimator):
    def transform(self, X: Any) -> Bags:
        """Return the bags with transformed instances."""
        check_is_fitted(self)
        bags = check_bags(self, X, reset=False)
        return bags.with_instances(self._rows(bags.instances))

    def _rows(self, instances: Any) -> Any:
        raise TypeError(f"{type(self).__name__} does not transform instances")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OnInstances(_InstanceTransformer):
    """Apply any scikit-learn transformer to the instances of bags.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from bagwise import OnInstances, RMISVC
    >>> model = make_pipeline(OnInstances(PCA(20)), RMISVC())
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer on all instances, without labels."""
        bags = check_bags(self, X, reset=True)
        self.transformer_ = clone(self.transformer).fit(bags.instances)
        return self

    def _rows(self, instances: Any) -> Any:
        return self.transformer_.transform(instances)


class InstanceScaler(_InstanceTransformer):
    """Bring instances to one scale.

    Parameters
    ----------
    scaling : {"auto", "standard", "unit", "global", None}
        "standard" gives each column mean 0 and variance 1 over all instances (CSR columns are not centred, so that
        they stay sparse); "unit" divides each instance by its Euclidean norm; "global" divides all of them by one
        number, the root mean square of their norms, for data whose lengths tell something, such as weighted words;
        "auto" does first "standard", then "unit", on dense data, and only "unit" on sparse data; None changes nothing.
    """

    def __init__(self, scaling: str | None = "auto") -> None:
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure the columns."""
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling must be one of {SCALINGS}, not {self.scaling!r}")
        x = check_bags(self, X, reset=True).instances
        is_sparse = sparse.issparse(x)
        self.mean_ = self.scale_ = None
        if self.scaling == "standard" or (self.scaling == "auto" and not is_sparse):
            if is_sparse:
                mean, variance = mean_variance_axis(x.astype(np.float64), axis=0)
            else:
                mean = sum(block.sum(axis=0, dtype=np.float64) for block in row_blocks(x)) / len(x)
                variance = _variance(x, mean)
                self.mean_ = mean.astype(x.dtype)
            deviation = np.sqrt(np.maximum(variance, 0))
            # A constant column tells nothing; dividing its rounding errors by themselves would make noise of it. Those
            # of the mean grow with the number of rows.
            rounding = max(10 * np.finfo(x.dtype).eps, x.shape[0] * np.finfo(np.float64).eps)
            constant = deviation <= rounding * np.maximum(np.abs(mean), np.finfo(x.dtype).tiny)
            self.scale_ = np.where(constant, 0, 1 / np.where(constant, 1, deviation)).astype(x.dtype)
        elif self.scaling == "global":
            squares = sum(_sum_of_squares(block) for block in ([x.data] if is_sparse else row_blocks(x)))
            self.scale_ = np.full(x.shape[1], np.sqrt(x.shape[0] / squares) if squares else 1, dtype=x.dtype)
        return self

    def _rows(self, instances: Any) -> Any:
        unit = self.scaling in ("auto", "unit")
        if sparse.issparse(instances):
            if self.mean_ is not None:  # centred columns are dense anyway
                return self._rows(instances.toarray())
            factor = 1 if self.scale_ is None else self.scale_[instances.indices]
            data = instances.data * factor
            if unit:
                scaled = sparse.csr_array((data, instances.indices, instances.indptr), shape=instances.shape)
                norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
                data = data * np.repeat(_inverse(norm), np.diff(instances.indptr)).astype(data.dtype)
            return sparse.csr_array((data, instances.indices, instances.indptr), shape=instances.shape)
        if self.scale_ is not None:
            instances = instances * self.scale_ if self.mean_ is None else (instances - self.mean_) * self.scale_
        if unit:
            norm = np.sqrt(np.einsum("ij,ij->i", instances, instances))
            instances = instances * _inverse(norm)[:, None].astype(instances.dtype)
        return instances


class InstanceNystroem(_InstanceTransformer):
    """Map instances so that their inner products approximate the Gaussian kernel exp(-γ ‖x - x'‖²).

    Parameters
    ----------
    n_components : int
        Number of landmarks, drawn from the instances.
    gamma : float or "scale"
        "scale" takes one over the mean squared distance of instances to their centre, times two.
    """

    def __init__(
        self,
        n_components: int = 256,
        gamma: float | str = "scale",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks and factor their kernel matrix."""
        x = check_bags(self, X, reset=True).instances
        rng = check_random_state(self.random_state)
        n = x.shape[0]
        chosen = np.sort(rng.permutation(n)[: self.n_components])
        self.landmarks_ = x[chosen].toarray() if sparse.issparse(x) else np.array(x[chosen])
        if self.gamma == "scale":
            self.gamma_ = default_gamma(x)
        else:
            self.gamma_ = float(self.gamma)
        values, vectors = np.linalg.eigh(self._kernel(self.landmarks_).astype(np.float64))
        inverse = np.where(values > 1e-10 * values.max(), 1 / np.sqrt(np.maximum(values, 1e-300)), 0)
        self.normalization_ = ((vectors * inverse) @ vectors.T).astype(self.landmarks_.dtype)
        return self

    def _kernel(self, x: Any) -> np.ndarray:
        return np.exp(-self.gamma_ * euclidean_distances(x, self.landmarks_, squared=True))

    def _rows(self, instances: Any) -> np.ndarray:
        return self._kernel(instances) @ self.normalization_


def default_gamma(x: Any) -> float:
    """One over the mean squared distance between two rows: a Gaussian kernel's γ that suits their spread."""
    total = _sum_of_squares(x.data if sparse.issparse(x) else x)
    spread = total / x.shape[0] - np.sum(np.asarray(x.mean(axis=0), dtype=np.float64) ** 2)
    # Rounding leaves a little where all rows are the same.
    return float(1 / (2 * spread)) if spread > 1e-12 * total / x.shape[0] else 1.0


def _sum_of_squares(values: np.ndarray) -> float:
    flat = values.ravel()
    return float(np.einsum("i,i->", flat, flat, dtype=np.float64))


def _variance(x: np.ndarray, mean: np.ndarray, rows: int = 4096) -> np.ndarray:
    """Column variances in two passes, a block of rows at a time."""
    total = np.zeros(x.shape[1])
    for start in range(0, len(x), rows):
        block = x[start : start + rows]
        total += ((block - mean) ** 2).sum(axis=0)
        forget(block)
    return total / len(x)


def _inverse(norm: np.ndarray) -> np.ndarray:
    """1 / norm, and 0 for rows of zeros, which stay as they are."""
    return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
