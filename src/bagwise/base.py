"""The contract that every bag classifier keeps, and the checks of its input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from bagwise.bags import Bags, is_ragged

FloatArray = NDArray[np.float64]


def check_bags(estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: bool = True) -> Bags:
    """Turn any accepted input into Bags, the one place where that is decided.

    A two-dimensional X is read as bags of one instance; lists of tables, three-dimensional arrays and Bags as
    what they are. ``reset`` remembers the number of features (in fit); otherwise it is compared (in predict).
    """
    if not is_ragged(X):
        table = validate_data(
            estimator, X, reset=reset, accept_sparse="csr" if accept_sparse else False, dtype=[np.float64, np.float32]
        )
        return Bags.from_arrays(table, np.arange(table.shape[0] + 1), check_finite=False)
    bags = X if isinstance(X, Bags) else Bags(X)
    if sparse.issparse(bags.instances) and not accept_sparse:
        raise TypeError(
            f"{type(estimator).__name__} does not take sparse instances: "
            "use bags.with_instances(bags.instances.toarray()) if they fit into memory"
        )
    if reset:
        estimator.n_features_in_ = bags.n_features
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif bags.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {bags.n_features} features, but {type(estimator).__name__} "
            f"is expecting {estimator.n_features_in_} features as input"
        )
    return bags


def check_labels(estimator: BaseEstimator, bags: Bags, y: Any) -> NDArray:
    """Return y as one label per bag, or say what is wrong with it."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give one label per bag"
        )
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(y) != len(bags):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {len(bags)} bags but {len(y)} labels"
        )
    return y


def encode_targets(y: NDArray) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the classes and one column of targets per binary problem.

    Two classes make one problem, in which the class that sorts last is positive; more make one against the rest
    for each class.
    """
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        only = f"only one class, {classes[0]!r}" if len(classes) else "no class"
        raise ValueError(f"y holds {only}: a classifier needs bags of at least two classes")
    if len(classes) == 2:
        return classes, (code == 1)[:, None]
    return classes, code[:, None] == np.arange(len(classes))


class BagClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all bag classifiers: one label per bag in, one label per bag out.

    A method implements ``_fit`` on checked input, with one boolean column of targets for each binary problem,
    and ``_bag_scores``, whose sign decides. Multi-class problems are one against the rest.
    """

    accepts_sparse = True

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from labelled bags.

        Parameters
        ----------
        X : Bags, list of (m_i, d) arrays, (n, m, d) array, or (n, d) array of one-instance bags
        y : (n_bags,) labels: two or more values of any kind. Of two, the one that sorts last is the positive class
            (1 of 0 and 1, "yes" of "no" and "yes"): the one that a bag belongs to because of a single instance.
        sample_weight : (n_bags,) array, optional
        """
        bags = check_bags(self, X, reset=True, accept_sparse=self.accepts_sparse)
        y = check_labels(self, bags, y)
        weight = _check_sample_weight(sample_weight, bags.sizes, dtype=np.float64, ensure_non_negative=True)
        if not weight.all():  # a bag of no weight must count as one that is not there
            keep = weight > 0
            bags, y, weight = bags[keep], y[keep], weight[keep]
        self.classes_, targets = encode_targets(y)
        self._fit(bags, targets, weight)
        return self

    @abstractmethod
    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        """Learn from checked input; targets has shape (n_bags, n_problems)."""

    @abstractmethod
    def _bag_scores(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) scores, positive where the bag is."""

    def _checked(self, X: Any) -> Bags:
        check_is_fitted(self)
        return check_bags(self, X, reset=False, accept_sparse=self.accepts_sparse)

    def _one_or_all(self, scores: FloatArray) -> FloatArray:
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def decision_function(self, X: Any) -> FloatArray:
        """(n_bags,) score of the positive class, or (n_bags, n_classes) scores of each against the rest."""
        return self._one_or_all(self._bag_scores(self._checked(X)))

    def predict(self, X: Any) -> NDArray:
        """(n_bags,) the most likely label of each bag."""
        scores = self._bag_scores(self._checked(X))
        best = (scores[:, 0] > 0).astype(int) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> FloatArray:
        """(n_bags, n_classes) probabilities.

        The logistic function of the scores, made to sum to one. They are the model's own probabilities where the
        method has a probabilistic model, and only a monotone rescaling elsewhere: CalibratedClassifierCV
        calibrates them.
        """
        p = expit(self._bag_scores(self._checked(X)))
        if len(self.classes_) == 2:
            return np.hstack([1 - p, p])
        # Far below any real probability, but keeps a bag that no class wants from dividing by zero.
        p = np.maximum(p, np.finfo(np.float64).tiny)
        return p / p.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags


class InstanceScorer(BagClassifier):
    """A bag classifier that also scores the instances inside the bags."""

    @abstractmethod
    def _instance_scores(self, bags: Bags) -> FloatArray:
        """(n_instances, n_problems) scores."""

    def instance_scores(self, X: Any) -> FloatArray:
        """Score every instance: the higher, the more it makes its bag positive.

        Returns
        -------
        (n_instances,) array in the order of ``bags.instances``, or (n_instances, n_classes) with more than two
        classes. ``bags.split(scores)`` cuts it into one array per bag.
        """
        return self._one_or_all(self._instance_scores(self._checked(X)))
