"""Transformers of instances: bags in, bags out; a table in, a table out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from bagwise._utils.columns import (
    ROWS_AT_ONCE,
    column_medians,
    mean_and_variance,
    mean_square,
    rounding_of,
    signed_roots,
)
from bagwise._utils.sklearn_private import (
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
    wrap_data_with_container,
)
from bagwise.bags import Bags, is_ragged
from bagwise.base import FloatArray, check_bags

SCALINGS = ("auto", "standard", "unit", "standard-unit", "root-unit", "global", None)
UNIT_SCALINGS = ("unit", "standard-unit", "root-unit")  # after which all instances have length one
SCALING_CONSTRAINT = [StrOptions({name for name in SCALINGS if name}), None]
GAMMA_CONSTRAINT = [StrOptions({"scale", "distance"}), Interval(Real, 0, None, closed="neither")]
# With so many columns or fewer, the length of an instance says too much to be taken away: of a single column, unit
# length leaves the sign.
FEW_COLUMNS = 10


class _OfInstances(ABC):
    """What transformers of instances share: the same container out as in.

    No subclass of scikit-learn's own mixin, which would try to make a data frame of bags too where
    ``set_output(transform="pandas")`` asks for data frames.
    """

    @property
    def _allow_nan(self) -> bool:
        return False

    def transform(self, X: Any) -> Any:
        """Return Bags with transformed instances where X is bags, and a table where X is a table."""
        check_is_fitted(self)
        bags = check_bags(self, X, reset=False, allow_nan=self._allow_nan)
        rows = self._rows(bags.instances)
        if not is_ragged(X):
            return wrap_data_with_container("transform", rows, X, self)
        names = self.get_feature_names_out() if hasattr(self, "feature_names_in_") else None  # type: ignore[attr-defined]
        return bags.with_instances(rows, feature_names=names, check_finite=self._allow_nan)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X and transform it."""
        return self.fit(X, y, **fit_params).transform(X)  # type: ignore[attr-defined]

    @abstractmethod
    def _rows(self, instances: Any) -> Any:
        """Return transformed rows, dense or CSR."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class OnInstances(_OfInstances, TransformerMixin, BaseEstimator):
    """Apply any scikit-learn transformer to the instances of bags.

    Parameters
    ----------
    transformer : scikit-learn transformer
        It is cloned, and fitted to all instances without labels.

    Attributes
    ----------
    transformer_ : the fitted transformer

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.impute import SimpleImputer
    >>> from bagwise import Bags, OnInstances
    >>> bags = Bags([np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([[5.0, 6.0]])])
    >>> OnInstances(SimpleImputer()).fit_transform(bags)[0]
    array([[1., 5.],
           [3., 4.]])
    """

    _parameter_constraints = {"transformer": [HasMethods(["fit", "transform"])]}  # noqa: RUF012

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer to all instances, without labels.

        Parameters
        ----------
        X : bags, or a table of instances
        y : ignored
        """
        self._validate_params()
        bags = check_bags(self, X, reset=True, allow_nan=self._allow_nan)
        self.transformer_ = clone(self.transformer).fit(bags.instances)
        return self

    @property
    def _allow_nan(self) -> bool:
        return get_tags(self.transformer).input_tags.allow_nan

    def _rows(self, instances: Any) -> Any:
        rows = self.transformer_.transform(instances)
        # set_config(transform_output="pandas") reaches the inner transformer too.
        return rows if sparse.issparse(rows) else np.asarray(rows)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns that come out, as the inner transformer has them."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        return self.transformer_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.transformer)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags


def automatic_scaling(instances: Any) -> str:
    """What `InstanceScaler` does to these instances, dense or CSR, when nobody says what to do."""
    if sparse.issparse(instances):
        return "unit"
    return "standard" if instances.shape[1] <= FEW_COLUMNS else "standard-unit"


