"""Multi-fold multiple-instance learning, to compare with (Cinbis, Verbeek and Schmid, CVPR 2014)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer


class MultiFoldSVC(InstanceScorer):
    """A linear SVM on one chosen instance of each positive bag, chosen anew by models that have not seen the bag.

    Choosing with a model that was trained on the very choice confirms itself; so positive bags are split into folds,
    and those of a fold choose with the model of the others.

    Parameters
    ----------
    C : float
        Of the SVM.
    folds, rounds : int
        Folds of positive bags, and how often they choose.
    negatives : int
        Instances of each negative bag that are used, those with the highest score, mined anew every round.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_ : (n_problems, n_features) array
    intercept_ : (n_problems,) array
    """

    accepts_sparse = False

    def __init__(
        self,
        C: float = 0.1,
        *,
        folds: int = 5,
        rounds: int = 5,
        negatives: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.folds = folds
        self.rounds = rounds
        self.negatives = negatives
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        rng = check_random_state(self.random_state)
        found = [self._fit_one(bags, positive, weight, rng) for positive in targets.T]
        self.coef_ = np.array([coef for coef, _ in found])
        self.intercept_ = np.array([intercept for _, intercept in found])

    def _fit_one(
        self, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        shown, absent = np.flatnonzero(positive), np.flatnonzero(~positive)
        # Before there is a model: the likeliest by the prior; without one, the first instance, as good as any.
        scores = np.zeros(bags.n_instances) if bags.prior is None else bags.prior
        chosen = _best(bags, scores, shown, 1)
        hard = _best(bags, scores, absent, self.negatives)
        folds = min(self.folds, len(shown))
        for _ in range(self.rounds if folds > 1 else 0):
            fold = rng.permutation(len(shown)) % folds
            following = chosen.copy()
            total = np.zeros(bags.n_features)
            for k in range(folds):
                coef, _ = self._svm(bags, chosen[fold != k], hard, weight, rng)
                following[fold == k] = _best(bags, bags.instances @ coef, shown[fold == k], 1)
                total += coef
            chosen, hard = following, _best(bags, bags.instances @ total, absent, self.negatives)
        return self._svm(bags, chosen, hard, weight, rng)

    def _svm(
        self, bags: Bags, chosen: NDArray, hard: NDArray, weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float]:
        rows = np.concatenate([chosen, hard])
        y = np.arange(len(rows)) < len(chosen)
        svm = LinearSVC(C=self.C, class_weight="balanced", random_state=int(rng.randint(2**31 - 1)))
        svm.fit(bags.instances[rows], y, sample_weight=weight[bags.bag_of_instance[rows]])
        return svm.coef_[0].astype(np.float64), float(svm.intercept_[0])

    def _instance_scores(self, bags: Bags) -> FloatArray:
        return np.asarray(bags.instances @ self.coef_.T, dtype=np.float64) + self.intercept_

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._instance_scores(bags), bags.offsets[:-1], axis=0)


def _best(bags: Bags, scores: Any, which: NDArray, count: int) -> NDArray:
    """Rows of the highest scores in each of some bags, at most ``count`` of each."""
    rows = []
    for bag in which:
        start, stop = bags.offsets[bag], bags.offsets[bag + 1]
        rows.append(start + np.argsort(-scores[start:stop], kind="stable")[:count])
    return np.concatenate(rows)
