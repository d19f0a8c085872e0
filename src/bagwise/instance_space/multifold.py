"""Multi-fold multiple-instance learning: bags choose their instances with models that have not seen them."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.preprocessing import SCALINGS, InstanceScaler


class MultiFoldSVC(InstanceScorer):
    """A linear SVM on one chosen instance of each positive bag, chosen anew by models that have not seen the bag.

    Choosing with a model that was trained on the very choice confirms itself; so positive bags are split into folds,
    and those of a fold choose with the model of the others. The first choice is the likeliest instance by the prior of
    the bags; without a prior, the one that an SVM of the bags' means likes best.

    Parameters
    ----------
    C : float
        Of the SVM.
    folds, rounds : int
        Folds of positive bags, and how often they choose.
    negatives : int
        Instances of each negative bag that are used, those with the highest score, mined anew every round.
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    random_state : int, RandomState or None
        The folds, and the order in which the SVM visits instances.

    Attributes
    ----------
    coef_ : (n_problems, n_features) array
        For scaled instances.
    intercept_ : (n_problems,) array

    References
    ----------
    Ramazan Gokberk Cinbis, Jakob Verbeek, Cordelia Schmid: Multi-fold MIL Training for Weakly Supervised Object
    Localization. CVPR 2014.

    Examples
    --------
    >>> from bagwise import MultiFoldSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MultiFoldSVC(random_state=0).fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    accepts_sparse = False

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "C": [Interval(Real, 0, None, closed="neither")],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "rounds": [Interval(Integral, 0, None, closed="left")],
        "negatives": [Interval(Integral, 1, None, closed="left")],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 0.1,
        *,
        folds: int = 5,
        rounds: int = 5,
        negatives: int = 10,
        scaling: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.folds = folds
        self.rounds = rounds
        self.negatives = negatives
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        rng = check_random_state(self.random_state)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        bags = self.scaler_.transform(bags)
        found = [self._fit_one(bags, positive, weight, rng) for positive in targets.T]
        self.coef_ = np.array([coef for coef, _ in found])
        self.intercept_ = np.array([intercept for _, intercept in found])

    def _fit_one(
        self, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        shown, absent = np.flatnonzero(positive), np.flatnonzero(~positive)
        scores = self._by_means(bags, positive, weight, rng) if bags.prior is None else bags.prior
        chosen = _best(bags, scores, shown, 1)
        hard = _best(bags, scores, absent, self.negatives)
        folds = min(self.folds, len(shown))
        for _ in range(self.rounds if folds > 1 else 0):
            fold = rng.permutation(len(shown)) % folds
            following = chosen.copy()
            total = np.zeros(bags.n_features)
            for k in range(folds):
                coef, _ = self._svm_of_rows(bags, chosen[fold != k], hard, weight, rng)
                following[fold == k] = _best(bags, bags.instances @ coef, shown[fold == k], 1)
                total += coef
            chosen, hard = following, _best(bags, bags.instances @ total, absent, self.negatives)
        return self._svm_of_rows(bags, chosen, hard, weight, rng)

    def _by_means(
        self, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> FloatArray:
        """Scores to begin with where there is no prior, (n_instances,)."""
        means = np.add.reduceat(bags.instances, bags.offsets[:-1], axis=0) / bags.sizes[:, None]
        coef, _ = self._svm(means, positive, weight, rng)
        return bags.instances @ coef

    def _svm_of_rows(
        self, bags: Bags, chosen: NDArray, hard: NDArray, weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        rows = np.concatenate([chosen, hard])
        positive = np.arange(len(rows)) < len(chosen)
        return self._svm(bags.instances[rows], positive, weight[bags.bag_of_instance[rows]], rng)

    def _svm(
        self, x: NDArray, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        svm = LinearSVC(C=self.C, class_weight="balanced", random_state=int(rng.randint(2**31 - 1)))
        svm.fit(x, positive, sample_weight=weight)
        return svm.coef_[0].astype(np.float64), float(svm.intercept_[0])

    def _instance_scores(self, bags: Bags) -> FloatArray:
        scaled = self.scaler_.transform(bags)
        return np.asarray(scaled.instances @ self.coef_.T, dtype=np.float64) + self.intercept_

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._instance_scores(bags), bags.offsets[:-1], axis=0)


def _best(bags: Bags, scores: FloatArray, which: NDArray, count: int) -> NDArray:
    """Rows of the highest scores in each of some bags, at most ``count`` of each."""
    rows = []
    for bag in which:
        start, stop = bags.offsets[bag], bags.offsets[bag + 1]
        rows.append(start + np.argsort(-scores[start:stop], kind="stable")[:count])
    return np.concatenate(rows)
