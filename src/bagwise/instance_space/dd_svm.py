"""DD-SVM: bags described by how near they come to the concepts that diverse density finds, and a kernel machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state

from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.instance_space.diverse_density import DiverseDensity, concept_distances
from bagwise.preprocessing import GAMMA_CONSTRAINT, SCALING_CONSTRAINT, gaussian_gamma

# Two searches that end nearer to each other than this share of a prototype's size found the same one.
SAME = 0.05
# LIBSVM's own tolerance leaves the order of the bags visible in the third digit of the scores.
TOLERANCE = 1e-9


class DDSVC(CalibratedClassifier):
    """Support vector machine on the distances of bags to instance prototypes (DD-SVM).

    Searches for diverse density start from instances of positive bags, and, with the labels turned round, from
    instances of negative ones. Where they end are the prototypes: a point, and a scale for each column. Those whose
    density is below the middle of what was found are left out, and of several that are about the same, the best is
    kept. A bag becomes the vector of the distances of its nearest instance to each prototype, on which a machine with a
    Gaussian kernel is trained. So more than one concept, of either class, can decide.

    Parameters
    ----------
    C : float, default=10
        Penalty of the support vector machine.
    gamma : float, "scale" or "distance", default="distance"
        Width of the Gaussian kernel between the vectors of distances; see `gaussian_gamma`.
    n_init : int or None, default=20
        Number of searches for each class, each from another instance, drawn at random; None starts from all.
    max_iter, tol : int, default=200, and float, default=1e-4
        Limits of each search: steps, and relative gain of a step at which it stops.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}, default="standard"
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of bags by their label.
    positive : label, default=None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    n_jobs : int or None, default=None
        Searches that run at the same time, in threads.
    random_state : int, RandomState or None, default=None
        Draws the starts.

    Attributes
    ----------
    concepts_ : DiverseDensity
        What maps instances to the space of the prototypes.
    points_, scales_ : lists with one (n_prototypes, n_columns) array for each binary problem
    centre_, spread_ : lists of (n_prototypes,) arrays
        Mean and deviation over the training bags of the distances to each prototype, which standardise them.
    support_vectors_, dual_coef_ : lists of (n_support, n_prototypes) and (n_support,) arrays
    intercept_ : (n_problems,) array
    gamma_ : (n_problems,) array
    n_iter_ : int
        Steps of the longest search.
    converged_ : bool
        Whether the best search of every problem ended before ``max_iter``.
    calibration_ : (n_problems, 2) array or None
        Slope and offset that make log-odds of scores.

    References
    ----------
    Yixin Chen, James Z. Wang: Image Categorization by Learning and Reasoning with Regions. Journal of Machine Learning
    Research 5, 2004.

    Examples
    --------
    >>> from bagwise import DDSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = DDSVC(random_state=0).fit(bags, y)
    >>> model.predict(bags[[0, 1, -2, -1]])
    array([1, 1, 0, 0])
    """

    sorts_bags = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": GAMMA_CONSTRAINT,
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 10.0,
        gamma: float | str = "distance",
        *,
        n_init: int | None = 20,
        max_iter: int = 200,
        tol: float = 1e-4,
        scaling: str | None = "standard",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.concepts_ = DiverseDensity(
            self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            scaling=self.scaling,
            calibrate=False,
            n_jobs=self.n_jobs,
            random_state=seed,
        )
        self.concepts_.n_features_in_ = bags.n_features
        self.concepts_._learn(bags, np.hstack([targets, ~targets]), weight)
        self.n_iter_, self.converged_ = self.concepts_.n_iter_, self.concepts_.converged_
        mapped = self.concepts_._mapped(bags)
        found, n_problems = self.concepts_, targets.shape[1]
        self.points_, self.scales_ = [], []
        self.centre_: list[FloatArray] = []
        self.spread_: list[FloatArray] = []
        self.support_vectors_: list[FloatArray] = []
        self.dual_coef_: list[FloatArray] = []
        self.intercept_, self.gamma_ = np.zeros(n_problems), np.zeros(n_problems)
        for k, target in enumerate(targets.T):
            both = [distinct(found.points_[j], found.scales_[j], found.objective_[j]) for j in (k, k + n_problems)]
            self.points_.append(np.concatenate([points for points, _ in both]))
            self.scales_.append(np.concatenate([scales for _, scales in both]))
            self._fit_machine(k, nearest_distances(mapped, self.points_[k], self.scales_[k]), target, weight)

    def _fit_machine(self, k: int, near: FloatArray, target: NDArray[np.bool_], weight: FloatArray) -> None:
        from sklearn.svm import SVC  # here, because it is slow to import

        mean = np.average(near, axis=0, weights=weight)
        spread = np.sqrt(np.average((near - mean) ** 2, axis=0, weights=weight))
        self.centre_.append(mean)
        self.spread_.append(np.where(spread > 0, spread, 1.0))
        features = (near - mean) / self.spread_[k]
        self.gamma_[k] = gaussian_gamma(self.gamma, features, weight)
        machine = SVC(C=self.C, kernel="precomputed", tol=TOLERANCE)
        machine.fit(rbf_kernel(features, gamma=self.gamma_[k]), target, sample_weight=weight)
        self.support_vectors_.append(features[machine.support_])
        self.dual_coef_.append(machine.dual_coef_[0])
        self.intercept_[k] = machine.intercept_[0]

    def _raw_scores(self, bags: Bags) -> FloatArray:
        mapped = self.concepts_._mapped(bags)
        scores = np.empty((len(bags), len(self.points_)))
        for k, (points, scales) in enumerate(zip(self.points_, self.scales_)):
            features = (nearest_distances(mapped, points, scales) - self.centre_[k]) / self.spread_[k]
            kernel = rbf_kernel(features, self.support_vectors_[k], gamma=self.gamma_[k])
            scores[:, k] = kernel @ self.dual_coef_[k] + self.intercept_[k]
        return scores


def distinct(points: FloatArray, scales: FloatArray, objective: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The prototypes worth keeping: of high density, and different from each other.

    Parameters
    ----------
    points, scales : (n, n_columns) arrays
    objective : (n,) mean negative log-likelihood of the bags, lower where the density is higher

    Returns
    -------
    points, scales : the best first
    """
    order = np.argsort(objective, kind="stable")
    good = order[objective[order] <= (objective.min() + objective.max()) / 2]
    kept: list[int] = []
    for i in good:
        size = np.linalg.norm(points[i]) + np.linalg.norm(scales[i])
        away = (np.linalg.norm(points[i] - points[j]) + np.linalg.norm(scales[i] - scales[j]) for j in kept)
        if all(distance > SAME * size for distance in away):
            kept.append(int(i))
    return points[kept], scales[kept]


def nearest_distances(bags: Bags, points: FloatArray, scales: FloatArray) -> FloatArray:
    """(n_bags, n_prototypes) distance of each bag's nearest instance to each prototype, under its scales."""
    squares = concept_distances(bags, points, scales)
    return np.sqrt(np.minimum.reduceat(squares, bags.offsets[:-1], axis=0))