class InstanceScaler(_OfInstances, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bring instances to one scale.

    Parameters
    ----------
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}, default "auto"
        "standard" gives each column mean 0 and variance 1 over all instances (CSR columns are not centred, so that
        they stay sparse); "unit" divides each instance by its Euclidean norm; "standard-unit" does one after the other;
        "root-unit" does both to the square roots of how far values lie from their column's median, above or below it,
        so that few large values do not drown the many small ones (of CSR, from zero); "global" divides all of them by
        one number, the root mean square of their norms, for data whose lengths tell something, such as weighted words;
        None changes nothing. "auto" is "unit" on sparse data, "standard" on dense
        data of ten columns or fewer, and "standard-unit" where there are more.

    Attributes
    ----------
    scaling_ : str or None
        What was done; never "auto".
    centre_ : (n_features,) array or None
        From where roots are taken: the median of each column, of a file that is larger than memory of a first block.
    mean_ : (n_features,) array or None
        What is subtracted from each column, or from its roots.
    scale_ : (n_features,) array or None
        What each column is then divided by; infinity for a column without variance, which becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise import Bags, InstanceScaler
    >>> bags = Bags([np.array([[1.0, 10.0], [2.0, 10.0]]), np.array([[3.0, 40.0]])])
    >>> scaler = InstanceScaler("standard").fit(bags)
    >>> scaler.mean_
    array([ 2., 20.])
    >>> scaler.transform(bags)[1].round(2)
    array([[1.22, 1.41]])
    """

    _parameter_constraints = {"scaling": SCALING_CONSTRAINT}  # noqa: RUF012 - scikit-learn's own convention

    def __init__(self, scaling: str | None = "auto") -> None:
        self.scaling = scaling

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Measure the columns.

        Parameters
        ----------
        X : bags, or a table of instances
        y : ignored
        sample_weight : (n_bags,) array, optional
            A bag of weight two counts as the bag twice.
        """
        self._validate_params()
        bags = check_bags(self, X, reset=True)
        x, weight = bags.instances, row_weights(bags, sample_weight)
        is_sparse = sparse.issparse(x)
        self.scaling_ = automatic_scaling(x) if self.scaling == "auto" else self.scaling
        self.centre_ = self.mean_ = self.scale_ = None
        if self.scaling_ in ("standard", "standard-unit", "root-unit"):
            mean, variance = mean_and_variance(x, weight)
            deviation = np.sqrt(variance)
            # A constant column tells nothing; dividing its rounding errors by themselves would make noise of it.
            constant = deviation <= rounding_of(x) * np.maximum(np.abs(mean), np.finfo(x.dtype).tiny)
            if self.scaling_ == "root-unit":
                if not is_sparse:
                    self.centre_ = column_medians(x, weight).astype(x.dtype)
                mean, variance = mean_and_variance(x, weight, self._rooted)
                deviation = np.sqrt(variance)
                constant |= deviation == 0
            if not is_sparse:
                self.mean_ = mean.astype(x.dtype)
            self.scale_ = np.where(constant, np.inf, deviation).astype(x.dtype)
        elif self.scaling_ == "global":
            size = np.sqrt(mean_square(x, weight))
            self.scale_ = np.full(x.shape[1], size if size > 0 else 1, dtype=x.dtype)
        return self

    def _rooted(self, instances: Any) -> Any:
        """Square roots of the distances from the centre, with the sign of the side; a copy."""
        if sparse.issparse(instances):
            data = signed_roots(instances.data)
            return type(instances)((data, instances.indices, instances.indptr), shape=instances.shape)
        return signed_roots(instances if self.centre_ is None else instances - self.centre_)

    def _rooted_in_parts(self, instances: np.ndarray) -> np.ndarray:
        """The same of a large table, for which there may be no room several times."""
        rooted = np.empty_like(instances, order="C", subok=False)
        for start in range(0, len(instances), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            rooted[rows] = self._rooted(instances[rows])
        return rooted

    def _rows(self, instances: Any) -> Any:
        unit = self.scaling_ in UNIT_SCALINGS
        if sparse.issparse(instances):
            if self.mean_ is not None:  # centred columns are dense anyway
                return self._rows(instances.toarray())
            if self.scaling_ == "root-unit":
                instances = self._rooted(instances)
            data = instances.data if self.scale_ is None else instances.data / self.scale_[instances.indices]
            if unit:
                scaled = sparse.csr_array((data, instances.indices, instances.indptr), shape=instances.shape)
                norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
                data = data * np.repeat(_inverse(norm), np.diff(instances.indptr)).astype(data.dtype)
            return type(instances)((data, instances.indices, instances.indptr), shape=instances.shape)
        own = None  # a copy, which may be changed
        if self.scaling_ == "root-unit":
            instances = own = self._rooted_in_parts(instances)
        if self.mean_ is not None:
            instances = own = np.subtract(instances, self.mean_, out=own)
        if self.scale_ is not None:
            instances = own = np.multiply(instances, 1 / self.scale_, out=own)  # faster than dividing
        if unit:
            norm = np.sqrt(np.einsum("ij,ij->i", instances, instances))
            inverse = _inverse(norm)[:, None].astype(instances.dtype)
            instances = np.multiply(instances, inverse, out=own)
        return instances


class InstanceNystroem(_OfInstances, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Map instances so that their inner products approximate the Gaussian kernel exp(-γ ‖x - x'‖²).

    Parameters
    ----------
    n_components : int, default 256
        Number of landmarks, drawn from the instances.
    gamma : float, "scale" or "distance", default "distance"
        Width of the kernel; see `gaussian_gamma`.
    random_state : int, RandomState or None, default None
        Which instances are landmarks.

    Attributes
    ----------
    landmarks_ : (n_landmarks, n_features) array
    normalization_ : (n_landmarks, n_landmarks) array
        Inverse square root of the kernel of the landmarks.
    gamma_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from bagwise import Bags, InstanceNystroem
    >>> bags = Bags([np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 2.0]])])
    >>> mapped = InstanceNystroem(gamma=0.5).fit_transform(bags)
    >>> float(round(mapped[0][0] @ mapped[1][0], 3)), float(round(np.exp(-0.5 * 4), 3))
    (0.135, 0.135)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": GAMMA_CONSTRAINT,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 256,
        gamma: float | str = "distance",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks and factor their kernel matrix.

        Parameters
        ----------
        X : bags, or a table of instances
        y : ignored
        """
        self._validate_params()
        x = check_bags(self, X, reset=True).instances
        rng = check_random_state(self.random_state)
        chosen = np.sort(rng.permutation(x.shape[0])[: self.n_components])
        self.landmarks_ = x[chosen].toarray() if sparse.issparse(x) else np.array(x[chosen])
        self.gamma_ = gaussian_gamma(self.gamma, x)
        values, vectors = np.linalg.eigh(self._kernel(self.landmarks_).astype(np.float64))
        inverse = np.where(values > 1e-10 * values.max(), 1 / np.sqrt(np.maximum(values, 1e-300)), 0)
        self.normalization_ = ((vectors * inverse) @ vectors.T).astype(self.landmarks_.dtype)
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)

    def _kernel(self, x: Any) -> np.ndarray:
        return np.exp(-self.gamma_ * euclidean_distances(x, self.landmarks_, squared=True))

    def _rows(self, instances: Any) -> np.ndarray:
        return (self._kernel(instances) @ self.normalization_).astype(instances.dtype, copy=False)


def gaussian_gamma(gamma: float | str, x: Any, weight: FloatArray | None = None) -> float:
    """γ of a Gaussian kernel exp(-γ ‖x - x'‖²) as a number.

    Parameters
    ----------
    gamma : float, "scale" or "distance"
        "scale" is what scikit-learn means by it, 1 / (n_features · variance of all values of x). "distance" is one
        over the mean squared distance between two rows, which does not change when columns are shifted. Where all
        columns have the same mean, "scale" is twice "distance".
    x : (n_rows, n_features) array or CSR matrix
    weight : (n_rows,) array, optional
        A row of weight two counts as the row twice.

    Returns
    -------
    float, 1 where all rows are the same

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> gaussian_gamma("scale", x), gaussian_gamma("distance", x)
    (0.5, 0.25)
    """
    if not isinstance(gamma, str):
        return float(gamma)
    mean, variance = mean_and_variance(x, weight)
    spread = float(np.sum(variance))
    rounding = rounding_of(x) ** 2 * float(mean @ mean)  # leaves a little where all rows are the same
    if gamma == "distance":
        return 1 / (2 * spread) if spread > rounding else 1.0
    if gamma == "scale":
        total = spread + float(np.sum((mean - mean.mean()) ** 2))
        return 1 / total if total > rounding else 1.0
    raise ValueError(f'gamma must be a positive number, "scale" or "distance", not {gamma!r}')


def row_weights(bags: Bags, sample_weight: ArrayLike | None) -> FloatArray | None:
    """(n_instances,) weight of each instance, that of its bag; None where all bags weigh the same."""
    if sample_weight is None:
        return None
    weight = check_sample_weight(sample_weight, bags.sizes, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero for all bags: give at least one of them a weight")
    return None if np.ptp(weight) == 0 else np.repeat(weight, bags.sizes)


def _inverse(norm: np.ndarray) -> np.ndarray:
    """1 / norm, and 0 for rows of zeros, which stay as they are."""
    return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
