"""The objective against its definition, and its gradient against finite differences."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from bagwise.pooling import noisy_or_log_odds
from bagwise.rmi.objective import Loss, instance_coefficients, value_and_gradient

LOSS = Loss(lam=0.1, beta=2.0, margin=0.7)


def by_definition(w, tables, target, loss, priors, weight):
    """The paper's formula, as it stands."""
    total = loss.lam / 2 * w @ w
    for x, y, prior, s in zip(tables, target, priors, weight):
        z = x @ w[:-1] + w[-1] + prior
        p = expit(z)
        bag = 1 - np.prod(1 - p)
        cross_entropy = -np.log(bag) if y else -np.log(1 - bag)
        sign = np.where(p >= loss.threshold, 1, -1)
        hinge = np.maximum(0, loss.margin - sign * z).mean()
        total += s * (loss.beta * cross_entropy + hinge) / len(tables)
    return total


@pytest.fixture
def small():
    rng = np.random.RandomState(0)
    tables = [rng.randn(m, 4) for m in (1, 3, 5, 2)]
    target = np.array([True, False, True, False])
    priors = [rng.randn(len(x)) for x in tables]
    weight = np.array([0.5, 1.5, 1.2, 0.8])
    return rng.randn(5), tables, target, priors, weight


@pytest.mark.parametrize("threshold", [0.5, 0.3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_value_is_the_formula(small, threshold, form):
    w, tables, target, priors, weight = small
    loss = Loss(0.1, 2.0, 0.7, threshold)
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in tables])])
    value, _ = value_and_gradient(
        w, form(np.concatenate(tables)), offsets, target, loss, prior=np.concatenate(priors), bag_weight=weight
    )
    assert value == pytest.approx(by_definition(w, tables, target, loss, priors, weight))


@pytest.mark.parametrize("intercept", [True, False])
def test_gradient_by_finite_differences(small, intercept):
    w, tables, target, priors, weight = small
    w = w if intercept else w[:-1]
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in tables])])

    def evaluate(w):
        return value_and_gradient(
            w,
            np.concatenate(tables),
            offsets,
            target,
            LOSS,
            prior=np.concatenate(priors),
            bag_weight=weight,
            intercept=intercept,
        )

    gradient = evaluate(w)[1]
    step = 1e-6 * np.eye(len(w))
    numeric = [(evaluate(w + h)[0] - evaluate(w - h)[0]) / 2e-6 for h in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_log_odds_is_the_noisy_or():
    z = np.array([0.3, -1.0, 2.0, -0.5])
    odds = noisy_or_log_odds(z, np.array([0, 1, 4]))
    p = 1 - np.prod(1 - expit(z[1:]))
    np.testing.assert_allclose(odds, [z[0], np.log(p / (1 - p))])


@pytest.mark.parametrize("z", [-1e4, -700.0, -31.0, -29.0, 31.0, 800.0, 1e4])
@pytest.mark.parametrize("size", [1, 2, 1044])
def test_extreme_scores_stay_finite_and_right(z, size):
    """A bag of equal scores: its log-odds are z + log(size) far below zero, and size * z far above."""
    scores = np.full(size, z)
    odds = noisy_or_log_odds(scores, np.array([0, size]))[0]
    assert odds == pytest.approx(z + np.log(size) if z < 0 else size * z, rel=1e-6)
    for target in (True, False):
        loss, c = instance_coefficients(scores, np.array([0, size]), np.array([target]), LOSS)
        assert np.isfinite(loss).all()
        assert np.isfinite(c).all()
        if target and z < -30:  # the pull of a hopeless positive bag is shared by its instances, and does not vanish
            np.testing.assert_allclose(c, LOSS.beta / size, rtol=1e-6)
