"""The protocol of the multiple-instance literature: ten times 10-fold cross-validation over bags, unstratified."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as t_distribution
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid, RepeatedKFold

from bagwise.bags import Bags
from bagwise.base import InstanceScorer
from bagwise.metrics.probability import expected_calibration_error

INNER_FOLDS = 5


@dataclass(frozen=True)
class Repeat:
    """One pass of k-fold cross-validation: accuracy and fitting time of each fold, and what was selected in it."""

    accuracy: list[float]
    fit_seconds: list[float]
    selected: list[dict[str, Any]]
    # Area under the ROC curve of the instance scores of the test bags, where the truth about instances is known;
    # None for a fold without instances of both kinds.
    instance_auc: list[float | None] = field(default_factory=list)
    # Mean log loss of each fold, for methods that have probabilities; and over all test bags of the repeat, how far
    # the probabilities are off and, for two classes, the area under the ROC curve.
    log_loss: list[float] = field(default_factory=list)
    calibration_error: float | None = None
    auc: float | None = None


def folds(n_bags: int, repeat: int, n_folds: int = 10) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and test bags of each fold of one repeat; the same for every method."""
    yield from KFold(n_folds, shuffle=True, random_state=repeat).split(np.zeros(n_bags))


@dataclass(frozen=True)
class UnlessClearlyBetter:
    """Choose the candidate with the best inner score, but keep one that is within a standard error of it.

    With a hundred bags the best of a dozen candidates is often the luckiest one. The error is that of the difference
    on the same folds; repeats of the folds see the same bags again and do not make it smaller.
    """

    kept: int

    def __call__(self, results: dict[str, Any]) -> int:
        n_splits = sum(name.startswith("split") and name.endswith("_test_score") for name in results)
        scores = np.array([results[f"split{i}_test_score"] for i in range(n_splits)])
        best = int(scores.mean(axis=0).argmax())
        ahead = scores[:, best] - scores[:, self.kept]
        return self.kept if ahead.mean() <= ahead.std(ddof=1) / np.sqrt(INNER_FOLDS) else best


def nested(model: Any, grid: Any, repeats: int = 1) -> GridSearchCV:
    """Wrap a model so that its parameters are chosen by inner cross-validation on the training bags alone.

    Where the model's own parameters are among the candidates, they stay unless others are clearly better.
    """
    own = model.get_params()
    same = [i for i, each in enumerate(ParameterGrid(grid)) if all(own[name] == each[name] for name in each)]
    choose = UnlessClearlyBetter(same[0]) if same else True
    inner = RepeatedKFold(n_splits=INNER_FOLDS, n_repeats=repeats, random_state=0)
    return GridSearchCV(model, grid, cv=inner, refit=choose)


def cross_validate_once(
    model: Any,
    bags: Bags,
    y: NDArray,
    repeat: int,
    n_folds: int = 10,
    y_instance: NDArray | None = None,
    splits: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None,
) -> Repeat:
    """Fit and score the model on every fold of one repeat, each with a seed of its own.

    With ``y_instance``, the truth about every instance, its scores of the test bags' instances are judged too.
    ``splits`` are training and test bags to use in place of `folds`.
    """
    truth = None if y_instance is None else bags.split(y_instance)
    classes, code = np.unique(y, return_inverse=True)
    probability = np.full((len(y), len(classes)), np.nan)
    result = Repeat([], [], [])
    for fold, (train, test) in enumerate(splits or folds(len(bags), repeat, n_folds)):
        fitted = seeded(clone(model), 1000 * repeat + fold)
        started = time.process_time()
        fitted.fit(bags[train], y[train])
        result.fit_seconds.append(time.process_time() - started)
        result.accuracy.append(float(fitted.score(bags[test], y[test])))
        result.selected.append(getattr(fitted, "best_params_", {}))
        if hasattr(fitted, "predict_proba"):
            columns = np.searchsorted(classes, fitted.classes_)  # a fold may lack a class
            probability[test] = 0
            probability[test[:, None], columns] = fitted.predict_proba(bags[test])
            result.log_loss.append(_log_loss(code[test], probability[test]))
        scorer = getattr(fitted, "best_estimator_", fitted)
        if truth is not None and isinstance(scorer, InstanceScorer):
            kinds = np.concatenate([truth[i] for i in test])
            scores = scorer.instance_scores(bags[test])
            both = 0 < kinds.sum() < len(kinds)
            result.instance_auc.append(float(roc_auc_score(kinds, scores)) if both else None)
    if not result.log_loss:
        return result
    auc = float(roc_auc_score(code, probability[:, 1])) if len(classes) == 2 else None
    return replace(result, calibration_error=expected_calibration_error(code, probability), auc=auc)


def _log_loss(code: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """Mean of -log of the probability that the true class was given, which counts as 1e-15 at the least."""
    return float(-np.log(np.clip(probability[np.arange(len(code)), code], 1e-15, 1)).mean())


def p_value(best: list[Repeat], other: list[Repeat]) -> float:
    """How likely a difference as large would be between equals, in repeated cross-validation on the same folds.

    The corrected resampled t-test of Nadeau and Bengio: folds share training bags, so that the plain variance of
    their differences is too small.
    """
    gaps = np.concatenate([a.accuracy for a in best]) - np.concatenate([b.accuracy for b in other])
    n_folds = len(best[0].accuracy)
    variance = (1 / len(gaps) + 1 / (n_folds - 1)) * gaps.var(ddof=1)
    if variance == 0:
        return 1.0 if gaps.mean() == 0 else 0.0
    return float(2 * t_distribution.sf(abs(gaps.mean()) / np.sqrt(variance), len(gaps) - 1))


def seeded(model: Any, seed: int) -> Any:
    """Set every random_state inside the model."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def summarise(repeats: list[Repeat]) -> tuple[float, float, float]:
    """Mean of the repeats' mean accuracies, their population standard deviation, and seconds per fit (median)."""
    means = [float(np.mean(repeat.accuracy)) for repeat in repeats]
    seconds = [s for repeat in repeats for s in repeat.fit_seconds]
    return float(np.mean(means)), float(np.std(means)), float(np.median(seconds))
