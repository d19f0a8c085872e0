"""MIForest: a random forest over instances whose hidden labels are found by deterministic annealing."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from bagwise._utils.equal_bags import equal_units
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.instance_space._trees import Trees, as_tree_input
from bagwise.pooling import softplus


class MIForest(InstanceScorer):
    """Random forest that learns which instances make their bags positive.

    The first forest takes every instance of a positive bag for positive. Then, round by round, each tree draws labels
    of its own for the instances of positive bags, from the probabilities that the last forest gives them, sharpened
    by a temperature that falls; the most likely instance of a positive bag always stays positive, and those of
    negative bags negative. A bag has the score of its best instance. Every tree sees a random part of the bags; the
    others calibrate the scores and choose the round whose forest is kept, so that annealing cannot make things worse.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    max_iter : int, default=4
        Number of forests grown after the first.
    temperature : float
        Temperature of the first of these rounds: at 1 labels are drawn nearly at random, at 0.1 nearly as the forest
        has it.
    cooling : float
        Factor of the temperature from each round to the next.
    max_depth : int or None
        Depth of the trees; None grows them until leaves are pure.
    max_features : float, int, "sqrt", "log2" or None
        Columns, drawn at random, that a split looks at.
    min_samples_leaf : int
        Fewest instances in a leaf.
    n_jobs : int or None
        Trees that are grown at the same time, in threads.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None

    Attributes
    ----------
    trees_ : list of trees as arrays, one for each binary problem
    calibration_ : (n_problems, 2) array
        Slope and intercept that turn the best instance's log-odds into the bag's.
    n_iter_ : int
        Rounds made, the first included.
    objective_ : (max_iter + 1, n_problems) array
        Mean loss of each forest on the bags that its trees have not seen.

    References
    ----------
    Christian Leistner, Amir Saffari, Horst Bischof: MIForests: Multiple-Instance Learning with Randomized Trees.
    ECCV 2010.

    Examples
    --------
    >>> from bagwise import MIForest
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = MIForest(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    sorts_bags = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "cooling": [Interval(Real, 0, 1, closed="right")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        max_iter: int = 4,
        temperature: float = 0.2,
        cooling: float = 0.7,
        max_depth: int | None = None,
        max_features: float | int | str | None = "sqrt",
        min_samples_leaf: int = 1,
        n_jobs: int | None = None,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.temperature = temperature
        self.cooling = cooling
        self.max_depth = max_depth
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        rng = check_random_state(self.random_state)
        x = as_tree_input(bags.instances)
        annealed = [self._anneal(x, bags, target, weight, rng) for target in targets.T]
        self.trees_ = [trees for trees, _, _ in annealed]
        self.calibration_ = np.array([line for _, line, _ in annealed])
        rounds = max(len(losses) for _, _, losses in annealed)  # those that ended early stay where they are
        self.objective_ = np.column_stack([np.pad(ls, (0, rounds - len(ls)), "edge") for _, _, ls in annealed])
        self.n_iter_ = rounds

    def _anneal(
        self, x: Any, bags: Bags, target: NDArray[np.bool_], weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[Trees, tuple[float, float], list[float]]:
        """The best forest, its calibration, and the loss of every round on bags that trees have not seen."""
        hidden = np.repeat(target, bags.sizes)
        positive_share = hidden.astype(np.float64)
        temperature = self.temperature
        losses: list[float] = []
        for round_ in range(self.max_iter + 1):
            trees, unseen = self._grow(x, bags, positive_share, weight, rng)
            score = np.maximum.reduceat(self._log_odds(unseen), bags.offsets[:-1])
            slope, intercept = _calibrate(score, target, weight)
            z = slope * score + intercept
            losses.append(float(np.average(softplus(np.where(target, -z, z)), weights=weight)))
            if losses[-1] == min(losses):
                best, line = trees, (slope, intercept)
            if round_ < self.max_iter:
                p = trees.sums(bags.instances) / self.n_estimators
                former, positive_share = positive_share, np.where(hidden, expit((2 * p - 1) / temperature), 0.0)
                positive_share[_best_of_each_bag(p, bags, target)] = 1.0
                temperature *= self.cooling
                if np.array_equal(positive_share, former):  # bags of one instance have no hidden labels
                    break
        return best, line, losses

    def _grow(
        self, x: Any, bags: Bags, positive_share: FloatArray, weight: FloatArray, rng: np.random.RandomState
    ) -> tuple[Trees, FloatArray]:
        from joblib import Parallel, delayed
        from sklearn.tree import DecisionTreeClassifier

        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_estimators)

        def grow(seed: int) -> tuple[Any, NDArray, NDArray, NDArray]:
            own = np.random.RandomState(seed)
            labels = own.uniform(size=len(positive_share)) < positive_share
            units = equal_units(weight, own)
            times = np.bincount(units[own.randint(len(units), size=len(units))], minlength=len(bags))
            drawn, rest = (np.flatnonzero(np.repeat(is_in, bags.sizes)) for is_in in (times > 0, times == 0))
            tree = DecisionTreeClassifier(
                max_depth=self.max_depth,
                max_features=self.max_features,
                min_samples_leaf=self.min_samples_leaf,
                random_state=own.randint(np.iinfo(np.int32).max),
            ).fit(x[drawn], labels[drawn], sample_weight=np.repeat(times, bags.sizes)[drawn].astype(np.float64))
            nodes = _positive_share_of_nodes(tree)
            leaves = tree.apply(x[rest]) if len(rest) else np.empty(0, dtype=np.int64)
            return tree.tree_, nodes, rest, nodes[leaves]

        grown = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(grow)(seed) for seed in seeds)
        total, count = np.zeros(len(positive_share)), np.zeros(len(positive_share))
        for _, _, rest, values in grown:
            total[rest] += values
            count[rest] += 1
        trees = Trees.collect([tree for tree, _, _, _ in grown], [nodes for _, nodes, _, _ in grown])
        # A bag that every tree has seen is judged by all of them, having nothing better.
        by_all = trees.sums(bags.instances) / self.n_estimators if (count == 0).any() else total
        return trees, np.where(count > 0, total / np.maximum(count, 1), by_all)

    def _log_odds(self, p: FloatArray) -> FloatArray:
        """Finite also where all trees agree: as though one more tree were undecided."""
        return logit((p * self.n_estimators + 0.5) / (self.n_estimators + 1))

    def _instance_scores(self, bags: Bags) -> FloatArray:
        votes = np.column_stack([trees.sums(bags.instances) for trees in self.trees_])
        return self._log_odds(votes / self.n_estimators) * self.calibration_[:, 0] + self.calibration_[:, 1]

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._instance_scores(bags), bags.offsets[:-1], axis=0)


def _positive_share_of_nodes(tree: Any) -> NDArray[np.float64]:
    """(n_nodes,) share of positive labels in each node of a classification tree, which may have seen one class only."""
    if len(tree.classes_) == 1:
        return np.full(tree.tree_.node_count, float(tree.classes_[0]))
    shares = tree.tree_.value[:, 0, :]
    return shares[:, 1] / shares.sum(axis=1)


def _best_of_each_bag(p: FloatArray, bags: Bags, target: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Index of the most likely instance of every positive bag, the first of equal ones."""
    highest = np.repeat(np.maximum.reduceat(p, bags.offsets[:-1]), bags.sizes)
    at_highest = np.flatnonzero(p == highest)
    bag, first = np.unique(bags.bag_of_instance[at_highest], return_index=True)
    return at_highest[first][target[bag]]


def _calibrate(score: FloatArray, target: NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of the labels on the scores.

    The prior of one standard normal draw for the slope keeps it finite where the scores separate the labels. Scores
    that run against the labels carry nothing to calibrate with and stay as they are.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0).fit(score[:, None], target, sample_weight=weight)
    slope = float(model.coef_[0, 0])
    return (slope, float(model.intercept_[0])) if slope > 0 else (1.0, 0.0)
