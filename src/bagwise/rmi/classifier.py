"""RMISVC: the relaxed multiple-instance SVM as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer, check_bags, check_labels
from bagwise.mapped import bag_blocks, is_large_map
from bagwise.preprocessing import SCALINGS, InstanceNystroem, InstanceScaler
from bagwise.rmi.objective import Loss, bag_log_odds
from bagwise.rmi.solvers import Iterate, Problem, lbfgs, orders, sgd
from bagwise.rmi.tensors import TensorBags, as_arrays, dispatched, like, linear_scores, tensor_bags


def _tensors_for_tensors(method: Callable[[Any, Any], NDArray]) -> Callable[[Any, Any], Any]:
    """Make a method of bags answer with tensors where scikit-learn's array API dispatch asks for it."""

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        values = method(self, X)
        return like(X, values) if dispatched(X) else values

    return call


class RMISVC(InstanceScorer):
    """Relaxed multiple-instance support vector machine.

    A linear score for each instance, turned into a probability; a bag is positive with the noisy-OR of its
    instances' probabilities. The objective adds to the bags' log-loss a hinge that keeps instances away from the
    decision border, and is minimised by stochastic steps on one bag at a time.

    Bags may be tensors: (n, m, d) for bags of equal size, or a list of (m_i, d). With scikit-learn's array API dispatch
    switched on, scores are computed on the tensors' device and returned as tensors; the model itself stays NumPy.

    Parameters
    ----------
    lam : float
        λ, the weight of the regulariser. The defaults of ``lam``, ``beta`` and ``margin`` are those that
        ``benchmarks/default_search.py`` chose, leaving one data set out at a time.
    beta : float
        β, the weight of the bag loss against the instance loss.
    margin : float
        m0, the margin that instances should keep from the border.
    threshold : float
        p0, the probability from which the hinge takes an instance for positive.
    epochs : int
        Passes over the bags. With ``solver="lbfgs"`` these lead to the point it starts from; 0 starts at zero.
    max_steps : int, optional
        T, the number of steps: in place of ``epochs`` when given.
    solver : {"sgd", "lbfgs"}
    average : bool
        Return the mean of the iterates of the second half of the steps, not the last one.
    sampling : {"shuffle", "uniform"}
        Visit the bags in a fresh random order each pass, or draw each one independently.
    radius : {"pegasos", "safe", None}
        Project iterates into the ball of radius 1/√λ (which suits the plain hinge, and may be too small here), into
        one that surely holds the minimiser, or not at all.
    fit_intercept : bool
        Add a constant feature, regularised like the others.
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    kernel : {"linear", "rbf"}
        "rbf" maps the instances to ``n_components`` features that approximate a Gaussian kernel (Nyström).
    gamma : float or "scale"
        Width of the Gaussian kernel.
    n_components : int
        Number of landmarks of the Gaussian kernel.
    class_weight : dict, "balanced" or None
        Weights of bags by their label, times their ``sample_weight``.
    max_iter, tol
        Limits of L-BFGS.
    track_objective : bool
        Keep the objective after every pass in ``objective_``. Costs one more pass over the data each time.
    warm_start : bool
        Let ``fit`` go on from the last solution.
    device : {"cpu", "cuda"}
        "cuda" keeps the instances on an NVIDIA card and makes the stochastic steps there (needs the extra ``gpu``):
        the same steps in the same order, equal to rounding.
    random_state : int, RandomState or None
        Order of the bags, and the landmarks.

    Attributes
    ----------
    coef_ : (n_problems, n_mapped_features) array
        One row for two classes, else one per class; for scaled and mapped instances.
    intercept_ : (n_problems,) array
    n_steps_ : int
        Steps made in all, ``partial_fit`` and warm starts included.
    n_iter_ : int
        Passes over the bags, or iterations of L-BFGS.
    objective_ : (n_passes, n_problems) array, when ``track_objective`` is set

    References
    ----------
    Xinggang Wang, Zhuotun Zhu, Cong Yao, Xiang Bai: Relaxed Multiple-Instance SVM with Application to Object
    Discovery. ICCV 2015.

    Examples
    --------
    >>> from bagwise import RMISVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = RMISVC(random_state=0).fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "lam": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
        "epochs": [Interval(Integral, 0, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"sgd", "lbfgs"})],
        "average": ["boolean"],
        "sampling": [StrOptions({"shuffle", "uniform"})],
        "radius": [StrOptions({"pegasos", "safe"}), None],
        "fit_intercept": ["boolean"],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "track_objective": ["boolean"],
        "warm_start": ["boolean"],
        "device": [StrOptions({"cpu", "cuda"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        lam: float = 3e-5,
        beta: float = 5.0,
        margin: float = 2.0,
        threshold: float = 0.5,
        *,
        epochs: int = 100,
        max_steps: int | None = None,
        solver: str = "sgd",
        average: bool = True,
        sampling: str = "shuffle",
        radius: str | None = "safe",
        fit_intercept: bool = True,
        scaling: str | None = "auto",
        kernel: str = "linear",
        gamma: float | str = "scale",
        n_components: int = 256,
        class_weight: dict | str | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        track_objective: bool = False,
        warm_start: bool = False,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.margin = margin
        self.threshold = threshold
        self.epochs = epochs
        self.max_steps = max_steps
        self.solver = solver
        self.average = average
        self.sampling = sampling
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.scaling = scaling
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.track_objective = track_objective
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from bags X and one label for each, as every `BagClassifier` does; tensors are copied to NumPy."""
        return super().fit(as_arrays(X), as_arrays(y), as_arrays(sample_weight))

    _last: Iterate  # where the stochastic solver stands; coef_ may be an average, or L-BFGS's answer

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        rng = check_random_state(self.random_state)
        go_on = self.warm_start and hasattr(self, "coef_")
        if go_on and self.coef_.shape[0] != targets.shape[1]:
            raise ValueError(
                f"warm_start needs the classes of the last fit ({self.coef_.shape[0]} problems), "
                f"but y now makes {targets.shape[1]}: fit a new model"
            )
        if not go_on:
            self._fit_maps(bags, rng)
        problem = self._problem(bags, targets, weight)
        start: Iterate = self._last if go_on else Iterate.zero(targets.shape[1], self._n_mapped_features)
        steps = self.epochs * len(bags) if self.max_steps is None else self.max_steps
        self.n_iter_ = -(-steps // len(bags))
        history: list[FloatArray] = []
        self._last, solution = sgd(
            problem,
            start,
            self._orders(bags, steps, rng),
            average_from=start.steps + steps // 2 if self.average else None,
            radius=problem.radius(self.radius),
            after_pass=(lambda at: history.append(problem.objective(at.coef, at.intercept)))
            if self.track_objective
            else None,
            device=self.device,
        )
        if self.solver == "lbfgs":
            solution, self.n_iter_ = lbfgs(problem, solution, max_iter=self.max_iter, tol=self.tol)
            if self.track_objective:
                history.append(problem.objective(solution.coef, solution.intercept))
        self._take(solution)
        if self.track_objective:
            self.objective_ = np.array(history)

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Make one pass over some more bags; the scaling and the map stay those of the first call.

        Steps are as long as 1/(lam t): until about 1/lam bags have come, the model is far from its solution. The
        default ``lam`` is meant for `fit`, with its hundred passes; for a short stream give a larger one.

        Parameters
        ----------
        classes : labels that will ever occur; needed in the first call only.
        """
        first = not hasattr(self, "coef_")
        if first:
            self._validate_params()
        bags = check_bags(self, as_arrays(X), reset=first)
        y = check_labels(self, bags, as_arrays(y))
        if first:
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes=: all labels that will ever occur")
            self.classes_ = np.unique(np.asarray(as_arrays(classes)))
            if len(self.classes_) < 2:
                raise ValueError(f"classes names fewer than two classes: {self.classes_.tolist()}")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {self.classes_.tolist()}")
        weight = _check_sample_weight(as_arrays(sample_weight), bags.sizes, dtype=np.float64, ensure_non_negative=True)
        rng = check_random_state(self.random_state)
        if first:
            self._fit_maps(bags, rng)
        targets = y[:, None] == (self.classes_[1:] if len(self.classes_) == 2 else self.classes_)
        if first:
            self._last = Iterate.zero(targets.shape[1], self._n_mapped_features)
        problem = self._problem(bags, targets, weight)
        self._last, solution = sgd(
            problem,
            self._last,
            self._orders(bags, len(bags), rng),
            average_from=self._last.steps if self.average else None,
            radius=problem.radius(self.radius),
            device=self.device,
        )
        self._take(solution)
        return self

    def _take(self, solution: Iterate) -> None:
        self.coef_, self.intercept_, self.n_steps_ = solution.coef, solution.intercept, solution.steps

    def _fit_maps(self, bags: Bags, rng: np.random.RandomState) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        self.kernel_map_ = None
        if self.kernel == "rbf":
            seed = int(rng.randint(np.iinfo(np.int32).max))
            # Of a file that is too large for memory, a first block stands for all.
            scaled = self.scaler_.transform(next(bag_blocks(bags))[1])
            self.kernel_map_ = InstanceNystroem(self.n_components, self.gamma, seed).fit(scaled)

    def _mapped(self, bags: Bags) -> Bags:
        bags = self.scaler_.transform(bags)
        return bags if self.kernel_map_ is None else self.kernel_map_.transform(bags)

    @property
    def _n_mapped_features(self) -> int:
        return self.n_features_in_ if self.kernel_map_ is None else len(self.kernel_map_.landmarks_)

    def _orders(self, bags: Bags, steps: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
        if is_large_map(bags.instances) and self.sampling == "shuffle" and self.device == "cpu":
            from bagwise.rmi.outofcore import orders_by_runs

            return orders_by_runs(bags, steps, rng)
        return orders(len(bags), steps, self.sampling, rng)

    def _problem(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> Problem:
        weights = np.repeat(weight[:, None], targets.shape[1], axis=1)
        if self.class_weight is not None:
            weights = weights * self._class_weights(targets)
        # Large files are mapped block by block as they are read, and what goes to a card as it goes there.
        lazy = is_large_map(bags.instances) or self.device == "cuda"
        return Problem(
            bags if lazy else self._mapped(bags),
            np.ascontiguousarray(targets),
            np.ascontiguousarray(weights / weights.mean(axis=0)),
            Loss(float(self.lam), float(self.beta), float(self.margin), float(self.threshold)),
            bool(self.fit_intercept),
            self._mapped if lazy else None,
        )

    def _class_weights(self, targets: NDArray[np.bool_]) -> FloatArray:
        """(n_bags, n_problems) weight of each bag through its label."""
        if self.class_weight == "balanced":
            share = targets.mean(axis=0).clip(1 / (2 * len(targets)), 1 - 1 / (2 * len(targets)))
            return np.where(targets, 0.5 / share, 0.5 / (1 - share))
        if targets.shape[1] == 1:
            codes = targets[:, 0].astype(int)
        else:
            codes = targets.argmax(axis=1)
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return by_class[codes][:, None]

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

    def _bag_scores(self, bags: Bags) -> FloatArray:
        if isinstance(bags, TensorBags):
            return bag_log_odds(self._tensor_scores(bags), bags.offsets)
        parts = [bag_log_odds(self._block_scores(block), block.offsets) for _, block in bag_blocks(bags)]
        return np.concatenate(parts)

    def _block_scores(self, bags: Bags) -> FloatArray:
        z = np.asarray(self._mapped(bags).instances @ self.coef_.T, dtype=np.float64) + self.intercept_
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
        """(n_bags, n_classes) probabilities: the noisy-OR of those of the instances, made to sum to one."""
        return super().predict_proba(X)

    @_tensors_for_tensors
    def instance_scores(self, X: Any) -> FloatArray:
        """(n_instances,) score of every instance, or (n_instances, n_classes) with more than two classes.

        In the order of ``bags.instances``: the higher, the more it makes its bag positive.
        """
        return super().instance_scores(X)

    @_tensors_for_tensors
    def instance_proba(self, X: Any) -> FloatArray:
        """Probability that each instance is positive: the logistic function of its score."""
        return expit(super().instance_scores(X))
