"""MIForest: its parts against direct definitions, and what annealing is for."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeClassifier

from bagwise import Bags, MIForest
from bagwise.instance_space.forest import _best_of_each_bag, _calibrate, _positive_share_of_nodes


def witness_bags(n_bags: int = 80, seed: int = 0, size: int = 8):
    """One witness among many instances that look alike in all bags."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % 2
    tables = [rng.randn(size, 6) for _ in y]
    for table, label in zip(tables, y):
        table[:, 0] = np.minimum(table[:, 0], 1.5)
        if label:
            table[0, 0] = rng.uniform(1.8, 3)
    return Bags(tables), y


def test_best_instance_of_each_positive_bag():
    bags = Bags([np.zeros((2, 1)), np.zeros((3, 1)), np.zeros((1, 1)), np.zeros((3, 1))])
    p = np.array([0.1, 0.9, 0.5, 0.5, 0.2, 0.7, 0.3, 0.1, 0.3])
    target = np.array([True, True, False, True])
    np.testing.assert_array_equal(_best_of_each_bag(p, bags, target), [1, 2, 6])


def test_share_of_nodes_is_the_probability_of_the_tree():
    rng = np.random.RandomState(0)
    x, labels = rng.randn(60, 3), rng.rand(60) < 0.4
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, labels)
    np.testing.assert_allclose(_positive_share_of_nodes(tree)[tree.apply(x)], tree.predict_proba(x)[:, 1])
    for only in (False, True):
        tree = DecisionTreeClassifier().fit(x, np.full(60, only))
        np.testing.assert_array_equal(_positive_share_of_nodes(tree), [float(only)])


def test_calibration_is_a_logistic_regression_with_a_normal_prior():
    rng = np.random.RandomState(0)
    score, weight = rng.randn(80), rng.uniform(0.5, 2, size=80)
    target = score + rng.randn(80) > 0.5

    def loss(line):
        z = np.where(target, 1, -1) * (line[0] * score + line[1])
        return weight @ np.logaddexp(0, -z) + 0.5 * line[0] ** 2

    np.testing.assert_allclose(_calibrate(score, target, weight), minimize(loss, [1.0, 0.0]).x, atol=1e-3)
    assert _calibrate(-score, target, weight) == (1.0, 0.0)


def test_finds_the_witness_and_keeps_the_best_round():
    bags, y = witness_bags()
    model = MIForest(random_state=0).fit(bags, y)
    unseen, truth = witness_bags(seed=1)
    assert model.score(unseen, truth) >= 0.85
    hits = [np.argmax(z) == 0 for z, label in zip(unseen.split(model.instance_scores(unseen)), truth) if label]
    assert np.mean(hits) >= 0.9
    assert model.objective_.shape == (5, 1)


def test_annealing_tells_witnesses_from_the_rest_of_their_bags():
    """Labels of the bag on all instances make every instance of a positive bag look positive; annealing undoes that."""
    bags, y = witness_bags(120)
    first = MIForest(max_iter=0, random_state=0).fit(bags, y)
    annealed = MIForest(random_state=0).fit(bags, y)
    assert annealed.objective_.min() < first.objective_.min()
    np.testing.assert_array_equal(annealed.objective_[0], first.objective_[0])


def test_bags_have_the_score_of_their_best_instance():
    bags, y = witness_bags(30)
    model = MIForest(10, random_state=0).fit(bags, y)
    highest = [z.max() for z in bags.split(model.instance_scores(bags))]
    np.testing.assert_allclose(model.decision_function(bags), highest)


def test_threads_change_nothing():
    bags, y = witness_bags(30)
    one, two = (MIForest(10, n_jobs=n, random_state=0).fit(bags, y).decision_function(bags) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_bags_that_every_tree_has_seen_are_judged_all_the_same():
    bags, y = witness_bags(4)
    model = MIForest(1, random_state=0).fit(bags, y)
    assert np.isfinite(model.decision_function(bags)).all()


@pytest.mark.parametrize("weight", [1, 3])
def test_a_weight_says_how_often_a_bag_is_there(weight):
    bags, y = witness_bags(20)
    times = np.repeat(np.arange(20), weight)
    repeated = MIForest(5, random_state=0).fit(bags[times], y[times])
    weighted = MIForest(5, random_state=0).fit(bags, y, sample_weight=np.full(20, float(weight)))
    for one, other in zip(repeated.trees_, weighted.trees_, strict=True):
        np.testing.assert_array_equal(one.threshold, other.threshold)


def test_classes_without_hidden_labels_end_early():
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(1 if i % 3 == 0 else 4, 3) + i % 3 for i in range(30)])
    model = MIForest(n_estimators=5, max_iter=4, random_state=0).fit(bags, np.arange(30) % 3)
    assert model.objective_.shape == (5, 3)
    assert len(np.unique(model.objective_[:, 0])) < 5 == len(np.unique(model.objective_[:, 1]))
