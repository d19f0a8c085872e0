"""The p-posterior mixture-model kernel."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bagwise import Bags
from bagwise._utils.mixture import Mixture
from bagwise.bag_space.ppmm import PPMMKernelSVC, alignment, codes_of, mean_posteriors

MIXTURE = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [-1.0, 0.5]]), np.array([[1.0, 2.0], [0.5, 1.5]]))


def test_mean_posteriors_follow_bayes():
    bags = Bags([np.random.RandomState(0).randn(m, 2) for m in (3, 1, 5)])
    for bag, found in zip(bags, mean_posteriors(bags, MIXTURE)):
        rows = []
        for x in bag:
            joint = [
                w * multivariate_normal(mean, np.diag(variance)).pdf(x)
                for w, mean, variance in zip(MIXTURE.weights, MIXTURE.means, MIXTURE.variances)
            ]
            rows.append(np.array(joint) / np.sum(joint))
        np.testing.assert_allclose(found, np.mean(rows, axis=0), rtol=1e-10)


def test_codes():
    found = codes_of(np.array([[0.9, 0.1], [0.5, 0.5]]), 2.0)
    np.testing.assert_allclose(found, [np.array([0.81, 0.01]) / np.hypot(0.81, 0.01), [0.5**0.5] * 2])
    assert np.isfinite(codes_of(np.array([[1e-200, 1e-190]]), 3.0)).all()


def test_alignment_is_the_cosine_of_the_centred_kernels():
    rng = np.random.RandomState(0)
    codes, y = rng.rand(12, 4), np.arange(12) % 3 == 0
    centre = np.eye(12) - 1 / 12
    k, target = centre @ codes @ codes.T @ centre, centre @ np.outer(y, y) @ centre
    expected = (k * target).sum() / np.linalg.norm(k) / np.linalg.norm(target)
    assert alignment(codes, y[:, None]) == pytest.approx(expected)


def bags_of_blobs(counts, seed):
    """Bags with so many instances from each of some distant blobs."""
    rng = np.random.RandomState(seed)

    def blob(k, n):
        return rng.randn(n, 2) * 0.3 + 10 * np.array([k, k % 2])

    return Bags([np.concatenate([blob(k, n) for k, n in enumerate(bag)]) for bag in counts])


def test_power_adapts_to_how_labels_are_made():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 2
    # One rare instance makes the label, against counts that vary widely: only presence tells.
    presence = bags_of_blobs([[rng.randint(5, 40), rng.randint(5, 40), label] for label in y], 1)
    # The larger one of two blobs makes the label; of the smaller, and of a third, there may be any number or none.
    majority = bags_of_blobs(
        [[*([30, rng.randint(12)] if label else [rng.randint(12), 30]), rng.randint(12)] for label in y], 2
    )
    small = PPMMKernelSVC(n_components=3, random_state=0).fit(presence, y)
    large = PPMMKernelSVC(n_components=3, random_state=0).fit(majority, y)
    assert small.p_ <= 0.3
    assert large.p_ >= 1
    assert small.score(presence, y) == 1
    assert large.score(majority, y) == 1


def test_fixed_power_and_sparse_input():
    bags = bags_of_blobs([[3, 1], [1, 3]] * 10, 0)
    assert PPMMKernelSVC(p=0.5, random_state=0).fit(bags, np.arange(20) % 2).p_ == 0.5
