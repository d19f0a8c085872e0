"""Fisher vectors against finite differences and another library; VLAD, mixture and projection against plain code."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from tests.problems import concept_problem

from bagwise import Bags
from bagwise._utils import mixture as mixture_module
from bagwise._utils.mixture import Mixture, Projection, cluster_centres
from bagwise.embedded_space.fisher import MiFV, MiFVTransformer, fisher_vectors
from bagwise.embedded_space.vlad import MiVLAD, MiVLADTransformer, vlad_vectors

MIXTURE = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [-1.0, 0.5]]), np.array([[1.0, 2.0], [0.5, 1.5]]))
X = np.array([[1.69, -0.47], [0.03, 0.41], [-0.79, 0.0], [0.0, -1.75], [1.02, 0.6], [-0.63, -0.17]])


def mean_log_likelihood(x, weights, means, deviations):
    density = sum(w * multivariate_normal(m, np.diag(s**2)).pdf(x) for w, m, s in zip(weights, means, deviations))
    return np.log(density).mean()


def test_fisher_vector_is_the_normalised_gradient():
    deviation = np.sqrt(MIXTURE.variances)
    expected = np.empty((2, 2, 2))  # component, mean or deviation, column
    step = 1e-5
    for k in range(2):
        for j in range(2):
            move = np.zeros((2, 2))
            move[k, j] = step
            by_mean = (
                mean_log_likelihood(X, MIXTURE.weights, MIXTURE.means + move, deviation)
                - mean_log_likelihood(X, MIXTURE.weights, MIXTURE.means - move, deviation)
            ) / (2 * step)
            by_deviation = (
                mean_log_likelihood(X, MIXTURE.weights, MIXTURE.means, deviation + move)
                - mean_log_likelihood(X, MIXTURE.weights, MIXTURE.means, deviation - move)
            ) / (2 * step)
            # The Fisher information of a mean is w/σ², of a standard deviation 2w/σ².
            expected[k, 0, j] = by_mean * deviation[k, j] / np.sqrt(MIXTURE.weights[k])
            expected[k, 1, j] = by_deviation * deviation[k, j] / np.sqrt(2 * MIXTURE.weights[k])
    np.testing.assert_allclose(fisher_vectors(X, np.array([0, 6]), MIXTURE)[0], expected.ravel(), rtol=1e-6)


def test_fisher_vector_equals_scikit_image():
    """skimage.feature.fisher_vector 0.26 of the same data; it gives the deviations the other sign."""
    by_mean = [0.7224015258661437, -0.7328830980840693, 0.5544729559948345, -0.40056606569819597]
    by_deviation = [-0.20039591124181566, 0.0407454891932886, -0.11615032523913658, 0.06836858965666184]
    found = fisher_vectors(X, np.array([0, 6]), MIXTURE).reshape(2, 2, 2)
    np.testing.assert_allclose(found[:, 0].ravel(), by_mean, rtol=1e-10)
    np.testing.assert_allclose(-found[:, 1].ravel(), by_deviation, rtol=1e-10)


def test_bags_are_coded_apart_and_in_blocks(monkeypatch):
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(m, 2) for m in (1, 4, 9, 2)])
    alone = np.concatenate([fisher_vectors(bag, np.array([0, len(bag)]), MIXTURE) for bag in bags])
    np.testing.assert_allclose(fisher_vectors(bags.instances, bags.offsets, MIXTURE), alone, rtol=1e-10)
    monkeypatch.setattr("bagwise.embedded_space.fisher.ROWS_PER_BLOCK", 3)
    np.testing.assert_allclose(fisher_vectors(bags.instances, bags.offsets, MIXTURE), alone, rtol=1e-10)


def test_vlad_equals_plain_loops():
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(m, 2) for m in (1, 4, 9, 2)])
    centres = rng.randn(3, 2)
    expected = np.zeros((4, 3, 2))
    for i, bag in enumerate(bags):
        for x in bag:
            k = np.argmin([np.linalg.norm(x - c) for c in centres])
            expected[i, k] += x - centres[k]
    np.testing.assert_allclose(vlad_vectors(bags.instances, bags.offsets, centres), expected.reshape(4, 6))


@pytest.mark.parametrize("coder", [MiFVTransformer, MiVLADTransformer])
def test_codes_have_unit_length(coder):
    bags, _ = concept_problem()
    codes = coder(3, random_state=0).fit(bags).transform(bags)
    np.testing.assert_allclose(np.linalg.norm(codes, axis=1), 1)
    raw = coder(3, random_state=0).fit(bags)
    plain = raw._codes(raw.projection_(raw.scaler_.transform(bags).instances), bags)
    rooted = np.sign(plain) * np.sqrt(np.abs(plain))
    np.testing.assert_allclose(codes, rooted / np.linalg.norm(rooted, axis=1, keepdims=True))


def test_mixture_is_as_likely_as_scikit_learns():
    rng = np.random.RandomState(0)
    x = np.concatenate([rng.randn(100, 2) * [1, 0.3], rng.randn(60, 2) * 0.5 + 4, rng.randn(80, 2) * 0.8 - 4])
    ours = Mixture.fit(x, 3, np.random.RandomState(0), tol=1e-8)
    theirs = GaussianMixture(3, covariance_type="diag", tol=1e-8, max_iter=500, random_state=0).fit(x)
    likelihood = mean_log_likelihood(x, ours.weights, ours.means, np.sqrt(ours.variances))
    assert likelihood == pytest.approx(theirs.score(x), abs=1e-3)
    np.testing.assert_allclose(ours.posteriors(x).sum(axis=1), 1)


def test_tied_mixture_has_the_likeliest_common_variance():
    rng = np.random.RandomState(0)
    x = np.concatenate([rng.randn(80, 2), rng.randn(60, 2) + 6, rng.randn(40, 2) - 6])
    fitted = Mixture.fit(x, 3, np.random.RandomState(0), tied=True, tol=1e-9)
    assert np.ptp(fitted.variances) == 0
    deviation = np.sqrt(fitted.variances)
    best = mean_log_likelihood(x, fitted.weights, fitted.means, deviation)
    for factor in (0.95, 1.05):
        assert mean_log_likelihood(x, fitted.weights, fitted.means, deviation * factor) < best


def test_mixture_in_blocks(monkeypatch):
    x = np.random.RandomState(0).randn(50, 3)
    whole = Mixture.fit(x, 2, np.random.RandomState(0))
    monkeypatch.setattr(mixture_module, "ROWS_PER_BLOCK", 7)
    cut = Mixture.fit(x, 2, np.random.RandomState(0))
    np.testing.assert_allclose(cut.means, whole.means, rtol=1e-8)


def test_fewer_different_rows_than_clusters():
    x = np.repeat(np.array([[0.0, 1.0], [2.0, 3.0]]), 5, axis=0)
    assert len(cluster_centres(x, 4, np.random.RandomState(0))) == 2
    assert np.isfinite(Mixture.fit(x, 4, np.random.RandomState(0)).posteriors(x)).all()


@pytest.mark.parametrize("energy", [0.5, 0.9, 1.0])
def test_projection_equals_pca(energy):
    x = np.random.RandomState(0).randn(40, 6) @ np.diag([5, 3, 2, 1, 0.5, 0.1]) + 10
    pca = PCA(None if energy == 1 else energy, svd_solver="full").fit(x)
    ours = Projection.fit(x, energy)
    np.testing.assert_allclose(np.abs(ours(x)), np.abs(pca.transform(x)), atol=1e-6)
    np.testing.assert_allclose(Projection.fit(sparse.csr_array(x), energy)(sparse.csr_array(x)), ours(x), atol=1e-6)


def test_projection_of_wide_data(monkeypatch):
    x = np.random.RandomState(0).randn(30, 50) @ np.diag(np.r_[[9, 7, 5], np.full(47, 0.01)])
    narrow = Projection.fit(x, 0.999)
    monkeypatch.setattr(mixture_module, "WIDEST_COVARIANCE", 10)
    for form in (x, sparse.csr_array(x)):
        wide = Projection.fit(form, 0.999)
        assert wide.directions.shape == (50, 3)
        np.testing.assert_allclose(wide(form), narrow(x), atol=1e-6)


@pytest.mark.parametrize("method", [MiFV, MiVLAD])
def test_several_components_and_weights(method):
    bags, y = concept_problem(60)
    model = method(n_components=2, random_state=0).fit(bags, y)
    assert model.score(bags, y) >= 0.8
    heavy = method(C=0.1, class_weight={0: 1, 1: 5}, random_state=0).fit(bags, y)
    assert heavy.predict(bags).sum() > method(C=0.1, random_state=0).fit(bags, y).predict(bags).sum()
