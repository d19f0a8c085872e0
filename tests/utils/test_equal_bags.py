"""Bags sorted by content, equal ones as one, and what draws bags by weight."""

import numpy as np
import pytest
from scipy import sparse
from tests.problems import concept_problem

from bagwise import Bags, MILBoost
from bagwise._utils.equal_bags import MOST_UNITS, by_content, content_keys, equal_units


def as_it_is(bags):
    return bags


def as_csr(bags):
    return bags.with_instances(sparse.csr_array(bags.instances))


def rows_of(bags):
    return [np.asarray(bag.toarray() if sparse.issparse(bag) else bag) for bag in bags]


@pytest.mark.parametrize("form", [as_it_is, as_csr])
def test_neither_order_nor_repetition_is_left(form):
    bags, y = concept_problem(30)
    rng = np.random.RandomState(0)
    times = rng.randint(1, 5, size=30)
    order = rng.permutation(np.repeat(np.arange(30), times))
    weighted = by_content(form(bags), y, times.astype(float))
    repeated = by_content(form(bags[order]), y[order], np.ones(len(order)))
    assert len(weighted[0]) == 30
    for one, other in zip(rows_of(weighted[0]), rows_of(repeated[0]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(weighted[1], repeated[1])
    np.testing.assert_array_equal(weighted[2], repeated[2])


def test_what_differs_in_anything_stays_apart():
    table = np.arange(6.0).reshape(3, 2)
    other_order, other_number = table[::-1], np.concatenate([table, table])
    bags = Bags([table, other_order, other_number, table, table])
    kept, y, weight = by_content(bags, np.array([0, 0, 0, 1, 0]), np.ones(5))
    assert sorted(zip(map(len, kept), y, weight)) == [(3, 0, 1), (3, 0, 2), (3, 1, 1), (6, 0, 1)]
    prior = np.concatenate([np.zeros(3), np.ones(3), np.ones(3)])
    kept, _, weight = by_content(Bags([table, table, table], prior=prior), np.zeros(3), np.ones(3))
    assert sorted(weight) == [1, 2]
    assert sorted(kept.prior[kept.offsets[:-1]]) == [0, 1]


def test_bags_too_alike_for_their_keys_are_told_apart():
    """With an offset that leaves no digits to the differences, all keys are equal."""
    tables = [np.full((2, 3), 1e12) + np.eye(2, 3) * i for i in (0, 1, 2, 1, 0, 1)]
    assert len(np.unique(content_keys(Bags(tables)))) == 1
    kept, y, weight = by_content(Bags(tables), np.array([0, 1, 0, 1, 0, 1]), np.ones(6))
    assert sorted(zip((bag[0, 0] - 1e12 for bag in kept), y, weight)) == [(0, 0, 2), (1, 1, 3), (2, 0, 1)]


def test_units_are_the_bags_as_often_as_they_weigh():
    rng = np.random.RandomState(0)
    np.testing.assert_array_equal(equal_units(np.ones(1000), rng), np.arange(1000))
    np.testing.assert_array_equal(equal_units(np.array([2.0, 1.0, 3.0]), rng), [0, 0, 1, 2, 2, 2])
    units = np.concatenate([equal_units(np.array([0.5, 1.75, 0.75]), rng) for _ in range(4000)])
    np.testing.assert_allclose(np.bincount(units) / 4000, [0.5, 1.75, 0.75], atol=0.03)


def test_the_number_of_units_has_bounds():
    rng = np.random.RandomState(0)
    np.testing.assert_array_equal(equal_units(np.full(5, 1e-3), rng), np.arange(5))
    assert len(equal_units(np.array([1e9, 1.0]), rng)) == 2 * MOST_UNITS


def test_two_bags_of_great_weight_are_enough_to_learn_from():
    """A half of two bags would be one of them, from which no tree learns a difference."""
    tables = [np.zeros((1, 2)), np.ones((1, 2))]
    model = MILBoost(calibrate=False, random_state=0)
    repeated = model.fit(Bags(tables * 40), np.tile([0, 1], 40)).predict_proba(Bags(tables))[:, 1]
    weighted = model.fit(Bags(tables), [0, 1], sample_weight=[40, 40]).predict_proba(Bags(tables))[:, 1]
    np.testing.assert_array_equal(weighted, repeated)
    assert weighted[0] < 0.1
    assert weighted[1] > 0.9
