"""Multi-fold multiple-instance learning: bags choose their instances with models that have not seen them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedScorer
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler


class MultiFoldSVC(CalibratedScorer):
    """A linear SVM on one chosen instance of each positive bag, chosen anew by models that have not seen the bag.

    Choosing with a model that was trained on the very choice confirms itself; so positive bags are split into folds,
    and those of a fold choose with the model of the others. The first choice is the likeliest instance by the prior of
    the bags, which is added to the scores afterwards too; without a prior, or where it is the same everywhere, the one
    that an SVM of the bags' means likes best.

    Parameters
    ----------
    C : float
        Of the SVM.
    n_folds : int, default=5
        Folds of positive bags.
    max_iter : int, default=5
        How often they choose.
    n_negatives : int, default=10
        Instances of each negative bag that are used, those with the highest score, mined anew every time.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None
        The folds, and the order in which the SVM visits instances.

    Attributes
    ----------
    coef_ : (n_problems, n_features) array
        For scaled instances.
    intercept_ : (n_problems,) array
    n_iter_ : int
        Rounds made, the first included.

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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    accepts_sparse = False

    uses_prior = True
    sorts_bags = True

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "C": [Interval(Real, 0, None, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 0.1,
        *,
        n_folds: int = 5,
        max_iter: int = 5,
        n_negatives: int = 10,
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.n_negatives = n_negatives
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        rng = check_random_state(self.random_state)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        bags = self.scaler_.transform(bags)
        found = [self._fit_one(bags, positive, weight, rng) for positive in targets.T]
        self.coef_ = np.array([coef for coef, _, _ in found])
        self.intercept_ = np.array([intercept for _, intercept, _ in found])
        self.n_iter_ = max(made for _, _, made in found)

    def _fit_one(
        self, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, float, int]:
        shown, absent = np.flatnonzero(positive), np.flatnonzero(~positive)
        # A prior that is the same everywhere would choose the first instance of every bag.
        if bags.prior is not None and np.ptp(bags.prior) > 0:
            scores = bags.prior
        else:
            scores = self._by_means(bags, positive, weight, rng)
        chosen = _best(bags, scores, shown, 1)
        prior = 0.0 if bags.prior is None else bags.prior
        hard = _best(bags, scores, absent, self.n_negatives)
        folds = min(self.n_folds, len(shown))
        made = 1
        for _ in range(self.max_iter if folds > 1 else 0):
            made += 1
            fold = rng.permutation(len(shown)) % folds
            following = chosen.copy()
            total = np.zeros(bags.n_features)
            for k in range(folds):
                coef, _ = self._svm_of_rows(bags, chosen[fold != k], hard, weight, rng)
                following[fold == k] = _best(bags, bags.instances @ coef + prior, shown[fold == k], 1)
                total += coef
            harder = _best(bags, bags.instances @ (total / folds) + prior, absent, self.n_negatives)
            settled = np.array_equal(following, chosen) and np.array_equal(np.sort(harder), np.sort(hard))
            chosen, hard = following, harder
            if settled:
                break
        return *self._svm_of_rows(bags, chosen, hard, weight, rng), made

    def _by_means(
        self, bags: Bags, positive: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> FloatArray:
        """Scores to begin with where no prior tells instances apart, (n_instances,)."""
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

    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        scores = np.asarray(self.scaler_.transform(bags).instances @ self.coef_.T, dtype=np.float64) + self.intercept_
        return scores if bags.prior is None else scores + bags.prior[:, None]


def _best(bags: Bags, scores: FloatArray, which: NDArray, count: int) -> NDArray:
    """Rows of the highest scores in each of some bags, at most ``count`` of each."""
    rows = []
    for bag in which:
        start, stop = bags.offsets[bag], bags.offsets[bag + 1]
        rows.append(start + np.argsort(-scores[start:stop], kind="stable")[:count])
    return np.concatenate(rows)
