"""The single-instance baseline."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.problems import concept_problem

from bagwise import SingleInstance


def test_instances_carry_the_labels_of_their_bags():
    bags, y = concept_problem()
    weight = np.linspace(0.5, 2, len(y))
    model = SingleInstance(LogisticRegression(C=0.3), scaling=None, calibrate=False)
    model.fit(bags, y, sample_weight=weight)
    plain = LogisticRegression(C=0.3).fit(
        bags.instances, np.repeat(y, bags.sizes), sample_weight=np.repeat(weight, bags.sizes)
    )
    z = plain.decision_function(bags.instances)
    np.testing.assert_allclose(model.instance_scores(bags), z)
    np.testing.assert_allclose(model.decision_function(bags), [part.max() for part in bags.split(z)])


def test_probabilities_serve_where_there_is_no_decision_function():
    bags, y = concept_problem(60)
    model = SingleInstance(DecisionTreeClassifier(max_depth=2), random_state=0).fit(bags, y)
    assert np.isfinite(model.decision_function(bags)).all()
    assert model.score(bags, y) >= 0.9


def test_random_state_reaches_the_classifier():
    bags, y = concept_problem()
    models = [SingleInstance(DecisionTreeClassifier(max_features=1), random_state=3).fit(bags, y) for _ in range(2)]
    np.testing.assert_array_equal(*(model.instance_scores(bags) for model in models))
    assert models[0].estimators_[0].random_state is not None


def test_refuses_weights_that_the_classifier_cannot_use():
    bags, y = concept_problem()
    SingleInstance(KNeighborsClassifier()).fit(bags, y, sample_weight=np.full(len(y), 2.0))
    with pytest.raises(ValueError, match="cannot weigh"):
        SingleInstance(KNeighborsClassifier()).fit(bags, y, sample_weight=np.arange(1, len(y) + 1))


def test_takes_a_classifier_with_a_decision_function_only():
    bags, y = concept_problem()
    assert SingleInstance(Perceptron(), random_state=0).fit(bags, y).decision_function(bags).shape == (len(y),)
