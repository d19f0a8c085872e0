"""Support vector machines on a kernel between bags, and the first of these kernels, MI-Kernel."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions

from bagwise.bag_space.kernels import mean_squared_distance, self_kernel, set_kernel
from bagwise.bags import Bags
from bagwise.base import BagClassifier, FloatArray
from bagwise.preprocessing import SCALINGS, InstanceScaler

GAUSSIAN_CONSTRAINTS: dict[str, list] = {
    "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
    "gamma_factor": [Interval(Real, 0, None, closed="neither")],
}
# LIBSVM's own tolerance, 1e-3, leaves the order of the bags visible in the third digit of the scores.
TOLERANCE = 1e-4


class BagKernelSVC(BagClassifier):
    """Base of the classifiers that train a support vector machine on a kernel matrix between bags.

    A method says how to make the matrix of the training bags, what to keep of the bags that became support vectors,
    and how to compare new bags with those. All binary problems share the one matrix.
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "C": [Interval(Real, 0, None, closed="neither")],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    C: float
    scaling: str | None
    class_weight: dict | str | None

    @abstractmethod
    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_]) -> FloatArray:
        """(n_bags, n_bags) kernel of the scaled training bags."""

    @abstractmethod
    def _keep(self, bags: Bags, support: NDArray[np.int64]) -> None:
        """Remember what `_support_kernel` needs of the training bags with these indices."""

    @abstractmethod
    def _support_kernel(self, bags: Bags) -> FloatArray:
        """(n_bags, n_support) kernel between scaled bags and the support bags."""

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        from sklearn.svm import SVC  # here, because it is slow to import

        self._validate_params()
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        bags = self.scaler_.transform(bags)
        kernel = self._training_kernel(bags, targets)
        balance = "balanced" if self.class_weight == "balanced" else None
        if isinstance(self.class_weight, dict):
            weight = weight * self._weight_by_label(targets)
        n_problems = targets.shape[1]
        dual = np.zeros((n_problems, len(bags)))
        self.intercept_ = np.zeros(n_problems)
        for k in range(n_problems):
            machine = SVC(C=self.C, kernel="precomputed", class_weight=balance, tol=TOLERANCE)
            machine.fit(kernel, targets[:, k], sample_weight=weight)
            dual[k, machine.support_] = machine.dual_coef_[0]
            self.intercept_[k] = machine.intercept_[0]
        self.support_ = np.flatnonzero(np.any(dual != 0, axis=0))
        self.dual_coef_ = dual[:, self.support_]
        self._keep(bags, self.support_)

    def _weight_by_label(self, targets: NDArray[np.bool_]) -> FloatArray:
        codes = targets.argmax(axis=1) if targets.shape[1] > 1 else targets[:, 0].astype(int)
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return by_class[codes]

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return self._support_kernel(self.scaler_.transform(bags)) @ self.dual_coef_.T + self.intercept_


class SetKernelSVC(BagKernelSVC):
    """Base of the methods whose kernel is a weighted sum of a Gaussian kernel over all pairs of instances."""

    _parameter_constraints = {  # noqa: RUF012
        **BagKernelSVC._parameter_constraints,
        **GAUSSIAN_CONSTRAINTS,
        "normalization": [StrOptions({"average", "feature"})],
    }

    gamma: float | str
    gamma_factor: float
    normalization: str

    def _instance_weights(self, bags: Bags) -> FloatArray:
        """(n_instances,) weight of each instance in its bag."""
        return np.ones(bags.n_instances)

    def _norm(self, bags: Bags, weight: FloatArray) -> FloatArray:
        """(n_bags,) what to divide the rows of the sums by."""
        if self.normalization == "average":
            return np.add.reduceat(weight, bags.offsets[:-1])
        return np.sqrt(self_kernel(bags, gamma=self.gamma_, weight=weight))

    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_]) -> FloatArray:
        self.gamma_ = gaussian_width(self.gamma, self.gamma_factor, bags)
        weight = self._instance_weights(bags)
        kernel = set_kernel(bags, gamma=self.gamma_, weight_a=weight)
        norm = self._norm(bags, weight) if self.normalization == "average" else np.sqrt(np.diag(kernel))
        return kernel / norm / norm[:, None]

    def _keep(self, bags: Bags, support: NDArray[np.int64]) -> None:
        kept = bags[support]
        weight = self._instance_weights(kept)
        self.support_instances_ = kept.instances
        self.support_offsets_ = kept.offsets
        self.support_weight_ = weight / np.repeat(self._norm(kept, weight), kept.sizes)

    def _support_kernel(self, bags: Bags) -> FloatArray:
        kept = Bags.from_arrays(self.support_instances_, self.support_offsets_, check_finite=False)
        bags = bags.with_instances(in_form_of(kept.instances, bags.instances))
        weight = self._instance_weights(bags)
        kernel = set_kernel(bags, kept, gamma=self.gamma_, weight_a=weight, weight_b=self.support_weight_)
        return kernel / self._norm(bags, weight)[:, None]


class MIKernelSVC(SetKernelSVC):
    """Support vector machine with the normalised set kernel of Gärtner et al. (MI-Kernel, also called NSK).

    Two bags are compared by the sum of a Gaussian kernel over all pairs of their instances, normalised for the sizes
    of the bags. The sums are formed a block of pairs at a time.

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    gamma : float or "scale"
        Width of the Gaussian kernel exp(-γ ‖x - y‖²). "scale" takes ``gamma_factor`` over the mean squared distance
        between instances. (The power p of the published kernel is contained in it: exp(-γ d²)^p = exp(-γp d²).)
    gamma_factor : float
    normalization : {"feature", "average"}
        Divide the sum by the norms of both bags in feature space, so that each bag has kernel 1 with itself, or by
        the sizes of both bags.
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    class_weight : dict, "balanced" or None
        Factors of C by the label of a bag.

    Attributes
    ----------
    dual_coef_ : (n_problems, n_support) array
    intercept_ : (n_problems,) array
    support_ : (n_support,) array
        Indices of the training bags that any of the problems needs.
    support_instances_, support_offsets_
        Their instances, scaled.
    support_weight_ : (n,) array
        What each of these instances counts, normalisation included.
    gamma_ : float

    References
    ----------
    Thomas Gärtner, Peter Flach, Adam Kowalczyk, Alex Smola: Multi-Instance Kernels. ICML 2002.

    Examples
    --------
    >>> from bagwise import MIKernelSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MIKernelSVC().fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    def __init__(
        self,
        C: float = 10.0,
        gamma: float | str = "scale",
        *,
        gamma_factor: float = 2.0,
        normalization: str = "feature",
        scaling: str | None = "auto",
        class_weight: dict | str | None = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.normalization = normalization
        self.scaling = scaling
        self.class_weight = class_weight


def gaussian_width(gamma: float | str, factor: float, bags: Bags) -> float:
    """γ as a number: "scale" is the factor over the mean squared distance between instances."""
    if gamma != "scale":
        return float(gamma)
    distance = mean_squared_distance(bags)
    return factor / distance if distance > 0 else 1.0


def in_form_of(reference: Any, instances: Any) -> Any:
    """The instances as CSR matrix or as array, whichever the reference is."""
    if sparse.issparse(reference) == sparse.issparse(instances):
        return instances
    return instances.toarray() if sparse.issparse(instances) else sparse.csr_array(instances)
