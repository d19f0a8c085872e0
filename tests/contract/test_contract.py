"""What every classifier must do, run against all of them.

A new method is tested by registering it in ``bagwise.registry``. Parameters that make it small enough for
hundreds of fits stand in QUICK; checks that a method cannot pass stand in EXPECTED_FAILURES, each with its reason.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import permutation_importance
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.contract.tables import EXPECTED_FAILURES, ORDER_OF_BAGS_MATTERS, QUICK
from tests.problems import concept_problem

from bagwise import RMISVC
from bagwise.base import BagClassifier
from bagwise.registry import classifiers
from bagwise.testing import CHECKS, check_bag_classifier


def make(kind: type):
    model = kind(**QUICK.get(kind.__name__, {}))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


ALL = [make(kind) for kind in classifiers()]


@parametrize_with_checks(ALL, expected_failed_checks=lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}))
def test_scikit_learn_checks(estimator, check):
    assert check(estimator) is None, "a check that fails raises"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_our_checks(model, check):
    check(clone(model), type(model).__name__ in ORDER_OF_BAGS_MATTERS)


class Deaf(BagClassifier):
    """Hears nothing of the labels: the first column's mean decides."""

    def __init__(self, class_weight=None, positive=None):
        self.class_weight = class_weight
        self.positive = positive

    def _fit(self, bags, targets, weight):
        self.n_problems_ = targets.shape[1]

    def _bag_scores(self, bags):
        means = np.array([np.asarray(bag.mean(axis=0)).ravel()[0] for bag in bags])
        return np.repeat(means[:, None], self.n_problems_, axis=1)


def test_a_classifier_that_does_not_learn_is_found_out():
    with pytest.raises(AssertionError):
        check_bag_classifier(Deaf())


@pytest.mark.parametrize("act", [
    lambda bags, y: BaggingClassifier(RMISVC(epochs=1)).fit(bags, y),
    lambda bags, y: permutation_importance(RMISVC(epochs=1).fit(bags, y), bags, y),
])  # fmt: skip
def test_what_needs_one_array_says_so(act):
    with pytest.raises(TypeError, match="ragged and cannot become one array, which is what this function works on"):
        act(*concept_problem())
