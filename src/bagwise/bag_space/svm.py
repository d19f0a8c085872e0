"""Support vector machines on a kernel between bags, and the first of these kernels, MI-Kernel."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._utils.matrices import in_form_of
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bag_space.kernels import self_kernel, set_kernel
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.calibration import out_of_fold
from bagwise.preprocessing import GAMMA_CONSTRAINT, SCALING_CONSTRAINT, InstanceScaler, gaussian_gamma, row_weights

GAUSSIAN_CONSTRAINTS: dict[str, list] = {
    "gamma": GAMMA_CONSTRAINT,
    "gamma_factor": [Interval(Real, 0, None, closed="neither")],
}
# LIBSVM's own tolerance, 1e-3, leaves the order of the bags visible in the third digit of the scores.
TOLERANCE = 1e-9


class BagKernelSVC(CalibratedClassifier):
    """Base of the classifiers that train a support vector machine on a kernel matrix between bags.

    A method says how to make the matrix of the training bags, what to keep of the bags that became support vectors,
    and how to compare new bags with those. All binary problems share the one matrix.
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        "scaling": SCALING_CONSTRAINT,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    C: float
    scaling: str | None
    class_weight: dict | str | None

    @abstractmethod
    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
        """(n_bags, n_bags) kernel of the scaled training bags."""

    @abstractmethod
    def _keep(self, bags: Bags, support: NDArray[np.int64]) -> None:
        """Remember what `_support_kernel` needs of the training bags with these indices."""

    @abstractmethod
    def _support_kernel(self, bags: Bags) -> FloatArray:
        """(n_bags, n_support) kernel between scaled bags and the support bags."""

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        try:
            super()._fit(bags, targets, weight)
        finally:
            self.__dict__.pop("_matrix", None)  # large, and of no use after fit

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        self._matrix = self._training_kernel(bags, targets, weight)
        dual, self.intercept_ = self._machines(self._matrix, targets, weight)
        self.support_ = np.flatnonzero(np.any(dual != 0, axis=0))
        self.dual_coef_ = dual[:, self.support_]
        self._keep(bags, self.support_)

    def _machines(
        self, kernel: FloatArray, targets: NDArray[np.bool_], weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(n_problems, n_bags) dual coefficients and (n_problems,) intercepts."""
        from sklearn.svm import SVC  # here, because it is slow to import

        dual, intercept = np.zeros(targets.T.shape), np.zeros(targets.shape[1])
        for k, target in enumerate(targets.T):
            machine = SVC(C=self.C, kernel="precomputed", tol=TOLERANCE).fit(kernel, target, sample_weight=weight)
            dual[k, machine.support_] = machine.dual_coef_[0]
            intercept[k] = machine.intercept_[0]
        return dual, intercept

    def _unseen_scores(
        self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray, fold: NDArray[np.int64]
    ) -> FloatArray:
        """As in the base, but with the scaling and the kernel of all bags, which have seen no labels."""

        def scores_of_fold(train: NDArray[np.int64], test: NDArray[np.int64]) -> FloatArray:
            kernel = self._kernel_without(train, targets)
            dual, intercept = self._machines(kernel[np.ix_(train, train)], targets[train], weight[train])
            return kernel[np.ix_(test, train)] @ dual.T + intercept

        return out_of_fold(scores_of_fold, fold)

    def _kernel_without(self, train: NDArray[np.int64], targets: NDArray[np.bool_]) -> FloatArray:
        """(n_bags, n_bags) kernel, for which no labels but those of some training bags were looked at."""
        return self._matrix

    def _raw_scores(self, bags: Bags) -> FloatArray:
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

    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
        self.gamma_ = gaussian_width(self.gamma, self.gamma_factor, bags, weight)
        share = self._instance_weights(bags)
        kernel = set_kernel(bags, gamma=self.gamma_, weight_a=share)
        norm = np.sqrt(np.diag(kernel)) if self.normalization == "feature" else self._norm(bags, share)
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
    gamma : float, "scale" or "distance", default "distance"
        Width of the Gaussian kernel exp(-γ ‖x - y‖²). "distance" is one over the mean squared distance between
        instances, "scale" what scikit-learn means by it. (The power p of the published kernel is contained in it:
        exp(-γ d²)^p = exp(-γp d²).)
    gamma_factor : float, default 2
        What "scale" and "distance" are multiplied by.
    normalization : {"feature", "average"}
        Divide the sum by the norms of both bags in feature space, so that each bag has kernel 1 with itself, or by
        the sizes of both bags.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on parts of the same kernel matrix.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    def __init__(
        self,
        C: float = 10.0,
        gamma: float | str = "distance",
        *,
        gamma_factor: float = 2.0,
        normalization: str = "feature",
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.normalization = normalization
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive


def gaussian_width(gamma: float | str, factor: float, bags: Bags, weight: FloatArray) -> float:
    """γ as a number: the factor is for those that follow from the data."""
    value = gaussian_gamma(gamma, bags.instances, row_weights(bags, weight))
    return factor * value if isinstance(gamma, str) else value
