"""PPMM: bags compared by how their instances spread over the components of a mixture model."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._utils.mixture import ROWS_PER_BLOCK, Mixture
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bag_space.svm import BagKernelSVC
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.preprocessing import row_weights

# The powers that "alignment" chooses from: from hardly more than presence to the dominant component alone.
POWERS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)


class PPMMKernelSVC(BagKernelSVC):
    """Support vector machine with the p-posterior mixture-model kernel.

    A mixture of Gaussians of one common variance is fitted to all instances. A bag is the mean of its instances'
    posterior probabilities of the components, each raised to the power p, as a vector of unit length; the kernel is
    the inner product. A small p asks which components are present in the bag at all, a large p which ones dominate it,
    so that one kernel covers different ways in which instances make a bag's label.

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    n_components : int
        Number of Gaussians.
    p : float or "alignment"
        The power. "alignment" takes the one of 0.05 to 3 whose kernel agrees best with the labels of the training
        bags (kernel-target alignment).
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on parts of the same kernel matrix.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None
        Where k-means starts, from which the mixture is fitted.

    Attributes
    ----------
    mixture_ : Mixture
    p_ : float
        The power that was used.
    support_codes_ : (n_support, n_components) array
        The support bags.
    dual_coef_, intercept_, support_
        See `MIKernelSVC`.

    Notes
    -----
    Takes dense instances only: a mixture of Gaussians has a mean and a variance in every column.

    References
    ----------
    Hua-Yan Wang, Qiang Yang, Hongbin Zha: Adaptive p-Posterior Mixture-Model Kernels for Multiple Instance Learning.
    ICML 2008.

    Examples
    --------
    >>> from bagwise import PPMMKernelSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> PPMMKernelSVC(random_state=0).fit(bags, y).predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    accepts_sparse = False

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **BagKernelSVC._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "p": [StrOptions({"alignment"}), Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 1.0,
        n_components: int = 100,
        *,
        p: float | str = "alignment",
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.n_components = n_components
        self.p = p
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
        x = bags.instances.astype(np.float64, copy=False)
        # One variance for all: with variances of their own, components in many columns are so sharp that each instance
        # belongs to one of them alone, and a bag's shares say little about bags with other instances.
        rng = check_random_state(self.random_state)
        rows = row_weights(bags, weight)
        self.mixture_ = Mixture.fit(x, self.n_components, rng, weight=rows, tied=True)
        self._posteriors = mean_posteriors(bags, self.mixture_)
        self.p_ = self._power(self._posteriors, targets)
        codes = codes_of(self._posteriors, self.p_)
        return codes @ codes.T

    def _power(self, posteriors: FloatArray, targets: NDArray[np.bool_]) -> float:
        if self.p != "alignment":
            return float(self.p)
        return max(POWERS, key=lambda p: alignment(codes_of(posteriors, p), targets))

    def _kernel_without(self, train: NDArray[np.int64], targets: NDArray[np.bool_]) -> FloatArray:
        codes = codes_of(self._posteriors, self._power(self._posteriors[train], targets[train]))
        return codes @ codes.T

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        try:
            super()._fit(bags, targets, weight)
        finally:
            self.__dict__.pop("_posteriors", None)

    def _keep(self, bags: Bags, support: NDArray[np.int64]) -> None:
        self.support_codes_ = codes_of(mean_posteriors(bags[support], self.mixture_), self.p_)

    def _support_kernel(self, bags: Bags) -> FloatArray:
        return codes_of(mean_posteriors(bags, self.mixture_), self.p_) @ self.support_codes_.T


def mean_posteriors(bags: Bags, mixture: Mixture) -> FloatArray:
    """(n_bags, k) mean over each bag of the posterior probabilities of the components."""
    x = bags.instances
    parts = [
        mixture.posteriors(x[start : start + ROWS_PER_BLOCK].astype(np.float64, copy=False))
        for start in range(0, len(x), ROWS_PER_BLOCK)
    ]
    return np.add.reduceat(np.concatenate(parts), bags.offsets[:-1]) / bags.sizes[:, None]


def codes_of(posteriors: FloatArray, p: float) -> FloatArray:
    """(n_bags, k) posteriors to the power p, as vectors of unit length."""
    # Scaled by the largest first: a large power of small numbers would vanish.
    powered = (posteriors / posteriors.max(axis=1, keepdims=True)) ** p
    return powered / np.linalg.norm(powered, axis=1, keepdims=True)


def alignment(codes: FloatArray, targets: NDArray[np.bool_]) -> float:
    """Mean over the problems of the cosine between the centred kernel of the codes and the kernel of the labels."""
    centred = codes - codes.mean(axis=0)
    labels = targets - targets.mean(axis=0)
    norm = np.linalg.norm(centred.T @ centred)
    if norm == 0:
        return 0.0
    agreement = np.einsum("ij,ij->j", centred.T @ labels, centred.T @ labels)
    return float(np.mean(agreement / (norm * (labels**2).sum(axis=0))))
