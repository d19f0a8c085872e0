"""The axis-parallel rectangle: each step against a direct computation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from bagwise import APR, Bags
from bagwise.datasets import make_single_concept
from bagwise.instance_space._apr_loops import best_windows, grow
from bagwise.instance_space.apr import discriminating, expanded, nearest_of_smallest_bag


def test_growing_comes_near_the_smallest_of_all_rectangles():
    rng = np.random.RandomState(0)
    ratios = []
    for _ in range(20):
        bags = Bags([rng.randn(rng.randint(1, 4), 2) for _ in range(6)])
        x, offsets = bags.instances, bags.offsets
        smallest = min(
            np.ptp(x[list(rows)], axis=0).sum() for rows in product(*(range(*offsets[i : i + 2]) for i in range(6)))
        )
        found = min(np.ptp(x[grow(x, offsets, np.arange(2), seed, 0, 10)], axis=0).sum() for seed in range(offsets[1]))
        assert found >= smallest - 1e-12
        ratios.append(found / smallest)
    assert np.median(ratios) == pytest.approx(1)
    assert np.mean(ratios) < 1.1


def test_growing_chooses_one_instance_of_each_bag_and_minds_only_the_given_columns():
    rng = np.random.RandomState(1)
    bags = Bags([rng.randn(3, 4) for _ in range(8)])
    x, offsets = bags.instances, bags.offsets
    columns = np.array([1, 3])
    chosen = grow(x, offsets, columns, 4, 1, 10)
    np.testing.assert_array_equal(chosen // 3, np.arange(8))
    other = x.copy()
    other[:, [0, 2]] = rng.randn(len(x), 2)
    np.testing.assert_array_equal(grow(other, offsets, columns, 4, 1, 10), chosen)


def test_columns_are_chosen_that_keep_the_negatives_out():
    inside = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    negatives = np.array([[3.0, 0.5, 0.5], [4.0, 0.5, 1.5], [0.5, 0.5, 1.2], [0.5, 0.5, 0.5]])
    # Column 0 keeps the first two out by more than the margin; the third is out in column 2 alone, if only a little;
    # nothing keeps the last one out.
    np.testing.assert_array_equal(discriminating(inside, negatives, np.ones(4), 1.0), [0, 2])
    np.testing.assert_array_equal(discriminating(inside, negatives, np.array([1, 1, 0, 1]), 1.0), [0])
    np.testing.assert_array_equal(discriminating(inside, negatives[3:], np.ones(1), 1.0), [0, 1, 2])


def test_borders_leave_epsilon_outside():
    rng = np.random.RandomState(0)
    inside, weight = rng.randn(9, 3), rng.uniform(0.5, 2, size=9)
    low, high = expanded(inside, weight, 0.9, 0.05)
    for column in range(3):
        values = inside[:, column]
        deviation = np.ptp(values) / 2 / norm.ppf(0.95)
        for border, tail in ((low, norm.cdf), (high, norm.sf)):
            mass = np.average(tail(border[column], loc=values, scale=deviation), weights=weight)
            assert mass == pytest.approx(0.025, rel=1e-6)


def test_first_bag():
    bags = Bags([np.array([[9.0], [0.0]]), np.array([[5.0]]), np.array([[0.5]]), np.array([[0.0], [1.0]])])
    # Bags 1 and 2 have one instance each; all bags meet between 0.5 and 5, so both are at distance zero: the first.
    bag, rows = nearest_of_smallest_bag(bags.instances, bags.offsets)
    assert bag == 1
    np.testing.assert_array_equal(rows, [2])


def test_windows_of_single_columns():
    """Against all pairs of values as ends."""
    rng = np.random.RandomState(3)
    bags = Bags([rng.randn(rng.randint(1, 5), 3).round(1) for _ in range(5)])
    negatives, weight = rng.randn(20, 3).round(1), rng.uniform(0.5, 2, size=20)
    x = bags.instances
    low, high, let_in = best_windows(
        x, bags.bag_of_instance, 5, np.argsort(x, axis=0), negatives, weight, np.argsort(negatives, axis=0)
    )
    for f in range(3):
        ends = [
            (round(weight[(negatives[:, f] >= a) & (negatives[:, f] <= b)].sum(), 9), b - a)
            for a in x[:, f]
            for b in x[:, f]
            if all(((bag[:, f] >= a) & (bag[:, f] <= b)).any() for bag in bags)
        ]
        assert (let_in[f], high[f] - low[f]) == pytest.approx(min(ends))


def test_a_concept_among_noise_is_found():
    """Grown in all columns, the rectangle would follow the noise of nineteen of them."""
    train = make_single_concept(200, 20, bag_size=(4, 12), random_state=0)
    test = make_single_concept(200, 20, bag_size=(4, 12), random_state=1)
    assert APR().fit(train.bags, train.y).score(test.bags, test.y) >= 0.8


def test_rectangle_around_the_concept_is_found():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 2
    tables = [rng.uniform(-5, 5, size=(5, 6)) for _ in y]
    for table, label in zip(tables, y):
        if label:
            table[0, :2] = rng.uniform([1, -2], [2, -1])
        else:
            inside = ((table[:, :2] > [0.5, -2.5]) & (table[:, :2] < [2.5, -0.5])).all(axis=1)
            table[inside, 0] -= 3
    model = APR(scaling=None, calibrate=False).fit(Bags(tables), y)
    assert {0, 1} <= set(model.features_[0].tolist())
    middle = (model.low_[0] + model.high_[0]) / 2
    found = dict(zip(model.features_[0].tolist(), middle))
    assert found[0] == pytest.approx(1.5, abs=0.5)
    assert found[1] == pytest.approx(-1.5, abs=0.5)
    z = model.instance_scores(Bags(tables))
    x = np.concatenate(tables)[:, model.features_[0]]
    np.testing.assert_array_equal(z > 0, ((x > model.low_[0]) & (x < model.high_[0])).all(axis=1))
