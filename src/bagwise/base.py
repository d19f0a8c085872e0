"""The contract that every bag classifier keeps, and the checks of its input."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from bagwise._utils.equal_bags import by_content
from bagwise._utils.sklearn_private import check_sample_weight
from bagwise.bag_input import bag_column, is_frame, numeric, runs
from bagwise.bags import Bags, is_ragged
from bagwise.calibration import calibrated

FloatArray = NDArray[np.float64]

# Rows in random order change their label about half the time; fewer rows than this can look ordered by chance.
FEWEST_ROWS_IN_RUNS = 30


class PositiveClassWarning(UserWarning):
    """Which of two classes is the positive one was not said, and cannot be told from their names."""


class RowsNotBagsWarning(UserWarning):
    """A table was read as bags of one instance, but looks like the instances of larger bags."""


def check_bags(
    estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: bool = True, allow_nan: bool = False
) -> Bags:
    """Turn any accepted input into Bags, the one place where that is decided.

    A two-dimensional X is read as bags of one instance; lists of tables, three-dimensional arrays and Bags as
    what they are. ``reset`` remembers the number and names of the features (in fit); otherwise they are compared
    (in predict), and columns in another order are brought into that of fit.

    Returns
    -------
    Bags whose columns have no names, because they are those of the estimator, and hold no NaN unless ``allow_nan``.
    """
    if is_ragged(X):
        bags = X if isinstance(X, Bags) else Bags(X)
        if sparse.issparse(bags.instances) and not accept_sparse:
            raise TypeError(
                f"{type(estimator).__name__} does not take sparse instances: "
                "use bags.with_instances(bags.instances.toarray()) if they fit into memory"
            )
        bags = _match_features(estimator, bags, reset)
    else:
        if is_frame(X):
            _refuse_text(X)
        table = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        names = getattr(estimator, "feature_names_in_", None)
        bags = Bags.from_arrays(table, np.arange(table.shape[0] + 1), feature_names=names)
    if not allow_nan:
        bags.check_finite()
    return bags.with_instances(bags.instances, check_finite=allow_nan)


def _match_features(estimator: BaseEstimator, bags: Bags, reset: bool) -> Bags:
    """Remember the columns, or find those of fit among them."""
    given, kind = bags.feature_names, type(estimator).__name__
    if reset:
        estimator.n_features_in_ = bags.n_features
        if given is not None:
            estimator.feature_names_in_ = np.array(given, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return bags
    known = tuple(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None
    if known is not None and given is not None and known != given:
        missing, extra = [n for n in known if n not in given], [n for n in given if n not in known]
        if missing or extra:
            parts = [f"{what} {_some(names)}" for what, names in (("lacks", missing), ("has", extra)) if names]
            fitted = "was fitted with other columns" if missing else "was not fitted with"
            raise ValueError(f"X {' and '.join(parts)}, but {kind} {fitted}: give it the columns of fit")
        order = [given.index(name) for name in known]
        return bags.with_instances(bags.instances[:, order], feature_names=known, check_finite=not bags._finite)
    if bags.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {bags.n_features} features, but {kind} is expecting {estimator.n_features_in_} features as input"
        )
    if (known is None) != (given is None):
        found = "X has feature names, but" if known is None else "X does not have feature names, but"
        without = "out" if known is None else ""
        warnings.warn(f"{found} {kind} was fitted with{without} feature names", UserWarning, stacklevel=4)
    return bags


def _some(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _refuse_text(frame: Any) -> None:
    """Say what a column of text in a table of rows probably means."""
    for name in frame.column_names if hasattr(frame, "column_names") else frame.columns:
        try:
            numeric(frame, name)
        except ValueError as error:
            raise ValueError(
                f"column {name!r} is not numeric: if it names the bag of each row, use "
                f"Bags.from_frame(frame, bag={name!r}, label=...), else leave it out"
            ) from error


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


def _warn_of_rows(X: Any, y: NDArray) -> None:
    """Warn when a table with one label for each row looks like the instances of bags."""
    name = bag_column(X, y) if is_frame(X) else None
    if name is not None:
        why, remedy = f"column {name!r} and y stay the same over runs of rows", f"Bags.from_frame(frame, bag={name!r})"
    else:
        _, counts = np.unique(y, return_counts=True)
        n_rows = len(y)
        by_chance = 1 + n_rows * (1 - np.sum((counts / n_rows) ** 2))
        if n_rows < FEWEST_ROWS_IN_RUNS or len(counts) < 2 or runs(y) > by_chance / 2:
            return
        why, remedy = "y stays the same over runs of rows", "Bags.from_groups(X, groups)"
    warnings.warn(
        f"every row of X is read as a bag of its own, but {why}: if the rows are the instances of bags, make bags of "
        f"them with {remedy} and give one label per bag",
        RowsNotBagsWarning,
        stacklevel=3,
    )


class BagClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all bag classifiers: one label per bag in, one label per bag out.

    A method implements ``_fit`` on checked input, with one boolean column of targets for each binary problem,
    and ``_bag_scores``, whose sign decides. Multi-class problems are one against the rest.

    Every method has the parameters ``class_weight`` (dict, "balanced" or None: factors of the weights of bags by
    their label) and ``positive`` (of two labels, the one that a single instance causes; by default the one that sorts
    last), and stores them; what they mean is done here.

    Attributes
    ----------
    classes_ : (n_classes,) sorted array
    positive_class_ : of two classes the positive one; None with more than two
    n_features_in_ : int
    feature_names_in_ : (n_features,) array, when the columns have names
    """

    # What a method can do. The checks of its input, the common tests and the tables follow from these.
    accepts_sparse = True
    uses_prior = False  # the prior of the bags is added to the scores of instances; the others refuse it
    # ``_fit`` gets the bags sorted by content, equal ones as one, for methods that draw bags, deal them out or search:
    # their order and repetition then have no influence at all. Costs a copy of the instances.
    sorts_bags = False

    positive: Any = None
    class_weight: dict | str | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from labelled bags.

        Parameters
        ----------
        X : Bags, list of (m_i, d) arrays, (n, m, d) array, or (n, d) array of one-instance bags
        y : (n_bags,) labels: two or more values of any kind. Of two, ``positive`` is the positive class, the one
            that a bag belongs to because of a single instance; by default the one that sorts last (1 of 0 and 1).
        sample_weight : (n_bags,) array, optional
            A bag of weight two counts as the bag twice, one of weight zero not at all.
        """
        bags = self._checked_for_prior(check_bags(self, X, reset=True, accept_sparse=self.accepts_sparse))
        y = check_labels(self, bags, y)
        if not is_ragged(X):
            _warn_of_rows(X, y)
        weight = check_sample_weight(sample_weight, bags.sizes, dtype=np.float64, ensure_non_negative=True)
        if not weight.all():  # a bag of no weight must count as one that is not there
            keep = weight > 0
            bags, y, weight = bags[keep], y[keep], weight[keep]
        if self.sorts_bags:
            bags, y, weight = by_content(bags, y, weight)
        self._set_classes(np.unique(y))
        self._fit(bags, self._targets(y), weight * self._class_weights(y, weight))
        return self

    def _set_classes(self, classes: NDArray) -> None:
        """Remember the classes, and which of two is the positive one."""
        if len(classes) < 2:
            only = f"only one class, {classes[0]!r}" if len(classes) else "no class"
            raise ValueError(f"y holds {only}: a classifier needs bags of at least two classes")
        self.classes_ = classes
        self.positive_class_ = classes[1] if len(classes) == 2 else None
        if self.positive is not None:
            chosen = classes[classes == self.positive]
            if len(classes) != 2 or len(chosen) != 1:
                raise ValueError(
                    f"positive={self.positive!r} must be one of two labels, but the labels are {classes.tolist()}"
                )
            self.positive_class_ = chosen[0]
        elif len(classes) == 2 and isinstance(classes[1], str):
            other, last = map(str, classes)
            warnings.warn(
                f"the labels are {other!r} and {last!r}, and {last!r} is taken for the positive class, the one that a "
                f"single instance causes, because it sorts last: say which one is with positive={other!r} or "
                f"positive={last!r}",
                PositiveClassWarning,
                stacklevel=3,
            )

    def _targets(self, y: NDArray) -> NDArray[np.bool_]:
        """(n_bags, n_problems): two classes make one problem, more make one against the rest for each class."""
        return y[:, None] == (self.classes_ if self.positive_class_ is None else np.array([self.positive_class_]))

    def _class_weights(self, y: NDArray, weight: FloatArray) -> FloatArray:
        """(n_bags,) what ``class_weight`` multiplies the weight of each bag by."""
        if self.class_weight is None:
            return np.ones(len(y))
        code = np.searchsorted(self.classes_, y)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            # As in scikit-learn, but a bag of weight two counts twice here too.
            by_class = weight.sum() / (len(self.classes_) * np.bincount(code, weights=weight))
        else:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        return by_class[code]

    def _checked_for_prior(self, bags: Bags) -> Bags:
        if bags.prior is not None and not self.uses_prior:
            raise ValueError(
                f"{type(self).__name__} cannot use the prior of the bags: leave it out with bags.with_prior(None), "
                "or choose a method that adds it to the scores of instances, such as RMISVC"
            )
        return bags

    @abstractmethod
    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        """Learn from checked input; targets has shape (n_bags, n_problems)."""

    @abstractmethod
    def _bag_scores(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) scores, positive where the bag is."""

    def _checked(self, X: Any) -> Bags:
        check_is_fitted(self)
        return self._checked_for_prior(check_bags(self, X, reset=False, accept_sparse=self.accepts_sparse))

    @property
    def _sign(self) -> int:
        """-1 where the positive class is the first of two: scikit-learn's scores are those of the last one."""
        return 1 if self.positive_class_ is None or self.positive_class_ == self.classes_[1] else -1

    def _one_or_all(self, scores: FloatArray) -> FloatArray:
        return scores if self.positive_class_ is None else scores[:, 0]

    def decision_function(self, X: Any) -> FloatArray:
        """(n_bags,) score of ``classes_[1]``, or (n_bags, n_classes) scores of each against the rest."""
        scores = self._one_or_all(self._bag_decisions(self._checked(X)))
        return self._sign * scores

    def predict(self, X: Any) -> NDArray:
        """(n_bags,) the most likely label of each bag."""
        scores = self._bag_decisions(self._checked(X))
        if self.positive_class_ is None:
            return self.classes_[scores.argmax(axis=1)]
        return self.classes_[:: self._sign][(scores[:, 0] > 0).astype(int)]

    def predict_proba(self, X: Any) -> FloatArray:
        """(n_bags, n_classes) probabilities, in the order of ``classes_``."""
        p = self._bag_probabilities(self._checked(X))
        if self.positive_class_ is not None:
            return np.hstack([1 - p, p])[:, :: self._sign]
        # Far below any real probability, but keeps a bag that no class wants from dividing by zero.
        p = np.maximum(p, np.finfo(np.float64).tiny)
        return p / p.sum(axis=1, keepdims=True)

    # Slope and offset of each problem, (n_problems, 2), that make log-odds of scores. ``_fit`` sets it where scores are
    # something else, such as margins; see bagwise.calibration.
    _calibration: FloatArray | None = None

    def _bag_decisions(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) what decides: the scores, calibrated where they are no log-odds."""
        scores = self._bag_scores(bags)
        return scores if self._calibration is None else calibrated(scores, self._calibration)

    def _bag_probabilities(self, bags: Bags) -> FloatArray:
        """(n_bags, n_problems) probability that a bag is positive. Methods with one of their own override this."""
        return expit(self._bag_decisions(bags))

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
        """Score every instance: the higher, the more it makes its bag belong to ``positive_class_``.

        Returns
        -------
        (n_instances,) array in the order of ``bags.instances``, or (n_instances, n_classes) with more than two
        classes. ``bags.split(scores)`` cuts it into one array per bag.
        """
        return self._one_or_all(self._instance_scores(self._checked(X)))
