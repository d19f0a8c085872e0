"""Classifiers whose scores become log-odds by calibration on bags that the model has not seen.

A support vector machine's margin is no log-odds, and a likelihood that was maximised on the training bags promises too
much. So what shares `CalibratedClassifier` learns first, then scores every training bag by a model of its own that was
fitted without the bag's fold, and fits a logistic curve to these scores (see `bagwise.calibration`). The curve is
applied to all scores: ``decision_function`` returns log-odds, zero is a probability of one half, and ``predict`` and
``predict_proba`` never disagree.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from bagwise._utils.equal_bags import content_keys
from bagwise.bags import Bags
from bagwise.base import BagClassifier, FloatArray, InstanceScorer
from bagwise.calibration import (
    N_FOLDS,
    calibrated,
    fit_logistic,
    log_loss,
    out_of_fold,
    usual_range,
    without_tails,
)

# Joins the parameter constraints of a method.
CALIBRATE: dict[str, list] = {"calibrate": ["boolean"]}


def folds_by_content(bags: Bags, targets: NDArray[np.bool_], n_folds: int = N_FOLDS) -> NDArray[np.int64] | None:
    """Put bags into folds by what they hold, the bags of each class spread evenly over the folds.

    Bags are sorted along a fixed direction and dealt out, so that their order does not matter; and bags that are equal
    share a fold, so that a bag of weight two is the same as the bag twice.

    Parameters
    ----------
    bags : Bags
    targets : (n_bags, n_problems) bool array
    n_folds : int, default=5
        Where a class has fewer different bags, there are as many folds as it has of them.

    Returns
    -------
    (n_bags,) the fold of each bag, or None where all bags of a class are equal: nothing would be left to learn from.
    """
    key = content_keys(bags)
    _, code = np.unique(targets, axis=0, return_inverse=True)
    ranks = np.empty(len(bags), dtype=np.int64)
    fewest, dealt = n_folds, 0
    for each in np.unique(code):
        members = np.flatnonzero(code.ravel() == each)
        different, rank = np.unique(key[members], return_inverse=True)
        # The next class begins where this one ended, so that the last folds do not stay small.
        ranks[members] = rank.ravel() + dealt
        dealt += len(different)
        fewest = min(fewest, len(different))
    return ranks % fewest if fewest > 1 else None


def fit_curves(scores: FloatArray, targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
    """(n_problems, 2) slope and offset of the logistic curve of each problem."""
    total = float(weight.sum())
    return np.array([fit_logistic(scores[:, k], targets[:, k], weight, total=total) for k in range(targets.shape[1])])


def loss_after_calibration(scores: FloatArray, targets: NDArray[np.bool_], weight: FloatArray) -> float:
    """Log loss of the calibrated scores, summed over the problems: how much out-of-fold scores tell."""
    scores = without_tails(scores, usual_range(scores, weight))
    log_odds = calibrated(scores, fit_curves(scores, targets, weight))
    return sum(log_loss(log_odds[:, k], targets[:, k], weight) for k in range(targets.shape[1]))


def _has_probabilities(model: Any) -> bool:
    if model.calibrate or model.has_own_probabilities:
        return True
    raise AttributeError(f"{type(model).__name__} has no probabilities of its own: use calibrate=True")


class CalibratedClassifier(BagClassifier):
    """Base of the methods whose scores are calibrated on out-of-fold scores of the training bags.

    A method implements ``_learn`` and ``_raw_scores``. ``calibrate`` costs five more fits, each on four fifths of the
    bags, unless the method says otherwise; without it ``decision_function`` returns the method's own scores, and there
    is no ``predict_proba`` unless the method has probabilities of its own.

    Attributes
    ----------
    calibration_ : (n_problems, 2) array or None
        Slope and offset that turn a raw score into log-odds; None with ``calibrate=False``.
    usual_range_ : (n_problems, 2) array or None
        Median and deviation of the raw scores where some are very far from the others: see `without_tails`, which is
        applied first.
    """

    calibrate: bool
    # Whether the raw scores are log-odds under a model of the method.
    has_own_probabilities = False

    @abstractmethod
    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        """Learn from checked input; targets has shape (n_bags, n_problems)."""

    @abstractmethod
    def _raw_scores(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) scores of bags, the higher the more likely positive."""

    def _prepare(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        """What is decided once, before learning from all bags and from those of each fold; most methods: nothing."""

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        self._prepare(bags, targets, weight)
        self._learn(bags, targets, weight)
        if not getattr(self, "converged_", True):
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} iterations before it came to an end: "
                "increase max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.calibration_ = self.usual_range_ = None
        if self.calibrate:
            fold = folds_by_content(bags, targets)
            # Without folds only the scores of bags that were learned from are left.
            scores = self._raw_scores(bags) if fold is None else self._unseen_scores(bags, targets, weight, fold)
            self.usual_range_ = usual_range(scores, weight)
            self.calibration_ = fit_curves(without_tails(scores, self.usual_range_), targets, weight)

    def _unseen_scores(
        self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray, fold: NDArray[np.int64]
    ) -> FloatArray:
        """(n_bags, n_problems) raw scores of each bag by a model that was fitted without its fold."""

        def scores_of_fold(train: NDArray[np.int64], test: NDArray[np.int64]) -> FloatArray:
            model = self._fold_model()
            model._learn(bags[train], targets[train], weight[train])
            return model._raw_scores(bags[test])

        return out_of_fold(scores_of_fold, fold)

    def _fold_model(self) -> Self:
        """A model of the same parameters for the same classes, which knows nothing else."""
        model = clone(self)
        model.classes_, model.positive_class_ = self.classes_, self.positive_class_
        model.n_features_in_ = self.n_features_in_
        return model

    def _dict_weights(self, targets: NDArray[np.bool_]) -> FloatArray:
        """(n_bags,) what a dict of class weights has multiplied the weight of each bag by; else one."""
        if not isinstance(self.class_weight, dict):
            return np.ones(len(targets))
        if self.positive_class_ is None:
            labels = self.classes_[targets.argmax(axis=1)]
        else:
            other = self.classes_[self.classes_ != self.positive_class_][0]
            labels = np.where(targets[:, 0], self.positive_class_, other)
        by_label = {label: self.class_weight.get(label, 1.0) for label in np.unique(labels).tolist()}
        return np.array([max(by_label[label], np.finfo(np.float64).tiny) for label in labels.tolist()])

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return self._as_log_odds(self._raw_scores(bags))

    def _as_log_odds(self, scores: FloatArray) -> FloatArray:
        if self.calibration_ is None or self.usual_range_ is None:
            return scores
        return calibrated(without_tails(scores, self.usual_range_), self.calibration_)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """(n_bags, n_classes) probabilities, in the order of ``classes_``: calibrated on bags that were not seen."""
        return super().predict_proba(X)


class CalibratedScorer(CalibratedClassifier, InstanceScorer):
    """Base of the calibrated methods in which a bag has the score of its best instance."""

    @abstractmethod
    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        """(n_instances, n_problems) scores."""

    def _raw_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._raw_instance_scores(bags), bags.offsets[:-1], axis=0)

    def _instance_scores(self, bags: Bags) -> FloatArray:
        return self._as_log_odds(self._raw_instance_scores(bags))
