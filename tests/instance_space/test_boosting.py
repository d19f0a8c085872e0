"""MILBoost: trees as arrays against scikit-learn's, the line search, and a round of boosting by hand."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from bagwise import Bags, MILBoost
from bagwise.instance_space._trees import Trees
from bagwise.instance_space.boosting import LONGEST_STEP, best_step


def concept_bags(n_bags: int = 60, seed: int = 0):
    """Positive bags hold one instance with both of the first two columns high: no linear score finds it alone."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % 2
    tables = [rng.uniform(-1, 1, size=(rng.randint(2, 6), 5)) for _ in y]
    for table, label in zip(tables, y):
        both = (table[:, 0] > 0.3) & (table[:, 1] > 0.3)
        table[both, 0] -= 1
        if label:
            table[0, :2] = rng.uniform(0.4, 1, size=2)
    return Bags(tables), y


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_trees_as_arrays_predict_what_scikit_learn_predicts(form):
    rng = np.random.RandomState(0)
    x = rng.randn(200, 6).astype(np.float32)
    x[rng.rand(*x.shape) < 0.5] = 0
    grown = [DecisionTreeRegressor(max_depth=depth, random_state=0).fit(x, rng.randn(200)) for depth in (1, 3, None)]
    trees = Trees.collect([tree.tree_ for tree in grown], [tree.tree_.value[:, 0, 0] for tree in grown])
    unseen = np.vstack([rng.randn(50, 6), np.zeros((1, 6))]).astype(np.float32)
    np.testing.assert_allclose(trees.sums(form(unseen)), sum(tree.predict(unseen) for tree in grown))


def test_trees_are_evaluated_block_by_block(monkeypatch):
    rng = np.random.RandomState(0)
    x = rng.randn(100, 4)
    tree = DecisionTreeRegressor(random_state=0).fit(x, x[:, 0])
    trees = Trees.collect([tree.tree_], [tree.tree_.value[:, 0, 0]])
    whole = trees.sums(x)
    monkeypatch.setattr("bagwise.instance_space._trees.VALUES_PER_BLOCK", 28)
    np.testing.assert_array_equal(trees.sums(x), whole)


def test_line_search_finds_the_minimum_along_the_line():
    z, direction = np.array([3.0, -1.0]), np.array([-1.0, 0.5])

    def square(at):
        return float(at @ at)

    exact = -(z @ direction) / (direction @ direction)
    assert best_step(square, z, direction) == pytest.approx(exact, rel=0.02)
    assert best_step(square, z, 1e-6 * direction) == pytest.approx(1e6 * exact, rel=0.02)
    assert best_step(square, 100 * z, direction) == pytest.approx(LONGEST_STEP, rel=0.02)
    assert best_step(square, z, -direction) == 0.0
    assert best_step(square, z, 0 * direction) == 0.0
    assert best_step(square, np.array([5.0]), np.array([1.0]), lowest=-30) == pytest.approx(-5, abs=0.2)


def test_one_round_is_a_tree_on_the_gradient():
    """The definition in plain NumPy: p (1 - P) / P in positive bags, -p in negative ones."""
    bags, y = concept_bags()
    model = MILBoost(1, learning_rate=1, max_features=None, subsample=1, max_depth=2, random_state=0).fit(bags, y)
    start = model.intercept_[0]
    p = 1 / (1 + np.exp(-start))
    gradient = []
    for bag, label in zip(bags, y):
        none = (1 - p) ** len(bag)
        gradient += [p * none / (1 - none) if label else -p] * len(bag)
    weight = np.full(bags.n_instances, 1 / len(bags))
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(
        bags.instances.astype(np.float32), gradient, sample_weight=weight
    )
    direction = tree.predict(bags.instances.astype(np.float32))
    ours = model.instance_scores(bags) - start
    step = (ours @ direction) / (direction @ direction)
    np.testing.assert_allclose(ours, step * direction, atol=1e-9)

    def loss(step):
        z = start + step * direction
        none = np.array([np.prod(1 / (1 + np.exp(of_bag))) for of_bag in bags.split(z)])
        return -np.mean(np.log(np.where(y == 1, 1 - none, none)))

    assert model.objective_[0, 0] == pytest.approx(loss(step))
    assert loss(step) <= min(loss(0.9 * step), loss(0))
    at_limit = step * np.abs(direction).max() > 0.98 * LONGEST_STEP
    assert at_limit or loss(step) <= loss(1.1 * step)


def test_boosting_lowers_the_loss_and_finds_the_concept():
    bags, y = concept_bags(100)
    model = MILBoost(random_state=0, subsample=1, calibrate=False).fit(bags, y)
    assert np.all(np.diff(model.objective_[:, 0]) <= 1e-12)
    unseen, truth = concept_bags(100, seed=1)
    assert model.score(unseen, truth) >= 0.85
    hits = [np.argmax(z) == 0 for z, label in zip(unseen.split(model.instance_scores(unseen)), truth) if label]
    assert np.mean(hits) >= 0.85
    none = [np.prod(1 / (1 + np.exp(z))) for z in bags.split(model.instance_scores(bags))]
    np.testing.assert_allclose(model.predict_proba(bags)[:, 0], none, atol=1e-9)


def test_start_is_the_best_constant():
    """Bags of one instance and equal shares: the constant of least loss has log-odds zero."""
    model = MILBoost(1, random_state=0).fit(np.random.RandomState(0).randn(40, 3), np.arange(40) % 2)
    assert abs(model.intercept_[0]) < 0.05


def test_sparse_data_too_large_to_be_made_dense(monkeypatch):
    bags, y = concept_bags(100)
    sparse_bags = bags.with_instances(sparse.csr_array(bags.instances))
    dense = MILBoost(20, learning_rate=0.5, random_state=0).fit(sparse_bags, y)
    monkeypatch.setattr("bagwise.instance_space._trees.DENSE_UP_TO", 0)
    csr = MILBoost(20, learning_rate=0.5, random_state=0).fit(sparse_bags, y)
    assert np.mean(csr.predict(sparse_bags) == dense.predict(bags)) >= 0.95
