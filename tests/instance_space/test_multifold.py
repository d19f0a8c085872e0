"""Multi-fold learning finds the instances that make bags positive."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bagwise import Bags, MultiFoldSVC


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
    model = MultiFoldSVC(scaling="standard", random_state=0).fit(Bags(parts), y)
    chosen = [int(np.argmax(scores)) for scores in Bags(parts).split(model.instance_scores(Bags(parts)))[:30]]
    assert np.mean(chosen == where) >= 0.9
    assert model.score(Bags(parts), y) > 0.85
    again = MultiFoldSVC(scaling="standard", random_state=0).fit(Bags(parts), y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_one_round_by_hand(problem):
    """The folds in plain NumPy: each chooses by the SVM of the others."""
    parts, y, _ = problem
    bags = Bags(parts)
    model = MultiFoldSVC(0.5, n_folds=3, max_iter=1, n_negatives=2, scaling=None, random_state=4).fit(bags, y)
    rng = np.random.RandomState(4)

    def svm(x, positive):
        kind = LinearSVC(C=0.5, class_weight="balanced", random_state=rng.randint(2**31 - 1))
        return kind.fit(x, positive)

    def svm_of(chosen, hard):
        return svm(np.vstack([*chosen, *hard]), np.arange(len(chosen) + 2 * len(hard)) < len(chosen))

    def best(part, coef, count):
        return part[np.argsort(-(part @ coef), kind="stable")[:count]]

    first = svm(np.array([part.mean(axis=0) for part in parts]), y).coef_[0]
    chosen = [best(part, first, 1) for part in parts[:30]]
    hard = [best(part, first, 2) for part in parts[30:]]
    fold = rng.permutation(30) % 3
    coefs = [svm_of([c for c, f in zip(chosen, fold) if f != k], hard).coef_[0] for k in range(3)]
    chosen = [best(part, coefs[f], 1) for part, f in zip(parts, fold)]
    hard = [best(part, sum(coefs), 2) for part in parts[30:]]
    last = svm_of(chosen, hard)
    np.testing.assert_allclose(model.coef_, last.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, last.intercept_, rtol=1e-6)


def test_the_prior_makes_the_first_choice(problem):
    parts, y, where = problem
    prior = np.zeros((60, 8))
    prior[np.arange(30), where] = 1
    model = MultiFoldSVC(max_iter=0, random_state=0).fit(Bags(parts, prior=prior.ravel()), y)
    rows = np.concatenate([[i * 8 + k for i, k in enumerate(where)]])
    scores = model.instance_scores(Bags(parts))
    assert scores[rows].mean() > np.delete(scores, rows).mean() + 1


def test_a_prior_that_tells_nothing_is_none(problem):
    """It chose the first instance of every bag, and with which seed anything was learned was luck."""
    parts, y, _ = problem
    without, same = Bags(parts), Bags(parts, prior=np.full(480, -2.3))
    one, other = (MultiFoldSVC(random_state=0).fit(bags, y) for bags in (without, same))
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_one_positive_bag(problem):
    parts, _, _ = problem
    model = MultiFoldSVC(random_state=0).fit(Bags(parts[29:]), np.arange(31) < 1)
    assert np.isfinite(model.coef_).all()
