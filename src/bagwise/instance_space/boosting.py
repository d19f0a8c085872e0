"""MILBoost: gradient boosting of trees over instances, under the noisy-OR likelihood of the bags."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from bagwise._utils.equal_bags import equal_units
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.calibrated import CALIBRATE, CalibratedClassifier
from bagwise.instance_space._trees import Trees, as_tree_input
from bagwise.pooling import noisy_or_log_odds, noisy_or_loss

# No round moves the log-odds of an instance by more than this, however well the labels can be separated.
LONGEST_STEP = 4.0


class MILBoost(CalibratedClassifier, InstanceScorer):
    """Gradient boosting under the noisy-OR model.

    The score of an instance is a sum of regression trees; its logistic function is the probability that the instance
    is positive, and a bag is positive with the noisy-OR of its instances. Each round fits a tree to the derivative of
    the bags' log-likelihood by the instances' scores and adds it with the step that raises the likelihood most. The
    likelihood of bags that were learned from promises too much, so the log-odds of bags are calibrated; those of
    instances, ``instance_scores``, are the model's own.

    Parameters
    ----------
    n_estimators : int
        Number of rounds.
    learning_rate : float
        Share of the best step that is made.
    max_depth : int
        Depth of the trees.
    max_features : float, int, "sqrt", "log2" or None
        Columns, drawn at random, that a split looks at; fewer are faster and make trees differ more.
    subsample : float
        Share of the bags, drawn anew each round, that the tree is fitted to.
    min_samples_leaf : int
        Fewest instances in a leaf.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more fits on
        four fifths of the bags.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None

    Attributes
    ----------
    trees_ : list of trees as arrays, one for each binary problem
    intercept_ : (n_problems,) array
        Score that boosting starts from.
    objective_ : (n_estimators, n_problems) array
        Mean loss of the training bags after each round.

    References
    ----------
    Paul Viola, John Platt, Cha Zhang: Multiple Instance Boosting for Object Detection. NIPS 2005.

    Examples
    --------
    >>> from bagwise import MILBoost
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MILBoost(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    has_own_probabilities = True
    sorts_bags = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        learning_rate: float = 0.1,
        max_depth: int = 3,
        max_features: float | int | str | None = "sqrt",
        subsample: float = 0.5,
        min_samples_leaf: int = 1,
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_features = max_features
        self.subsample = subsample
        self.min_samples_leaf = min_samples_leaf
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        rng = check_random_state(self.random_state)
        x = as_tree_input(bags.instances)
        boosted = [self._boost(x, bags, target, weight, rng) for target in targets.T]
        self.trees_ = [trees for trees, _, _ in boosted]
        self.intercept_ = np.array([start for _, start, _ in boosted])
        self.objective_ = np.column_stack([history for _, _, history in boosted])

    def _boost(
        self, x: FloatArray, bags: Bags, target: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[Trees, float, list[float]]:
        from sklearn.tree import DecisionTreeRegressor

        offsets, share = bags.offsets, weight / weight.sum()

        def loss(z: FloatArray) -> float:
            return float(share @ noisy_or_loss(z, offsets, target)[0])

        start = best_step(loss, np.zeros(bags.n_instances), np.ones(bags.n_instances), lowest=-30.0)
        z = np.full(bags.n_instances, start)
        grown, values, history = [], [], []
        for _ in range(self.n_estimators):
            times = self._times_drawn(weight, rng)
            rows = np.flatnonzero(np.repeat(times > 0, bags.sizes))
            uphill = noisy_or_loss(z, offsets, target)[1]
            tree = DecisionTreeRegressor(
                max_depth=self.max_depth,
                max_features=self.max_features,
                min_samples_leaf=self.min_samples_leaf,
                random_state=rng.randint(np.iinfo(np.int32).max),
            ).fit(x[rows], uphill[rows], sample_weight=np.repeat(times, bags.sizes)[rows])
            direction = tree.predict(x)
            step = self.learning_rate * best_step(loss, z, direction)
            z = z + step * direction
            grown.append(tree.tree_)
            values.append(step * tree.tree_.value[:, 0, 0])
            history.append(loss(z))
        return Trees.collect(grown, values), start, history

    def _times_drawn(self, weight: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """(n_bags,) how much of each bag a tree is fitted to: all, or a random share of the units they are cut into."""
        if self.subsample == 1:
            return weight / weight.mean()
        units = equal_units(weight, rng)
        drawn = units[rng.permutation(len(units))[: max(1, round(self.subsample * len(units)))]]
        return np.bincount(drawn, minlength=len(weight)).astype(np.float64)

    def _instance_scores(self, bags: Bags) -> FloatArray:
        scores = np.column_stack([trees.sums(bags.instances) for trees in self.trees_])
        return scores + self.intercept_

    def _raw_scores(self, bags: Bags) -> FloatArray:
        return noisy_or_log_odds(self._instance_scores(bags), bags.offsets)


def best_step(
    loss: Callable[[FloatArray], float], z: FloatArray, direction: FloatArray, *, lowest: float = 0.0
) -> float:
    """The a from lowest to LONGEST_STEP / max |direction| that makes loss(z + a * direction) least; 0 if none helps."""
    height = float(np.abs(direction).max())
    if height == 0.0:
        return 0.0

    def at(step: float) -> float:
        return loss(z + step * direction)

    # Double the reach until the loss rises: the minimum then lies below it.
    longest = LONGEST_STEP / height
    reach, value = longest / 64, at(longest / 64)
    while reach < longest and (further := at(2 * reach)) < value:
        reach, value = 2 * reach, further
    bounds = (lowest, min(2 * reach, longest))
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 0.02 * reach})
    return float(found.x) if found.fun < at(0.0) else 0.0
