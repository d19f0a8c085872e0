"""Multi-fold learning finds the instances that make bags positive."""

import numpy as np
import pytest

from bagwise.bags import Bags
from bagwise.discovery.multifold import MultiFoldSVC


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    parts, where = [], []
    for number in range(60):
        rows = rng.normal(size=(8, 5))
        if number < 30:
            key = int(rng.integers(8))
            rows[key] += [3, 3, 0, 0, 0]
            where.append(key)
        parts.append(rows)
    return parts, np.arange(60) < 30, np.array(where)


def test_key_instances_are_found(problem):
    parts, y, where = problem
    model = MultiFoldSVC(random_state=0).fit(Bags(parts), y)
    chosen = [int(np.argmax(scores)) for scores in Bags(parts).split(model.instance_scores(Bags(parts)))[:30]]
    assert np.mean(chosen == where) >= 0.9
    assert model.score(Bags(parts), y) > 0.85
    again = MultiFoldSVC(random_state=0).fit(Bags(parts), y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_the_prior_makes_the_first_choice(problem):
    parts, y, where = problem
    prior = np.zeros((60, 8))
    prior[np.arange(30), where] = 1
    model = MultiFoldSVC(rounds=0, random_state=0).fit(Bags(parts, prior=prior.ravel()), y)
    rows = np.concatenate([[i * 8 + k for i, k in enumerate(where)]])
    scores = model.instance_scores(Bags(parts))
    assert scores[rows].mean() > np.delete(scores, rows).mean() + 1


def test_one_positive_bag(problem):
    parts, _, _ = problem
    model = MultiFoldSVC(random_state=0).fit(Bags(parts[29:]), np.arange(31) < 1)
    assert np.isfinite(model.coef_).all()
