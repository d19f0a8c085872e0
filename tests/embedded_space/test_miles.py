"""MILES: the embedding against a double loop, the machine against scikit-learn's, the scores against their sum."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from tests.problems import concept_problem

from bagwise import MILES, Bags, MILESTransformer, distances
from bagwise.embedded_space.miles import similarities, sparse_machine


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("values_per_block", [40, 1 << 22])
def test_similarities_against_a_double_loop(form, values_per_block, monkeypatch):
    monkeypatch.setattr(distances, "VALUES_PER_BLOCK", values_per_block)
    bags, _ = concept_problem(12)
    prototypes = bags.instances[::5]
    expected = [[np.exp(-0.2 * ((bag - p) ** 2).sum(axis=1)).max() for bag in bags] for p in prototypes]
    found = similarities(form(prototypes), bags.with_instances(form(bags.instances)), 0.2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_very_many_pairs_are_compared_in_single_precision(monkeypatch):
    bags, _ = concept_problem(12)
    exact = similarities(bags.instances, bags, 0.2)
    monkeypatch.setattr(distances, "PAIRS_IN_DOUBLE", 1)
    single = similarities(bags.instances, bags, 0.2)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_sparse_machine_is_at_least_as_good_as_liblinear(C):
    rng = np.random.RandomState(0)
    features = rng.randn(150, 60)
    y = np.where(features[0] + features[1] + rng.randn(60) > 0, 1.0, -1.0)
    cost = C * rng.uniform(0.5, 2, size=60)

    def objective(w, b, penalised=0.0):
        return np.abs(w).sum() + penalised + cost @ np.maximum(0, 1 - y * (w @ features + b)) ** 2

    w, b, _ = sparse_machine(features, y, cost, 1000, 1e-6)
    # A large constant makes LIBLINEAR's penalty on the intercept vanish.
    liblinear = LinearSVC(penalty="l1", dual=False, tol=1e-8, max_iter=100_000, intercept_scaling=1e3, random_state=0)
    liblinear.fit(features.T, y, sample_weight=cost)
    best = objective(liblinear.coef_[0], liblinear.intercept_[0])
    assert objective(w, b) <= best * (1 + 1e-6)
    assert objective(w, b) == pytest.approx(best, rel=5e-3)
    slope = -2 * features @ (cost * y * np.maximum(0, 1 - y * (w @ features + b)))
    assert np.abs(slope).max() <= 1 + 1e-5  # the optimality conditions
    np.testing.assert_allclose(slope[w != 0], -np.sign(w[w != 0]), atol=1e-5)


def test_instance_scores_add_up_to_the_bag_score():
    bags, y = concept_problem()
    model = MILES(C=3.0, calibrate=False).fit(bags, y)
    total = np.add.reduceat(model.instance_scores(bags), bags.offsets[:-1]) + model.intercept_
    np.testing.assert_allclose(total, model.decision_function(bags), rtol=1e-9, atol=1e-9)
    doubled = Bags([np.repeat(bag, 2, axis=0) for bag in bags])  # equal instances share
    np.testing.assert_allclose(
        model.instance_scores(doubled)[::2] + model.instance_scores(doubled)[1::2], model.instance_scores(bags)
    )


def test_only_instances_that_matter_are_kept():
    bags, y = concept_problem()
    model = MILES().fit(bags, y)
    assert 0 < len(model.prototypes_) < bags.n_instances / 2
    assert (model.coef_ != 0).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_transformer_in_a_pipeline(form):
    bags, y = concept_problem(60)
    bags = bags.with_instances(form(bags.instances))
    embedded = MILESTransformer().fit_transform(bags)
    assert embedded.shape == (60, bags.n_instances)
    assert embedded.max() <= 1
    np.testing.assert_allclose(embedded[bags.bag_of_instance, np.arange(bags.n_instances)], 1, atol=1e-6)
    assert make_pipeline(MILESTransformer(), LogisticRegression(C=10)).fit(bags, y).score(bags, y) >= 0.9
