"""RMISVC: the relaxed multiple-instance SVM as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from bagwise._utils.mapped import is_large_map
from bagwise._utils.sklearn_private import Interval, StrOptions, check_sample_weight
from bagwise.bags import Bags
from bagwise.base import FloatArray, check_bags, check_labels
from bagwise.preprocessing import GAMMA_CONSTRAINT, SCALING_CONSTRAINT
from bagwise.rmi import path
from bagwise.rmi.candidates import Grid
from bagwise.rmi.lbfgs import lbfgs
from bagwise.rmi.objective import Loss
from bagwise.rmi.problem import Iterate, Problem, in_single_precision, orders, with_size_prior
from bagwise.rmi.scoring import InstanceMap, LinearScorer, View
from bagwise.rmi.sgd import sgd
from bagwise.rmi.tensors import as_arrays


def _has_fixed_lam(model: RMISVC) -> bool:
    if model.lam == "auto":
        raise AttributeError(
            "partial_fit needs a number as lam, because 'auto' compares models on all bags: try lam=0.01"
        )
    return True


class RMISVC(LinearScorer):
    """Relaxed multiple-instance support vector machine.

    A linear score for each instance, turned into a probability; a bag is positive with the noisy-OR of its
    instances' probabilities. The objective adds to the bags' log-loss a hinge that keeps instances away from the
    decision border, and is minimised by stochastic steps on one bag at a time.

    Bags may be tensors: (n, m, d) for bags of equal size, or a list of (m_i, d). With scikit-learn's array API dispatch
    switched on, scores are computed on the tensors' device and returned as tensors; the model itself stays NumPy.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        λ, the weight of the regulariser. "auto" fits a path of λ, with ``scaling``, ``kernel`` and ``pooling`` where
        these are "auto" too, scores every training bag by models fitted without its fold, and takes the candidate whose
        calibrated out-of-fold scores have the smallest log loss (see `bagwise.rmi.path`). That costs about as much as
        twenty to thirty fits, and two to four times as much where a kernel is compared. A number is taken as it is.
    beta : float, default=5.0
        β, the weight of the bag loss against the instance loss.
    margin : float, default=0.5
        m0, the margin that instances should keep from the border.
    threshold : float, default=0.5
        p0, the probability from which the hinge takes an instance for positive.
    pooling : {"auto", "noisy-or", "normalized"}, default="auto"
        From instances to their bag. "noisy-or" is the paper's, in which a bag is the more likely positive the more
        instances it has. "normalized" subtracts log m from the scores of a bag of m instances, so that its size alone
        says nothing: needed for bags of hundreds of instances or more. "auto" chooses with ``lam="auto"`` ("normalized"
        where size alone nearly tells the labels), and is "noisy-or" with a number.
    calibrate : bool or "auto", default="auto"
        Whether probabilities, and the border between the classes, come from a logistic curve fitted to out-of-fold
        scores. "auto" does so with ``lam="auto"``, which has those scores anyway. With a number as ``lam``, True costs
        about two more fits; without it, the probabilities are the objective's own, which are far too sure on bags that
        the model has not seen.
    epochs : int, default=100
        Passes over the bags. With ``solver="lbfgs"`` these lead to the point it starts from; 0 starts at zero. The
        candidates of ``lam="auto"`` get half as many.
    max_steps : int, default=None
        T, the number of steps: in place of ``epochs`` when given.
    solver : {"sgd", "lbfgs"}, default="sgd"
    average : bool, default=True
        Return the mean of the iterates of the second half of the steps, not the last one.
    sampling : {"shuffle", "blocks", "uniform"}, default="shuffle"
        Visit the bags in a fresh random order each pass; the same, but in runs of neighbouring bags, which reads a file
        larger than memory several times faster from a slow disk; or draw each one independently. The model depends on
        the order, and not on whether the bags lie in memory or in a file.
    radius : {"safe", "pegasos", None}, default="safe"
        Project iterates into a ball that surely holds the minimiser, into the one of radius 1/√λ (which suits the plain
        hinge, and may be too small here), or not at all.
    fit_intercept : bool, default=True
        Add a constant feature, regularised like the others.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}, default="auto"
        What to do with the instances first; see `InstanceScaler`. With ``lam="auto"``, "auto" chooses among
        "standard-unit", "unit" and "root-unit" for dense instances ("standard" in place of the last, where there are
        ten columns or fewer), and between "unit" and "global" for sparse ones.
    kernel : {"auto", "linear", "rbf"}, default="auto"
        "rbf" maps the instances to ``n_components`` features that approximate a Gaussian kernel (Nyström). With
        ``lam="auto"``, "auto" compares both for up to a hundred columns (and 125,000 instances); else it is "linear".
    gamma : float, "scale" or "distance", default="distance"
        Width of the Gaussian kernel: "distance" is one over the mean squared distance between instances, "scale" what
        scikit-learn means by it.
    n_components : int, default=256
        Number of landmarks of the Gaussian kernel.
    max_iter : int, default=200
        Most iterations of L-BFGS; it warns when these were too few.
    tol : float, default=1e-5
        L-BFGS stops at a gradient below this.
    track_objective : bool, default=False
        Keep the objective after every pass in ``objective_``. Costs one more pass over the data each time.
    warm_start : bool, default=False
        Let ``fit`` start from the last solution, with the λ, scaling, kernel, pooling and calibration that were chosen
        first.
    device : {"cpu", "cuda"}, default="cpu"
        "cuda" keeps the instances on an NVIDIA card and makes the stochastic steps there (needs the extra ``gpu``):
        the same steps in the same order, each equal to rounding. What ``lam="auto"`` chooses is chosen on the CPU and
        is the same for both.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of bags by their label, in the objective and in the calibration.
    positive : label, default=None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None, default=None
        Order of the bags, folds, and the landmarks.

    Attributes
    ----------
    coef_ : (n_problems, n_mapped_features) array
        One row for two classes, else one per class; for scaled and mapped instances.
    intercept_ : (n_problems,) array
    lam_, scaling_, kernel_, pooling_ : float, str or None, str, str
        What was chosen, or given.
    calibration_ : (n_problems, 2) array or None
        Slope and offset of the logistic curve over the log-odds of each binary problem.
    path_ : dict of (n_candidates,) arrays, or None where nothing was compared
        ``lam``, ``scaling``, ``kernel`` and ``pooling`` of each candidate; ``log_loss``, that of its calibrated
        out-of-fold scores (the mean over binary problems); ``smoothed_log_loss``, the same averaged with the neighbours
        on the path, and a little higher for weaker λ and for the Gaussian kernel; ``chosen``, True for the one with the
        smallest of these.
    n_steps_ : int
        Steps made in all, ``partial_fit``, warm starts and those of a chosen candidate included.
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
    >>> model = RMISVC(random_state=0).fit(bags[::2], y[::2])
    >>> model.predict(bags[43:53:2])
    array([1, 1, 0, 0, 0])
    >>> model.predict_proba(bags[43:53:2])[:, 1].round(1)
    array([0.9, 0.7, 0.1, 0.3, 0.1])
    >>> print(f"lam {model.lam_:.3f}, {model.pooling_}; right on new bags: {model.score(bags[1::2], y[1::2]):.2f}")
    lam 0.010, normalized; right on new bags: 0.85
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "lam": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
        "pooling": [StrOptions({"auto", *path.POOLINGS})],
        "calibrate": [StrOptions({"auto"}), "boolean"],
        "epochs": [Interval(Integral, 0, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"sgd", "lbfgs"})],
        "average": ["boolean"],
        "sampling": [StrOptions({"shuffle", "blocks", "uniform"})],
        "radius": [StrOptions({"pegasos", "safe"}), None],
        "fit_intercept": ["boolean"],
        "scaling": SCALING_CONSTRAINT,
        "kernel": [StrOptions({"auto", "linear", "rbf"})],
        "gamma": GAMMA_CONSTRAINT,
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
        lam: float | str = "auto",
        beta: float = 5.0,
        margin: float = 0.5,
        threshold: float = 0.5,
        *,
        pooling: str = "auto",
        calibrate: bool | str = "auto",
        epochs: int = 100,
        max_steps: int | None = None,
        solver: str = "sgd",
        average: bool = True,
        sampling: str = "shuffle",
        radius: str | None = "safe",
        fit_intercept: bool = True,
        scaling: str | None = "auto",
        kernel: str = "auto",
        gamma: float | str = "distance",
        n_components: int = 256,
        max_iter: int = 200,
        tol: float = 1e-5,
        track_objective: bool = False,
        warm_start: bool = False,
        device: str = "cpu",
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.margin = margin
        self.threshold = threshold
        self.pooling = pooling
        self.calibrate = calibrate
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
        self.max_iter = max_iter
        self.tol = tol
        self.track_objective = track_objective
        self.warm_start = warm_start
        self.device = device
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from bags X and one label for each, as every `BagClassifier` does; tensors are copied to NumPy."""
        y = as_arrays(y)
        if self.warm_start and hasattr(self, "coef_") and not np.array_equal(np.unique(y), self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit, {self.classes_.tolist()}, but y holds "
                f"{np.unique(y).tolist()}: fit a new model"
            )
        return super().fit(as_arrays(X), y, as_arrays(sample_weight))

    uses_prior = True
    scaling_: str | None
    kernel_: str
    _last: Iterate  # where the stochastic solver stands; coef_ may be an average, or L-BFGS's answer

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        resumed = self.warm_start and hasattr(self, "coef_")
        weights = self._weights(targets, weight)
        if not resumed:
            self._last = self._choose(bags, targets, weight)
        rng = check_random_state(self.random_state)
        problem, start = self._problem(bags, targets, weights), self._last
        steps = self._steps(len(bags))
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
        self.coef_, self.intercept_, self.n_steps_ = solution.coef, solution.intercept, solution.steps
        if self.track_objective:
            self.objective_ = np.array(history)

    def _choose(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> Iterate:
        """Set λ, scaling, kernel, pooling and calibration: what was given, or what out-of-fold scores say.

        Also sets the scaler and the map, and returns where to start.
        """
        searched = self.lam == "auto"
        seed, weights = self._seed(), self._weights(targets, weight)
        passes = path.passes_for(bags, max(1, -(-self._steps(len(bags)) // len(bags))))
        poolings = path.poolings_for(bags, targets, weights) if searched and self.pooling == "auto" else None
        grid = Grid(
            path.lams_for(len(bags), passes) if searched else [float(self.lam)],
            poolings or [self._pooling_as_given()],
            passes,
            self.average,
            self.radius,
            lambda n: self._orders(bags, n * len(bags), np.random.RandomState(seed)),
        )
        views = [self._view_as_given()]
        if searched:
            views = path.views_for(bags.instances, self.scaling, self.kernel, int(self.n_components))
        search = path.Search(grid, views)
        maps: dict[View, InstanceMap] = {}

        def map_for(view: View) -> InstanceMap:
            if view not in maps:
                rng = np.random.RandomState(seed)
                maps[view] = InstanceMap.fit(bags, view, weight, rng, self.gamma, self.n_components)
            return maps[view]

        choice = search.fallback()
        if searched or self.calibrate is True:
            problem = Problem(bags, targets, weights, self._loss(1.0), bool(self.fit_intercept))
            choice = search.choose(problem, map_for, seed)
        self.lam_, self.pooling_, self.path_ = choice.lam, choice.pooling, choice.path
        self.calibration_ = choice.calibration if self.calibrate else None
        self._see(choice.view, map_for(choice.view))
        if searched and choice.start is not None:
            return choice.start
        return Iterate.zero(targets.shape[1], self._map.n_features)

    def _see(self, view: View, instance_map: InstanceMap) -> None:
        self.scaler_, self.kernel_map_ = instance_map.scaler, instance_map.kernel_map
        self.scaling_, self.kernel_ = self.scaler_.scaling_, view.kernel

    def _pooling_as_given(self) -> str:
        return "noisy-or" if self.pooling == "auto" else self.pooling

    def _view_as_given(self) -> View:
        return View(self.scaling, "linear" if self.kernel == "auto" else self.kernel)

    def _seed(self) -> int:
        """One for the folds and the candidates, so that the final fit is that of a model to which λ was given."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _steps(self, n_bags: int) -> int:
        return self.epochs * n_bags if self.max_steps is None else self.max_steps

    @available_if(_has_fixed_lam)
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Make one pass over some more bags; the scaling and the map stay those of the first call.

        Needs a number as ``lam``. Steps are as long as 1/(lam t): until about 1/lam bags have come, the model is far
        from its solution. With ``average``, iterates of all calls are averaged, each with a weight that grows with the
        number of steps before it. Probabilities are not calibrated.

        Parameters
        ----------
        X : bags, in any form that `fit` takes
        y : (n_bags,) labels
        classes : labels that will ever occur; needed in the first call only
        sample_weight : (n_bags,) array, default=None
            The steps on a bag of weight 2 are twice as long; weights are not scaled to a mean of 1, as `fit` does.
        """
        first = not hasattr(self, "coef_")
        if first:
            self._validate_params()
        self._refuse_what_needs_all_bags()
        bags = check_bags(self, as_arrays(X), reset=first)
        y = check_labels(self, bags, as_arrays(y))
        if first:
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes=: all labels that will ever occur")
            every = np.unique(np.asarray(as_arrays(classes)))
            if len(every) < 2:
                raise ValueError(f"classes names fewer than two classes: {every.tolist()}")
            self._set_classes(every)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {self.classes_.tolist()}")
        weight = check_sample_weight(as_arrays(sample_weight), bags.sizes, dtype=np.float64, ensure_non_negative=True)
        weight = weight * self._class_weights(y, weight)
        rng = check_random_state(self.random_state)
        targets = self._targets(y)
        if first:
            self.lam_, self.path_, self.calibration_ = float(self.lam), None, None
            self.pooling_ = self._pooling_as_given()
            view = self._view_as_given()
            self._see(view, InstanceMap.fit(bags, view, weight, rng, self.gamma, self.n_components))
            self._last = Iterate.zero(targets.shape[1], self._map.n_features)
            self.coef_, self.intercept_ = self._last.coef, self._last.intercept
            self.n_steps_ = self.n_iter_ = 0
        problem = self._problem(bags, targets, self._weights(targets, weight, normalize=False))
        self._last, mean = sgd(
            problem,
            self._last,
            self._orders(bags, len(bags), rng),
            average_from=self._last.steps if self.average else None,
            radius=problem.radius(self.radius),
            device=self.device,
        )
        # Iterate t gets the weight t - 1/2, so that those before step s have s²/2 of it together.
        before = (self.n_steps_ / mean.steps) ** 2 if self.average else 0.0
        self.coef_ = before * self.coef_ + (1 - before) * mean.coef
        self.intercept_ = before * self.intercept_ + (1 - before) * mean.intercept
        self.n_steps_, self.n_iter_ = mean.steps, self.n_iter_ + 1
        return self

    def _refuse_what_needs_all_bags(self) -> None:
        if self.class_weight == "balanced":
            raise ValueError(
                "partial_fit cannot balance classes that it has not seen yet: give class_weight as a dict of numbers"
            )
        if self.calibrate is True:
            raise ValueError("partial_fit cannot calibrate, because that takes folds of all bags: use calibrate=False")

    def _orders(self, bags: Bags, steps: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
        if self.sampling == "blocks":
            from bagwise.rmi.outofcore import orders_by_runs

            return orders_by_runs(bags, steps, rng)
        return orders(len(bags), steps, self.sampling, rng)

    def _loss(self, lam: float) -> Loss:
        return Loss(lam, float(self.beta), float(self.margin), float(self.threshold))

    def _problem(self, bags: Bags, targets: NDArray[np.bool_], weights: FloatArray) -> Problem:
        if self.pooling_ == "normalized":
            bags = with_size_prior(bags)

        def ready(part: Bags) -> Bags:
            return in_single_precision(part, self._map, self._map.n_features)

        # Large files are mapped block by block as they are read, and what goes to a card as it goes there.
        lazy = is_large_map(bags.instances) or self.device == "cuda"
        return Problem(
            bags if lazy else ready(bags),
            np.ascontiguousarray(targets),
            weights,
            self._loss(self.lam_),
            bool(self.fit_intercept),
            ready if lazy else None,
        )

    def _weights(self, targets: NDArray[np.bool_], weight: FloatArray, *, normalize: bool = True) -> FloatArray:
        """(n_bags, n_problems) weight of each bag."""
        return np.repeat((weight / weight.mean() if normalize else weight)[:, None], targets.shape[1], axis=1)
