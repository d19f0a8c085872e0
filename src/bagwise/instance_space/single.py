"""SIL, the simplest baseline: every instance learns the label of its bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import has_fit_parameter

from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.preprocessing import SCALINGS, InstanceScaler


class SingleInstance(InstanceScorer):
    """Single-instance learning: any scikit-learn classifier, on instances that carry the labels of their bags.

    A bag's score is the highest score of its instances. The wrong labels that negative instances of positive bags get
    are simply put up with, so this is the baseline that a multiple-instance method should beat.

    A model with a classifier of scikit-learn inside cannot be written with `bagwise.save`; use pickle.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        One with ``decision_function`` or ``predict_proba``; logistic regression by default. With more than two
        classes, a copy learns each class against the rest.
    scaling : {"auto", "standard", "unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    random_state : int, RandomState or None
        Handed to the classifier when it takes one and has none of its own.

    Attributes
    ----------
    estimators_ : list of fitted classifiers
        One for two classes, else one per class.

    References
    ----------
    Soumya Ray, Mark Craven: Supervised versus Multiple Instance Learning: An Empirical Comparison. ICML 2005.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from bagwise import SingleInstance
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> model = SingleInstance(RandomForestClassifier(random_state=0)).fit(bags, y)
    >>> model.predict(bags[:3])
    array([1, 1, 1])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "estimator": [HasMethods(["fit", "predict"]), None],
        "scaling": [StrOptions({s for s in SCALINGS if s}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        scaling: str | None = "standard",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        template = self._template()
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        x = self.scaler_.transform(bags).instances
        options = {}
        if has_fit_parameter(template, "sample_weight"):
            options["sample_weight"] = np.repeat(weight, bags.sizes)
        elif np.ptp(weight) > 0:
            raise ValueError(
                f"{type(template).__name__} cannot weigh instances, but sample_weight has different values: "
                "leave it out, or choose another classifier"
            )
        self.estimators_ = [
            clone(template).fit(x, np.repeat(positive, bags.sizes), **options) for positive in targets.T
        ]

    def _template(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        template = LogisticRegression() if self.estimator is None else clone(self.estimator)
        if not hasattr(template, "decision_function") and not hasattr(template, "predict_proba"):
            raise ValueError(
                f"{type(template).__name__} has neither decision_function nor predict_proba: choose a classifier "
                "that scores what it predicts"
            )
        if template.get_params().get("random_state", 0) is None:
            template.set_params(random_state=check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return template

    def _instance_scores(self, bags: Bags) -> FloatArray:
        x = self.scaler_.transform(bags).instances
        return np.column_stack([_scores(estimator, x) for estimator in self.estimators_])

    def _bag_scores(self, bags: Bags) -> FloatArray:
        return np.maximum.reduceat(self._instance_scores(bags), bags.offsets[:-1], axis=0)


def _scores(estimator: Any, x: Any) -> FloatArray:
    """(n_rows,) scores, positive where the classifier says so."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(x), dtype=np.float64)
    p = estimator.predict_proba(x)[:, 1].astype(np.float64)
    return logit(p.clip(1e-12, 1 - 1e-12))
