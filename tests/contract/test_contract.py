"""What every classifier must do, run against all of them.

A new method is tested by registering it in ``bagwise.registry``. Parameters that make it small enough for
hundreds of fits stand in QUICK, and in TO_THE_END those with which two fits of the same problem agree; checks that a
method cannot pass stand in EXPECTED_FAILURES, each with its reason.
"""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import permutation_importance
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from tests.contract.tables import EXPECTED_FAILURES, OF_TWO_FITS, ORDER_OF_BAGS_MATTERS, QUICK, TO_THE_END
from tests.problems import concept_problem

from bagwise import RMISVC
from bagwise.base import BagClassifier
from bagwise.registry import classifiers
from bagwise.testing import CHECKS, check_bag_classifier


def make(kind: type):
    model = kind(**QUICK.get(kind.__name__, {}))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def ready_for(check: Callable, model: BagClassifier) -> BagClassifier:
    """The model as this check needs it."""
    more = TO_THE_END.get(type(model).__name__, {}) if name_of(check) in OF_TWO_FITS else {}
    return clone(model).set_params(**more)


def name_of(check: Callable) -> str:
    return getattr(check, "func", check).__name__


ALL = [make(kind) for kind in classifiers()]


# Not traced, which takes a third of the time of fits made of many short steps: our own checks go the same ways.
@pytest.mark.no_cover
@parametrize_with_checks(ALL, expected_failed_checks=lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}))
def test_scikit_learn_checks(estimator, check):
    assert check(ready_for(check, estimator)) is None, "a check that fails raises"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_our_checks(model, check):
    found = check(ready_for(check, model), type(model).__name__ in ORDER_OF_BAGS_MATTERS)
    assert found is None, "a check that fails raises"


def test_every_check_of_two_fits_is_run():
    theirs = {name_of(check) for _, check in estimator_checks_generator(RMISVC(), mark=None)}
    assert theirs | {name_of(check) for check in CHECKS} >= OF_TWO_FITS


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
