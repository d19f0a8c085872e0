"""Diverse density and EM-DD: a point that every positive bag comes near to and every negative bag keeps away from."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from bagwise._utils.columns import mean_and_variance
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.pooling import noisy_or_log_odds, softplus
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler, row_weights

# With more columns than this there are far more scales to learn than bags to learn them from.
WIDE = 1000
COMPONENTS_WHEN_WIDE = 100
# Concepts are weighted by the likelihood of this many bags: those that explain the training bags far worse than the
# best (a search that ended in a poor corner) have no say, and those that are about as good have about the same.
BAGS_THAT_DECIDE = 10
# Steps over all instances before EM-DD begins to choose.
FIRST_STEPS = 5


class _ConceptClassifier(CalibratedClassifier, InstanceScorer):
    """What diverse density and EM-DD share: starts at positive instances, concepts found in parallel, their mean."""

    has_own_probabilities = True
    sorts_bags = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "combine": [StrOptions({"average", "best"})],
        "initial_distance": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_init: int | None = 20,
        *,
        combine: str = "average",
        initial_distance: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-4,
        scaling: str | None = "standard",
        n_components: int | str | None = "auto",
        n_jobs: int | None = None,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_init = n_init
        self.combine = combine
        self.initial_distance = initial_distance
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    @abstractmethod
    def _search(
        self, rows: tuple, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, theta: Any
    ) -> tuple[float, int]:
        """Move theta (the point, then the scales) downhill in place; return the objective and the steps made."""

    @abstractmethod
    def _pool(self, z: FloatArray, offsets: NDArray[np.int64]) -> FloatArray:
        """(n_bags, n_models) log-odds of the bags from those of their instances, for each concept on its own."""

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        rng = check_random_state(self.random_state)
        self._fit_maps(bags, weight, rng)
        mapped = self._mapped(bags)
        rows = _rows(mapped.instances)
        # Half the mean squared distance of two instances.
        spread = float(mean_and_variance(mapped.instances, row_weights(mapped, weight))[1].sum())
        scale = np.sqrt(self.initial_distance / (2 * spread)) if spread > 0 else 1.0
        self.points_, self.scales_, self.objective_, self.weights_ = [], [], [], []
        self.n_iter_, self.converged_ = 0, True
        for positive in targets.T:
            starts = self._starts(mapped, positive, rng)
            found = self._search_from(starts, scale, rows, mapped, np.ascontiguousarray(positive), weight)
            values, theta = np.array([value for value, _, _ in found]), np.array([theta for _, _, theta in found])
            keep = [int(np.argmin(values))] if self.combine == "best" else slice(None)
            points, scales = np.split(theta[keep], 2, axis=1)
            self.points_.append(np.ascontiguousarray(points))
            self.scales_.append(np.abs(scales))
            self.objective_.append(values[keep])
            self.weights_.append(softmax(-BAGS_THAT_DECIDE * values[keep]))
            steps = [steps for _, steps, _ in found]
            self.n_iter_ = max(self.n_iter_, *steps)
            self.converged_ = self.converged_ and steps[int(np.argmin(values))] < self.max_iter

    def _search_from(
        self,
        starts: FloatArray,
        scale: float,
        rows: tuple,
        bags: Bags,
        positive: NDArray[np.bool_],
        weight: FloatArray,
    ) -> list[tuple[float, int, FloatArray]]:
        """One search from each starting point; the kernels release the GIL, so threads run side by side."""
        from joblib import Parallel, delayed

        def search(start: FloatArray) -> tuple[float, int, FloatArray]:
            theta = np.concatenate([start, np.full(len(start), scale)])
            value, steps = self._search(rows, bags, positive, weight, theta)
            return value, steps, theta

        return Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(search)(start) for start in starts)

    def _starts(self, bags: Bags, positive: NDArray[np.bool_], rng: np.random.RandomState) -> FloatArray:
        """Distinct instances of positive bags, in an order that does not depend on that of the bags."""
        candidates = np.flatnonzero(np.repeat(positive, bags.sizes))
        x = bags.instances[candidates]
        # Equal rows get equal keys, other rows get others: sorting by them costs one product, also for CSR.
        key = np.asarray(x @ np.random.RandomState(0).randn(x.shape[1]))
        digits = np.round(key / max(np.abs(key).max(), np.finfo(np.float64).tiny), 10)
        _, distinct = np.unique(digits, return_index=True)
        if self.n_init is not None and len(distinct) > self.n_init:
            distinct = distinct[rng.permutation(len(distinct))[: self.n_init]]
        chosen = x[distinct]
        return chosen.toarray() if sparse.issparse(chosen) else chosen

    def _fit_maps(self, bags: Bags, weight: FloatArray, rng: np.random.RandomState) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        x = self.scaler_.transform(bags).instances
        # Columns that never vary teach no scale; a new value in them must not count as distance either.
        self.columns_ = np.flatnonzero(_column_ranges(x) > 0)
        n_components: Any = self.n_components
        if n_components == "auto":
            n_components = COMPONENTS_WHEN_WIDE if len(self.columns_) > WIDE else None
        self.components_ = None
        if n_components is not None and n_components < len(self.columns_):
            from sklearn.utils.extmath import randomized_svd

            kept = x[:, self.columns_].astype(np.float64)
            n_components = min(n_components, kept.shape[0])
            self.components_ = randomized_svd(kept, n_components, random_state=rng)[2].T

    def _mapped(self, bags: Bags) -> Bags:
        x = self.scaler_.transform(bags).instances
        if len(self.columns_) < x.shape[1]:
            x = x[:, self.columns_]
        if self.components_ is not None:
            x = np.asarray(x @ self.components_)
        return bags.with_instances(x.astype(np.float64, copy=False))

    def _concept_log_odds(self, bags: Bags, problem: int) -> FloatArray:
        """(n_instances, n_models) log-odds that an instance is the concept, under each concept found."""
        distance = concept_distances(bags, self.points_[problem], self.scales_[problem])
        return -distance - np.log(-np.expm1(-distance))

    def _instance_scores(self, bags: Bags) -> FloatArray:
        mapped = self._mapped(bags)
        problems = range(len(self.points_))
        return np.column_stack(
            [_log_odds_of_mean(self._concept_log_odds(mapped, k), self.weights_[k]) for k in problems]
        )

    def _raw_scores(self, bags: Bags) -> FloatArray:
        mapped = self._mapped(bags)
        pooled = (self._pool(self._concept_log_odds(mapped, k), bags.offsets) for k in range(len(self.points_)))
        return np.column_stack([_log_odds_of_mean(one, weight) for one, weight in zip(pooled, self.weights_)])


class DiverseDensity(_ConceptClassifier):
    """Diverse density: the point that is near to all positive bags and far from the negative ones.

    An instance x is the concept with probability exp(-Σ_k s_k² (x_k - t_k)²); a bag is positive with the noisy-OR of
    its instances' probabilities. The point t and the scales s maximise the likelihood of the bags' labels; searches
    start from instances of positive bags.

    Parameters
    ----------
    n_init : int or None
        Number of searches, each from another instance of a positive bag, drawn at random; None starts from all.
    combine : {"average", "best"}
        Predict with the mean probability of the concepts that the searches found, weighted by how well each explains
        the training bags, or with the one that does so best. No other data takes part in the choice.
    initial_distance : float
        Mean squared distance of two instances under the scales that the search starts with.
    max_iter, tol
        Limits of L-BFGS: steps, and relative gain of a step at which it stops.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    n_components : int, "auto" or None
        Project the scaled instances to that many leading singular directions. "auto" does so, with 100 of them, where
        more than 1000 columns vary: documents have more words than there are bags to learn their scales from.
    n_jobs : int or None
        Searches that run at the same time, in threads.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None
        Draws the starts.

    Attributes
    ----------
    points_, scales_ : lists with one (n_models, n_columns) array for each binary problem
        The concept points and the scales of the columns.
    objective_ : list with one (n_models,) array for each binary problem
        Mean negative log-likelihood of the training bags that each search reached.
    weights_ : list with one (n_models,) array for each binary problem
        Share of each concept in the mean.
    n_iter_ : int
        Steps of the longest search (rounds, for `EMDD`).
    converged_ : bool
        Whether the best search of every problem ended before ``max_iter``.
    calibration_ : (n_problems, 2) array or None
        Slope and offset that make log-odds of a bag's score.

    References
    ----------
    Oded Maron, Tomás Lozano-Pérez: A Framework for Multiple-Instance Learning. NIPS 1998.

    Examples
    --------
    >>> from bagwise import DiverseDensity
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = DiverseDensity(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    def _search(
        self, rows: tuple, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, theta: Any
    ) -> tuple[float, int]:
        from bagwise.instance_space._dd_loops import minimize

        every = np.arange(bags.n_instances)
        return minimize(rows, every, bags.offsets, positive, weight, theta, self.max_iter, self.tol)

    def _pool(self, z: FloatArray, offsets: NDArray[np.int64]) -> FloatArray:
        return noisy_or_log_odds(z, offsets)


class EMDD(_ConceptClassifier):
    """EM-DD: diverse density in which only the instance nearest to the concept speaks for its bag.

    Rounds of two steps: choose in each bag the instance most likely to be the concept, then move the point and the
    scales to make those instances' labels most likely. A bag is as likely positive as its best instance. The first
    five steps move the point by all instances, as diverse density does: with many columns, the instances nearest to
    where a search starts are not yet worth following.

    Parameters other than these, and the attributes, are those of `DiverseDensity`.

    Parameters
    ----------
    max_iter : int, default=10
        Most rounds of choosing and moving.
    max_steps : int, default=50
        Most steps of L-BFGS in a round; ``tol`` is the relative gain of a step at which it stops.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    References
    ----------
    Qi Zhang, Sally Goldman: EM-DD: An Improved Multiple-Instance Learning Technique. NIPS 2001.

    Examples
    --------
    >>> from bagwise import EMDD
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = EMDD(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **_ConceptClassifier._parameter_constraints,
        "max_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_init: int | None = 20,
        *,
        combine: str = "average",
        initial_distance: float = 1.0,
        max_iter: int = 10,
        max_steps: int = 50,
        tol: float = 1e-4,
        scaling: str | None = "standard",
        n_components: int | str | None = "auto",
        n_jobs: int | None = None,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_init,
            combine=combine,
            initial_distance=initial_distance,
            max_iter=max_iter,
            tol=tol,
            scaling=scaling,
            n_components=n_components,
            n_jobs=n_jobs,
            calibrate=calibrate,
            class_weight=class_weight,
            positive=positive,
            random_state=random_state,
        )
        self.max_steps = max_steps

    def _search(
        self, rows: tuple, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, theta: Any
    ) -> tuple[float, int]:
        from bagwise.instance_space._dd_loops import expectation_maximization, minimize

        every = np.arange(bags.n_instances)
        minimize(rows, every, bags.offsets, positive, weight, theta, FIRST_STEPS, self.tol)
        return expectation_maximization(
            rows, bags.offsets, positive, weight, theta, self.max_iter, self.max_steps, self.tol
        )

    def _pool(self, z: FloatArray, offsets: NDArray[np.int64]) -> FloatArray:
        return np.maximum.reduceat(z, offsets[:-1], axis=0)


def concept_distances(bags: Bags, points: FloatArray, scales: FloatArray) -> FloatArray:
    """(n_instances, n_concepts) squared distances of instances to the points of concepts, under their scales."""
    from bagwise.instance_space._dd_loops import squared_distances

    rows, every = _rows(bags.instances), np.arange(bags.n_instances)
    distance = np.empty((len(points), len(every)))
    for point, scale, out in zip(points, scales, distance):
        squared_distances(rows, every, np.concatenate([point, scale]), out)
    return distance.T


def _log_odds_of_mean(log_odds: FloatArray, weight: FloatArray) -> FloatArray:
    """Log-odds of the weighted mean over columns of the probabilities with the given log-odds."""
    return logsumexp(-softplus(-log_odds), b=weight, axis=1) - logsumexp(-softplus(log_odds), b=weight, axis=1)


def _rows(x: Any) -> tuple:
    """Instances in the form the kernels take: (dense, data, indices, indptr), one side empty."""
    none, no_index = np.empty((0, 0)), np.empty(0, dtype=np.int64)
    if sparse.issparse(x):
        return none, x.data, x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x, none[0:0].ravel(), no_index, no_index


def _column_ranges(x: Any) -> FloatArray:
    """(d,) largest minus smallest value of each column."""
    if sparse.issparse(x):
        return np.asarray((x.max(axis=0) - x.min(axis=0)).todense()).ravel()
    return np.ptp(x, axis=0)
