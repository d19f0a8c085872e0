"""Looking into a fitted model: scores of instances, the strongest ones, what each feature adds.

Displays follow scikit-learn: ``Display.from_estimator(...)`` draws with matplotlib and keeps ``ax_`` and ``figure_``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bagwise._utils.optional import require
from bagwise.bags import Bags, is_ragged
from bagwise.base import InstanceScorer
from bagwise.calibrated import CalibratedScorer

POSITIVE, NEGATIVE, UNKNOWN = "#d1603d", "#4f7cac", "#777777"


def _as_bags(X: Any) -> Bags:
    return X if isinstance(X, Bags) else Bags(X if is_ragged(X) else np.asarray(X))


def _scores_of(estimator: InstanceScorer, bags: Bags, label: Any) -> NDArray[np.float64]:
    """(n_instances,) scores of one class."""
    scores = estimator.instance_scores(bags)
    if scores.ndim == 1:
        return scores
    if label is None:
        raise ValueError(f"the model has {scores.shape[1]} classes: name one of {estimator.classes_.tolist()} as label")
    column = np.flatnonzero(estimator.classes_ == label)
    if not len(column):
        raise ValueError(f"{label!r} is not among the classes {estimator.classes_.tolist()}")
    return scores[:, column[0]]


def top_instances(estimator: InstanceScorer, X: Any, n: int = 10, *, label: Any = None) -> dict[str, NDArray]:
    """The instances with the highest scores, with the bags they are in.

    Parameters
    ----------
    estimator : fitted classifier that scores instances
    X : Bags, or anything that makes Bags
    n : int, default=10
    label : class, optional
        Needed with more than two classes.

    Returns
    -------
    dict of arrays, the highest score first; ``pandas.DataFrame`` takes it as it is
        bag: id of the bag, or its number where bags have no ids; row: number of the instance in its bag;
        score; rank: 1 for the best of its own bag.

    Examples
    --------
    >>> from bagwise import RMISVC
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.inspection import top_instances
    >>> bags, y = load_musk1()
    >>> top = top_instances(RMISVC(random_state=0).fit(bags, y), bags, n=5)
    >>> len(top["bag"]), bool((np.diff(top["score"]) <= 0).all())
    (5, True)
    """
    bags = _as_bags(X)
    scores = _scores_of(estimator, bags, label)
    rank = np.concatenate([np.argsort(np.argsort(-part, kind="stable")) + 1 for part in bags.split(scores)])
    best = np.argsort(-scores, kind="stable")[:n]
    bag = bags.bag_of_instance[best]
    ids = np.arange(len(bags)) if bags.ids is None else bags.ids
    return {"bag": ids[bag], "row": best - bags.offsets[bag], "score": scores[best], "rank": rank[best]}


def feature_contributions(estimator: Any, X: Any, *, label: Any = None) -> tuple[NDArray, NDArray[np.float64]]:
    """What each feature adds to the score of each instance, for a linear model.

    Parameters
    ----------
    estimator : fitted classifier with ``coef_``
    X : Bags, or anything that makes Bags
    label : class, optional
        Needed with more than two classes.

    Returns
    -------
    names : (n_features,) array of str
        The feature names of the fit, or x0, x1, ...
    contributions : (n_instances, n_features) array
        A row sums to the instance's score but for the intercept and the prior (and for scores in a far tail, which
        count for less: `bagwise.calibration.without_tails`).
    """
    mapped = getattr(estimator, "kernel_map_", None) is not None
    if mapped or not hasattr(estimator, "coef_") or getattr(estimator, "kernel", "linear") not in ("linear", "auto"):
        raise ValueError(
            f"this {type(estimator).__name__} has no weight for each feature: use a linear model such as "
            "RMISVC(kernel='linear') or MISVC()"
        )
    bags = _as_bags(X)
    scaler = getattr(estimator, "scaler_", None)
    rows = bags.instances if scaler is None else scaler.transform(bags).instances
    rows = rows.toarray() if sparse.issparse(rows) else rows
    coef = np.atleast_2d(estimator.coef_)
    problem = 0
    if len(coef) > 1:
        column = np.flatnonzero(estimator.classes_ == label)
        if not len(column):
            raise ValueError(f"name one of the classes {estimator.classes_.tolist()} as label, not {label!r}")
        problem = int(column[0])
    weight = coef[problem]
    if isinstance(estimator, CalibratedScorer) and estimator.calibration_ is not None:
        weight = weight * estimator.calibration_[problem, 0]  # its instance scores are log-odds
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{k}" for k in range(len(weight))])
    return np.asarray(names), rows * weight


class _Display:
    """What the displays share: an axes to draw on."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            _, ax = require("matplotlib.pyplot", extra="plot").subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class InstanceScoreDisplay(_Display):
    """The scores of the instances of some bags: a line of dots for each bag, the strongest instance filled.

    Parameters
    ----------
    scores : sequence of (m_i,) arrays, one for each bag
    y : sequence of labels, optional
    names : sequence of str, optional
        By default the numbers of the bags.
    positive : label, optional
        The label that is drawn in the colour of positive bags; by default the one that sorts last.
    what : str, default="score"
        Name of the axis.

    Examples
    --------
    >>> from bagwise import RMISVC
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.inspection import InstanceScoreDisplay
    >>> bags, y = load_musk1()
    >>> model = RMISVC(random_state=0).fit(bags, y)
    >>> display = InstanceScoreDisplay.from_estimator(model, bags[40:50], y[40:50])
    >>> len(display.scores)
    10
    """

    def __init__(
        self,
        scores: Sequence[NDArray[np.float64]],
        y: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        positive: Any = None,
        what: str = "score",
    ) -> None:
        self.scores = list(scores)
        self.y = None if y is None else np.asarray(y)
        self.names = [str(i) for i in range(len(self.scores))] if names is None else list(names)
        self.positive = positive
        self.what = what

    @classmethod
    def from_estimator(
        cls, estimator: InstanceScorer, X: Any, y: ArrayLike | None = None, *, label: Any = None, ax: Any = None
    ) -> Self:
        """Score the instances and draw them.

        Parameters
        ----------
        estimator : fitted classifier that scores instances
        X : Bags, or anything that makes Bags
        y : labels, optional
            They colour the bags.
        label : class, optional
            Needed with more than two classes.
        ax : matplotlib axes, optional
        """
        bags = _as_bags(X)
        names = None if bags.ids is None else [str(name) for name in bags.ids]
        positive = label if label is not None else getattr(estimator, "positive_class_", estimator.classes_[-1])
        return cls(bags.split(_scores_of(estimator, bags, label)), y, names, positive).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes, or on a new figure."""
        ax = self._axes(ax)
        positive = self.positive if self.positive is not None or self.y is None else np.unique(self.y)[-1]
        for i, scores in enumerate(self.scores):
            color = UNKNOWN if self.y is None else POSITIVE if self.y[i] == positive else NEGATIVE
            ax.plot(scores, np.full(len(scores), i), "o", mfc="none", mec=color, ms=4, alpha=0.6)
            ax.plot(np.max(scores), i, "o", color=color, ms=6)
        ax.set_yticks(range(len(self.scores)), self.names)
        ax.invert_yaxis()
        ax.set_xlabel(f"{self.what} of each instance; filled: the highest of its bag")
        ax.set_ylabel("bag")
        return self


class FeatureContributionDisplay(_Display):
    """The features that add most to, and take most from, the score of one instance.

    Parameters
    ----------
    names : (n_features,) array of str
    contributions : (n_features,) array
    """

    def __init__(self, names: ArrayLike, contributions: ArrayLike) -> None:
        self.names, self.contributions = np.asarray(names), np.asarray(contributions, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls, estimator: InstanceScorer, bag: Any, *, n_features: int = 15, label: Any = None, ax: Any = None
    ) -> Self:
        """Draw the contributions to the highest score of a bag.

        Parameters
        ----------
        estimator : fitted linear classifier
        bag : Bags of one bag, or an (m, d) array
        n_features : int, default=15
            How many to show, the largest first.
        label : class, optional
            Needed with more than two classes.
        ax : matplotlib axes, optional
        """
        bags = bag if isinstance(bag, Bags) else Bags([bag])
        if len(bags) != 1:
            raise ValueError(f"give one bag, not {len(bags)}: bags[[i]] is a Bags of bag i alone")
        best = int(np.argmax(_scores_of(estimator, bags, label)))
        names, contributions = feature_contributions(estimator, bags, label=label)
        return cls(names, contributions[best]).plot(n_features=n_features, ax=ax)

    def plot(self, *, n_features: int = 15, ax: Any = None) -> Self:
        """Draw the largest contributions on the axes, or on a new figure."""
        ax = self._axes(ax)
        largest = np.argsort(-np.abs(self.contributions), kind="stable")[:n_features]
        values = self.contributions[largest]
        ax.barh(range(len(largest)), values, color=[POSITIVE if value > 0 else NEGATIVE for value in values])
        ax.set_yticks(range(len(largest)), self.names[largest])
        ax.invert_yaxis()
        ax.axvline(0, color="black", lw=0.8)
        ax.set_xlabel("what the feature adds to the score")
        return self


class LamPathDisplay(_Display):
    """What `RMISVC` compared when it chose lambda: the log loss on bags set aside, a line for each other choice.

    Parameters
    ----------
    path : dict of arrays
        ``path_`` of a fitted `RMISVC`.

    Examples
    --------
    >>> from bagwise import RMISVC
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.inspection import LamPathDisplay
    >>> model = RMISVC(random_state=0).fit(*load_musk1())
    >>> display = LamPathDisplay.from_estimator(model)
    >>> len(display.ax_.get_legend().get_texts())
    7
    """

    def __init__(self, path: Mapping[str, NDArray]) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the path of a fitted `RMISVC` whose lam was chosen.

        Parameters
        ----------
        estimator : fitted RMISVC
        ax : matplotlib axes, optional
        """
        path = getattr(estimator, "path_", None)
        if path is None:
            name = type(estimator).__name__
            raise ValueError(f"this {name} has compared no values of lam: fit an RMISVC with lam='auto'")
        return cls(path).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes, or on a new figure."""
        ax = self._axes(ax)
        path = self.path
        kinds = list(zip(*(path[name].tolist() for name in ("scaling", "kernel", "pooling"))))
        for kind in dict.fromkeys(kinds):
            rows = np.array([row for row, each in enumerate(kinds) if each == kind])
            rows = rows[np.argsort(path["lam"][rows], kind="stable")]
            scaling, kernel, pooling = kind
            label = f"scaling {scaling}, {pooling}" + (f", {kernel}" if kernel != "linear" else "")
            ax.plot(path["lam"][rows], path["log_loss"][rows], "o-", ms=4, label=label)
        chosen = path["chosen"]
        ax.plot(path["lam"][chosen], path["log_loss"][chosen], "o", ms=12, mfc="none", mec="black", label="chosen")
        ax.set_xscale("log")
        ax.set_xlabel("lam")
        ax.set_ylabel("log loss on bags set aside")
        ax.legend()
        return self
