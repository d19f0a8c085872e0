"""mi-SVM and MI-SVM: support vector machines that guess what is hidden in positive bags as they learn."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.instance_space._dual import IntArray
from bagwise.instance_space._kernel_machine import InstanceKernel, KernelMachine
from bagwise.instance_space._linear import LinearMachine
from bagwise.instance_space._search import ROUGH, Found, LabelSearch, Search, WitnessSearch
from bagwise.preprocessing import SCALINGS, InstanceScaler, default_gamma


class _SearchingSVC(InstanceScorer):
    """What mi-SVM and MI-SVM share: parameters, kernels, restarts, scores."""

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "poly", "rbf"})],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        scaling: str | None = "auto",
        n_init: int = 1,
        max_iter: int = 50,
        tol: float = 1e-4,
        cache_size: float = 500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.cache_size = cache_size
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        rng = check_random_state(self.random_state)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        bags = self.scaler_.transform(bags)
        rows = _with_means(bags)
        machine: Any
        if self.kernel == "linear":
            machine = LinearMachine(rows, int(rng.randint(np.iinfo(np.int32).max)))
        else:
            gamma = default_gamma(bags.instances) if isinstance(self.gamma, str) else float(self.gamma)
            kernel = InstanceKernel(self.kernel, gamma, float(self.coef0), int(self.degree))
            machine = KernelMachine(rows, kernel, self.cache_size)
        found = [self._best_start(machine, bags.offsets, positive, self.C * weight, rng) for positive in targets.T]
        self.objective_ = np.array([best.objective for best in found])
        self.n_iter_ = max(best.n_iter for best in found)
        self.intercept_ = np.array([best.coefficients.sum() for best in found])
        support = np.unique(np.concatenate([best.rows for best in found]))
        dual = np.zeros((len(found), len(support)))
        for k, best in enumerate(found):
            dual[k, np.searchsorted(support, best.rows)] = best.coefficients
        if self.kernel == "linear":
            self.coef_ = np.asarray((rows[support].T @ dual.T).T)
        else:
            self.kernel_, self.dual_coef_, self.support_vectors_ = kernel, dual, rows[support]

    def _best_start(
        self, machine: Any, offsets: IntArray, positive: NDArray[np.bool_], cap: FloatArray, rng: np.random.RandomState
    ) -> Found:
        """Search from each start, and return where the objective is lowest."""
        ends = []
        for start in range(self.n_init):
            machine.reset()
            scores = rng.uniform(-1, 1, size=offsets[-1]) if start else None
            ends.append(self._search(machine, offsets, positive, cap, scores).run(self.max_iter, self.tol))
        return min(ends, key=lambda end: end.objective)

    @abstractmethod
    def _search(
        self,
        machine: Any,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        first_scores: FloatArray | None,
    ) -> Search:
        """The search for what is hidden: from random scores of the instances when they are given."""

    def _instance_scores(self, bags: Bags) -> FloatArray:
        x = self.scaler_.transform(bags).instances
        if self.kernel == "linear":
            return np.asarray(x @ self.coef_.T, dtype=np.float64) + self.intercept_
        return self.kernel_.weighted_sum(x, self.support_vectors_, self.dual_coef_) + self.intercept_

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._instance_scores(bags), bags.offsets[:-1], axis=0)


class MiSVC(_SearchingSVC):
    """mi-SVM: a support vector machine that guesses the label of every instance.

    All instances of negative bags are negative, and at least one in each positive bag is positive. The machine is
    trained on the labels guessed so far, relabels the instances of positive bags by its scores (the highest in a bag
    stays positive), and goes on until no label changes. A bag's score is the highest of its instances' scores.

    Parameters
    ----------
    C : float
        Weight of an instance's loss against the regulariser.
    init : {"witnesses", "bags"}
        The first guess: the labels that MI-SVM's solution gives, or that of its bag for every instance. The second
        is the paper's, and gets stuck where instances can be told apart by heart, as texts can.
    kernel : {"linear", "poly", "rbf"}
        "linear" never forms a kernel matrix.
    gamma : float or "scale"
        Of exp(-γ ‖x - x'‖²) and (γ x·x' + coef0)^degree; "scale" takes one over the mean squared distance between
        two instances.
    degree, coef0
        Of the polynomial kernel.
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    n_init : int
        Number of starts. All but the first are random; the end with the lowest objective is taken.
    max_iter : int
        Most guesses of one start.
    tol : float
        Duality gap, as a share of the objective, at which a machine counts as solved.
    cache_size : float
        Megabytes for kernel values.
    random_state : int, RandomState or None
        Random starts, and the order of the linear solver.

    Attributes
    ----------
    coef_ : (n_problems, n_features) array, with the linear kernel
        One row for two classes, else one per class; for scaled instances.
    dual_coef_, support_vectors_ : (n_problems, n_support) and (n_support, n_features) arrays, with other kernels
    intercept_ : (n_problems,) array
    objective_ : (n_problems,) array
        ½ (‖w‖² + b²) plus the weighted losses, of the last machine.
    n_iter_ : int
        Number of machines trained, in the problem that took most.

    References
    ----------
    Stuart Andrews, Ioannis Tsochantaridis, Thomas Hofmann: Support Vector Machines for Multiple-Instance Learning.
    NIPS 2002.

    Examples
    --------
    >>> from bagwise import MiSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MiSVC(random_state=0).fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **_SearchingSVC._parameter_constraints,
        "init": [StrOptions({"witnesses", "bags"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        init: str = "witnesses",
        kernel: str = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        scaling: str | None = "auto",
        n_init: int = 1,
        max_iter: int = 50,
        tol: float = 1e-4,
        cache_size: float = 500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            scaling=scaling,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            cache_size=cache_size,
            random_state=random_state,
        )
        self.init = init

    def _search(
        self,
        machine: Any,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        first_scores: FloatArray | None,
    ) -> Search:
        if first_scores is None:
            if self.init == "bags":
                first_scores = np.ones(offsets[-1])
            else:
                WitnessSearch(machine, offsets, positive, cap).run(self.max_iter, ROUGH)
                first_scores = machine.scores()
                machine.reset()
        return LabelSearch(machine, offsets, positive, cap, first_scores)


class MISVC(_SearchingSVC):
    """MI-SVM: a support vector machine in which one witness speaks for each positive bag.

    The witness of a positive bag is the instance that the last machine scores highest, and the mean of the bag at
    first; all instances of a negative bag must stay on the other side, and share one slack, so that every bag has
    the same say whatever its size. A bag's score is the highest of its instances' scores.

    Parameters
    ----------
    C : float
        Weight of a bag's loss against the regulariser.
    kernel, gamma, degree, coef0, scaling, n_init, max_iter, tol, cache_size, random_state
        As in `MiSVC`.

    Attributes
    ----------
    coef_, dual_coef_, support_vectors_, intercept_, objective_, n_iter_
        As in `MiSVC`.

    References
    ----------
    Stuart Andrews, Ioannis Tsochantaridis, Thomas Hofmann: Support Vector Machines for Multiple-Instance Learning.
    NIPS 2002.

    Examples
    --------
    >>> from bagwise import MISVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MISVC(random_state=0).fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    def _search(
        self,
        machine: Any,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        first_scores: FloatArray | None,
    ) -> Search:
        return WitnessSearch(machine, offsets, positive, cap, first_scores)


def _with_means(bags: Bags) -> Any:
    """All instances, and below them the mean of each bag, from which the search for witnesses starts."""
    share = np.repeat(1 / bags.sizes, bags.sizes).astype(bags.dtype)
    mean = sparse.csr_array((share, np.arange(bags.n_instances), bags.offsets))
    if sparse.issparse(bags.instances):
        return sparse.vstack([bags.instances, mean @ bags.instances], format="csr")
    return np.concatenate([bags.instances, mean @ bags.instances])
