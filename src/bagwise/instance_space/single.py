"""SIL, the simplest baseline: every instance learns the label of its bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from bagwise._utils.sklearn_private import HasMethods
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.calibrated import CALIBRATE, CalibratedScorer
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler


class SingleInstance(CalibratedScorer):
    """Single-instance learning: any scikit-learn classifier, on instances that carry the labels of their bags.

    A bag's score is the highest score of its instances. The wrong labels that negative instances of positive bags get
    are simply put up with, so this is the baseline that a multiple-instance method should beat.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        One with ``decision_function`` or ``predict_proba``; logistic regression by default. With more than two
        classes, a copy learns each class against the rest.
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
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **CALIBRATE,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "scaling": SCALING_CONSTRAINT,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        scaling: str | None = "standard",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    def _learn(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        template = self._template()
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
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

    def _raw_instance_scores(self, bags: Bags) -> FloatArray:
        x = self.scaler_.transform(bags).instances
        return np.column_stack([_scores(estimator, x) for estimator in self.estimators_])


def _scores(estimator: Any, x: Any) -> FloatArray:
    """(n_rows,) scores, positive where the classifier says so."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(x), dtype=np.float64)
    p = estimator.predict_proba(x)[:, 1].astype(np.float64)
    return logit(p.clip(1e-12, 1 - 1e-12))
