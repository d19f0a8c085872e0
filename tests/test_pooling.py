"""The noisy-OR against its definition, its gradient against finite differences, and bags of any size."""

import numpy as np
import pytest
from scipy.special import expit, logit

from bagwise.pooling import noisy_or_log_odds, noisy_or_loss, size_prior

OFFSETS = np.array([0, 1, 4, 9])


def test_log_odds_are_those_of_the_definition():
    z = np.random.RandomState(0).randn(9, 2)
    for i in range(3):
        p = 1 - np.prod(1 - expit(z[OFFSETS[i] : OFFSETS[i + 1]]), axis=0)
        np.testing.assert_allclose(noisy_or_log_odds(z, OFFSETS)[i], logit(p))


def test_pulls_by_finite_differences():
    z = 2 * np.random.RandomState(0).randn(9)
    target = np.array([True, False, True])
    losses, pulls = noisy_or_loss(z, OFFSETS, target)
    p = np.array([1 - np.prod(1 - expit(part)) for part in np.split(z, OFFSETS[1:-1])])
    np.testing.assert_allclose(losses, -np.log(np.where(target, p, 1 - p)))
    steps = 1e-6 * np.eye(9)
    numeric = [
        (noisy_or_loss(z - h, OFFSETS, target)[0].sum() - noisy_or_loss(z + h, OFFSETS, target)[0].sum()) / 2e-6
        for h in steps
    ]
    np.testing.assert_allclose(pulls, numeric, rtol=1e-6, atol=1e-8)


def test_a_size_prior_makes_bags_of_any_size_alike():
    offsets = np.cumsum([0, 10, 1000, 100_000])
    sizes = np.diff(offsets)
    plain = noisy_or_log_odds(np.full(offsets[-1], -3.0), offsets)
    normalised = noisy_or_log_odds(-3.0 + np.repeat(size_prior(offsets), sizes), offsets)
    assert np.ptp(plain) > 5
    np.testing.assert_allclose(normalised, -3.0, atol=0.05)


@pytest.mark.parametrize("z", [-700.0, 800.0])
def test_extremes_stay_finite(z):
    for target in (True, False):
        losses, pulls = noisy_or_loss(np.full(9, z), OFFSETS, np.full(3, target))
        assert np.isfinite(losses).all()
        assert np.isfinite(pulls).all()
