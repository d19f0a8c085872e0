"""mi-SVM and MI-SVM: support vector machines that guess what is hidden in positive bags as they learn."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from bagwise._utils.columns import mean_square
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedScorer, folds_by_content, loss_after_calibration
from bagwise.instance_space._dual import IntArray
from bagwise.instance_space._kernel_machine import InstanceKernel, KernelMachine
from bagwise.instance_space._linear import LinearMachine
from bagwise.instance_space._search import ROUGH, Found, LabelSearch, Search, WitnessSearch
from bagwise.preprocessing import GAMMA_CONSTRAINT, SCALING_CONSTRAINT, InstanceScaler, gaussian_gamma, row_weights

# What scaling="auto" chooses from on dense data: standardised columns, then unit length or not.
CANDIDATES = ("standard-unit", "standard")
# Where few bags are positive, one search in several ends where it finds nothing; from a fifth on, hardly any does.
RARE = 1 / 6
STARTS_IF_RARE = 3


class _SearchingSVC(CalibratedScorer):
    """What mi-SVM and MI-SVM share: parameters, kernels, restarts, scores."""

    uses_prior = True
    sorts_bags = True

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "poly", "rbf"})],
        "gamma": GAMMA_CONSTRAINT,
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
        "n_init": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
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
        gamma: float | str = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        scaling: str | None = "auto",
        n_init: int | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-3,
        cache_size: float = 500,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
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
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _prepare(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self.scaling_ = self._choose_scaling(bags, targets, weight)

    def _choose_scaling(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> str | None:
        """Whether instances should have unit length depends on the data: "auto" asks their out-of-fold scores."""
        if self.scaling != "auto" or not self.calibrate or sparse.issparse(bags.instances):
            return self.scaling
        fold = folds_by_content(bags, targets)
        if fold is None:
            return self.scaling
        losses = {}
        for scaling in CANDIDATES:
            self.scaling_ = scaling
            scores = self._unseen_scores(bags, targets, weight, fold)
            losses[scaling] = loss_after_calibration(scores, targets, weight)
        return min(CANDIDATES, key=lambda scaling: losses[scaling])

    def _fold_model(self) -> _SearchingSVC:
        model = super()._fold_model()
        model.scaling_ = self.scaling_
        return model

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        rng = check_random_state(self.random_state)
        self.scaler_ = InstanceScaler(self.scaling_).fit(bags, sample_weight=weight)
        self.scaling_ = self.scaler_.scaling_
        bags = self.scaler_.transform(bags)
        rows, prior = _with_means(bags), _prior_with_means(bags)
        weight_of_rows = row_weights(bags, weight)
        machine: Any
        if self.kernel == "linear":
            machine = LinearMachine(rows, int(rng.randint(np.iinfo(np.int32).max)), prior)
            loss = self.C / (mean_square(bags.instances, weight_of_rows) or 1.0)
        else:
            gamma = gaussian_gamma(self.gamma, bags.instances, weight_of_rows)
            kernel = InstanceKernel(self.kernel, gamma, float(self.coef0), int(self.degree))
            machine = KernelMachine(rows, kernel, self.cache_size, prior)
            loss = self.C
        cap = [loss * weight * self._balance(positive, targets, weight) for positive in targets.T]
        starts = [self._starts(positive, weight / self._dict_weights(targets)) for positive in targets.T]
        found = [self._best_start(machine, bags.offsets, *each, rng) for each in zip(targets.T, cap, starts)]
        self.objective_ = np.array([best.objective for best in found])
        self.n_iter_ = max(best.n_iter for best in found)
        self.converged_ = all(best.converged for best in found)
        self.intercept_ = np.array([best.coefficients.sum() for best in found])
        support = np.unique(np.concatenate([best.rows for best in found]))
        dual = np.zeros((len(found), len(support)))
        for k, best in enumerate(found):
            dual[k, np.searchsorted(support, best.rows)] = best.coefficients
        if self.kernel == "linear":
            self.coef_ = np.asarray((rows[support].T @ dual.T).T)
        else:
            self.kernel_, self.dual_coef_, self.support_vectors_ = kernel, dual, rows[support]

    def _balance(self, positive: NDArray[np.bool_], targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
        """(n_bags,) factors that give positive and negative bags the same say.

        With one positive bag in twenty-five, no direction would be worth its price otherwise. A ``class_weight`` is not
        balanced away.
        """
        given = weight / self._dict_weights(targets)
        half = given.sum() / 2
        return np.where(positive, half / given[positive].sum(), half / given[~positive].sum())

    def _starts(self, positive: NDArray[np.bool_], weight: FloatArray) -> int:
        """How many searches to make."""
        if self.n_init != "auto":
            return int(self.n_init)
        return STARTS_IF_RARE if weight[positive].sum() < RARE * weight.sum() else 1

    def _best_start(
        self,
        machine: Any,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        n_starts: int,
        rng: np.random.RandomState,
    ) -> Found:
        """Search from each start, and return where the objective is lowest."""
        ends = []
        for start in range(n_starts):
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

    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        x = self.scaler_.transform(bags).instances
        prior = 0.0 if bags.prior is None else bags.prior[:, None]
        if self.kernel == "linear":
            return np.asarray(x @ self.coef_.T, dtype=np.float64) + self.intercept_ + prior
        return self.kernel_.weighted_sum(x, self.support_vectors_, self.dual_coef_) + self.intercept_ + prior


class MiSVC(_SearchingSVC):
    """mi-SVM: a support vector machine that guesses the label of every instance.

    All instances of negative bags are negative, and at least one in each positive bag is positive. The machine is
    trained on the labels guessed so far, relabels the instances of positive bags by its scores (the highest in a bag
    stays positive), and repeats this until no label changes. A bag's score is the highest of its instances' scores.

    Parameters
    ----------
    C : float, default=10
        Weight of an instance's loss against the regulariser, for instances whose mean squared length is one. Positive
        and negative bags have the same say in all.
    init : {"witnesses", "bags"}
        The first guess: the labels of MI-SVM's solution, or that of its bag for every instance. The second
        is the paper's, and gets stuck where a model can memorise single instances, as in sparse texts.
    kernel : {"linear", "poly", "rbf"}
        "linear" never forms a kernel matrix.
    gamma : float, "scale" or "distance", default "distance"
        Of exp(-γ ‖x - x'‖²) and (γ x·x' + coef0)^degree; "distance" is one over the mean squared distance between
        two instances, "scale" what scikit-learn means by it.
    degree, coef0
        Of the polynomial kernel.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}, default="auto"
        What to do with the instances first; see `InstanceScaler`. On dense data, and when calibrating, "auto" chooses
        between "standard" and unit length after it, by the log loss of out-of-fold scores.
    n_init : int or "auto", default "auto"
        Number of starts. All but the first are random; the end with the lowest objective is taken. "auto" makes three
        where less than a sixth of the bags are positive, and else one.
    max_iter : int
        Most guesses of one start.
    tol : float
        Duality gap, as a share of the objective, at which a machine counts as solved.
    cache_size : float
        Megabytes for kernel values.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags, ten with ``scaling="auto"``.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
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
    converged_ : bool
        Whether every search ended because its guess repeated itself.
    scaling_ : str or None
        What was done with the instances.
    calibration_ : (n_problems, 2) array or None
        Slope and offset that make log-odds of scores.

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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **_SearchingSVC._parameter_constraints,
        "init": [StrOptions({"witnesses", "bags"})],
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        init: str = "witnesses",
        kernel: str = "linear",
        gamma: float | str = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        scaling: str | None = "auto",
        n_init: int | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-3,
        cache_size: float = 500,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
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
            calibrate=calibrate,
            class_weight=class_weight,
            positive=positive,
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
                first_scores = machine.scores(np.arange(offsets[-1]))
                machine.reset()
        return LabelSearch(machine, offsets, positive, cap, first_scores)


class MISVC(_SearchingSVC):
    """MI-SVM: a support vector machine in which one witness speaks for each positive bag.

    The witness of a positive bag is the instance that the last machine scores highest, and the mean of the bag at
    first; all instances of a negative bag must stay on the other side, and share one slack, so that every bag has
    the same say whatever its size. A bag's score is the highest of its instances' scores.

    Parameters
    ----------
    C : float, default=1
        Weight of a bag's loss against the regulariser, for instances whose mean squared length is one. Positive and
        negative bags have the same say in all.
    kernel, gamma, degree, coef0, scaling, n_init, max_iter, tol, cache_size, calibrate, class_weight, \
positive, random_state
        As in `MiSVC`.

    Attributes
    ----------
    coef_, dual_coef_, support_vectors_, intercept_, objective_, n_iter_, converged_, scaling_, calibration_
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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
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


def _prior_with_means(bags: Bags) -> FloatArray | None:
    """The prior of the rows that `_with_means` makes."""
    if bags.prior is None:
        return None
    prior = bags.prior.astype(np.float64)
    return np.concatenate([prior, np.add.reduceat(prior, bags.offsets[:-1]) / bags.sizes])
