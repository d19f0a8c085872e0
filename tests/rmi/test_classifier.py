"""RMISVC beyond the common contract: solvers, streaming, weights, the prior, the kernel map, hard data."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from tests.problems import concept_problem

from bagwise import RMISVC, Bags
from bagwise.datasets import (
    load_musk1,
    load_musk2,
    make_presence_test,
    make_single_concept_test,
    make_threshold_test,
)
from bagwise.inspection import feature_contributions


def test_one_pass_over_all_classes_equals_one_fit_per_class():
    bags, y = concept_problem(60, n_classes=3)
    together = RMISVC(0.01, random_state=0).fit(bags, y)
    for k in range(3):
        alone = RMISVC(0.01, random_state=0).fit(bags, y == k)
        np.testing.assert_allclose(alone.coef_[0], together.coef_[k], rtol=1e-10)
        np.testing.assert_allclose(alone.intercept_[0], together.intercept_[k], rtol=1e-10)


def test_the_literal_paper_is_reachable():
    bags, y = concept_problem()
    paper = RMISVC(
        0.05, 1.5, 0.5, sampling="uniform", fit_intercept=False, max_steps=2000, average=False, radius="pegasos",
        scaling=None, random_state=0,
    ).fit(bags, y)  # fmt: skip
    assert paper.n_steps_ == 2000
    assert paper.intercept_[0] == 0
    assert np.linalg.norm(paper.coef_) <= 1 / np.sqrt(0.05) + 1e-9


@pytest.mark.parametrize(
    "options",
    [{}, {"pooling": "normalized"}, {"calibrate": False}, {"lam": 0.01}, {"lam": 0.01, "calibrate": True}],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_noisy_or_of_the_instances_is_the_bags_probability(options, n_classes):
    bags, y = concept_problem(60, n_classes=n_classes)
    model = RMISVC(random_state=0, **options).fit(bags, y)
    p = model.instance_proba(bags).reshape(bags.n_instances, -1)
    pooled = np.array([1 - np.prod(1 - part, axis=0) for part in bags.split(p)])
    expected = expit(model.decision_function(bags)).reshape(len(bags), -1)
    np.testing.assert_allclose(pooled, expected, atol=1e-12)
    if n_classes == 2:
        np.testing.assert_allclose(model.predict_proba(bags)[:, 1], pooled[:, 0], atol=1e-12)
        np.testing.assert_array_equal(model.predict(bags), pooled[:, 0] > 0.5)
    for part, score in zip(bags.split(p[:, 0]), bags.split(model.instance_scores(bags).reshape(len(p), -1)[:, 0])):
        np.testing.assert_array_equal(np.argsort(part), np.argsort(score))


def test_uncalibrated_probabilities_are_the_objectives_own():
    bags, y = concept_problem()
    model = RMISVC(0.01, random_state=0).fit(bags, y)
    assert model.calibration_ is None
    np.testing.assert_allclose(model.instance_proba(bags), expit(model.instance_scores(bags)))


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_objective_history_goes_down(solver):
    bags, y = concept_problem()
    model = RMISVC(0.01, solver=solver, epochs=50, track_objective=True, random_state=0).fit(bags, y)
    assert len(model.objective_) == (50 if solver == "sgd" else 51)
    assert model.objective_[-1, 0] < model.objective_[0, 0]


def test_lbfgs_alone():
    bags, y = concept_problem()
    model = RMISVC(0.01, solver="lbfgs", epochs=0, random_state=0).fit(bags, y)
    assert model.score(bags, y) > 0.9
    assert model.n_steps_ == 0
    problem = model._problem(bags, (y == 1)[:, None], np.ones((len(y), 1)))
    assert problem.objective(model.coef_, model.intercept_) < problem.objective(model.coef_ * 0, model.intercept_ * 0)


def test_too_few_iterations_of_lbfgs_are_said():
    bags, y = concept_problem()
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        RMISVC(0.01, solver="lbfgs", epochs=1, max_iter=1, random_state=0).fit(bags, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RMISVC(0.01, solver="lbfgs", max_iter=1000, tol=1e-3, random_state=0).fit(bags, y)


def test_partial_fit_learns_a_stream():
    bags, y = concept_problem(200)
    unseen, truth = concept_problem(100, seed=5)
    model = RMISVC(0.01, random_state=0)
    for _ in range(20):
        for start in range(0, 200, 20):
            model.partial_fit(bags[start : start + 20], y[start : start + 20], classes=[0, 1])
    assert model.n_steps_ == 20 * 200
    assert model.score(unseen, truth) > 0.9


def test_partial_fit_errors():
    bags, y = concept_problem()
    with pytest.raises(ValueError, match="needs classes="):
        RMISVC(0.01).partial_fit(bags, y)
    with pytest.raises(ValueError, match="fewer than two"):
        RMISVC(0.01).partial_fit(bags, y, classes=[1])
    model = RMISVC(0.01, random_state=0).partial_fit(bags, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(bags, y + 1)
    with pytest.raises(AttributeError) as refused:
        RMISVC().partial_fit(bags, y, classes=[0, 1])
    assert "needs a number as lam" in str(refused.value.__cause__)
    with pytest.raises(ValueError, match="cannot balance classes"):
        RMISVC(0.01, class_weight="balanced").partial_fit(bags, y, classes=[0, 1])
    with pytest.raises(ValueError, match="cannot calibrate"):
        RMISVC(0.01, calibrate=True).partial_fit(bags, y, classes=[0, 1])


def test_weights_of_a_stream_are_not_divided_by_their_mean():
    bags, y = concept_problem()
    models = [
        RMISVC(0.01, random_state=0).partial_fit(bags, y, classes=[0, 1], sample_weight=np.full(len(y), weight))
        for weight in (1.0, 100.0)
    ]
    assert not np.allclose(models[0].coef_, models[1].coef_)


def test_a_stream_is_averaged_over_all_calls():
    """Bag by bag, the answer is the mean of the iterates, the t-th with the weight t - 1/2."""
    bags, y = concept_problem(30)
    averaged = RMISVC(0.01, scaling=None, random_state=0)
    plain = RMISVC(0.01, scaling=None, average=False, random_state=0)
    iterates = []
    for i in range(30):
        averaged.partial_fit(bags[i : i + 1], y[i : i + 1], classes=[0, 1])
        plain.partial_fit(bags[i : i + 1], y[i : i + 1], classes=[0, 1])
        iterates.append(plain.coef_[0])
    np.testing.assert_allclose(averaged.coef_[0], np.average(iterates, axis=0, weights=np.arange(30) + 0.5))
    assert averaged.n_iter_ == averaged.n_steps_ == 30


def test_warm_start_goes_on():
    bags, y = concept_problem()
    model = RMISVC(0.01, epochs=5, warm_start=True, random_state=0).fit(bags, y)
    model.fit(bags, y)
    assert model.n_steps_ == 10 * len(bags)
    with pytest.raises(ValueError, match="warm_start needs the classes"):
        model.fit(bags, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match=r"classes of the last fit, \[0, 1\], but y holds \[4, 5\]"):
        model.fit(bags, y + 4)
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("weight", ["balanced", {0: 1.0, 1: 20.0}])
def test_class_weight_moves_the_border(weight):
    bags, y = concept_problem(100)
    rare = np.flatnonzero((y == 0) | (np.arange(100) % 10 == 0))
    hard = bags.with_instances(bags.instances * 0.2)[rare]
    plain = RMISVC(0.03, random_state=0).fit(hard, y[rare])
    weighted = RMISVC(0.03, class_weight=weight, random_state=0).fit(hard, y[rare])
    assert weighted.decision_function(hard).mean() > plain.decision_function(hard).mean()


def test_class_weights_by_name_with_many_classes():
    bags, y = concept_problem(60, n_classes=3)
    model = RMISVC(class_weight={0: 1, 1: 2, 2: 3}, random_state=0).fit(bags, y)
    assert model.score(bags, y) > 0.6


def test_heavy_bags_are_fitted_first():
    bags, y = concept_problem(40)
    flipped = y.copy()
    flipped[:10] = 1 - flipped[:10]
    weight = np.where(np.arange(40) < 10, 50.0, 1.0)
    model = RMISVC(random_state=0).fit(bags, flipped, sample_weight=weight)
    plain = RMISVC(random_state=0).fit(bags, flipped)
    assert model.score(bags[:10], flipped[:10]) > plain.score(bags[:10], flipped[:10])


def test_prior_is_added_to_the_scores_and_used_in_training():
    bags, y = concept_problem()
    prior = np.random.RandomState(0).randn(bags.n_instances) * 3
    with_prior = Bags(bags, prior=prior)
    model = RMISVC(random_state=0).fit(with_prior, y)
    np.testing.assert_allclose(model.instance_scores(with_prior), model.instance_scores(bags) + prior)
    assert not np.allclose(model.coef_, RMISVC(random_state=0).fit(bags, y).coef_)


def test_gaussian_kernel_solves_what_lines_cannot():
    """Positive bags hold an instance in the centre, negative ones only instances on a ring around it."""
    rng = np.random.RandomState(0)
    tables, y = [], np.arange(80) % 2
    for label in y:
        angle = rng.uniform(0, 2 * np.pi, 5)
        table = 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.3 * rng.randn(5, 2)
        if label:
            table[0] = 0.3 * rng.randn(2)
        tables.append(table)
    bags = Bags(tables)
    curved = RMISVC(kernel="rbf", scaling="standard", random_state=0).fit(bags[:40], y[:40])
    straight = RMISVC(kernel="linear", scaling="standard", random_state=0).fit(bags[:40], y[:40])
    assert curved.score(bags[40:], y[40:]) > 0.9 > straight.score(bags[40:], y[40:])
    newcomer = RMISVC(random_state=0).fit(bags[:40], y[:40])
    assert newcomer.kernel_ == "rbf"
    assert newcomer.score(bags[40:], y[40:]) > 0.9
    with pytest.raises(ValueError, match="kernel='linear'"):
        feature_contributions(newcomer, bags)


class TestAlgorithmicUnitTests:
    """Raff and Holt's question: does the method respect the assumption that it claims?"""

    def auc(self, make):
        train, test = make(random_state=0)
        model = RMISVC(random_state=0).fit(train.bags, train.y)
        return (
            roc_auc_score(test.y, model.decision_function(test.bags)),
            roc_auc_score(test.y_instance, model.instance_scores(test.bags)),
        )

    def test_single_concept(self):
        assert min(self.auc(make_single_concept_test)) > 0.99

    def test_presence_is_beyond_the_assumption_but_does_not_mislead(self):
        assert self.auc(make_presence_test)[0] > 0.5

    def test_threshold_is_beyond_the_assumption_but_does_not_mislead(self):
        bag, instance = self.auc(make_threshold_test)
        assert bag > 0.7
        assert instance > 0.95


@pytest.mark.parametrize("load", [load_musk1, load_musk2])
def test_no_arguments_fit_real_molecules(load):
    bags, y = load()
    assert RMISVC(random_state=0).fit(bags, y).score(bags, y) > 0.9


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_hard_data_stays_finite(scaling, solver, recwarn):
    """Bags of 1044 instances, values of 1e4, duplicates and constant columns."""
    rng = np.random.RandomState(0)
    tables = [1e4 * rng.randn(m, 3) for m in (1044, 1, 7, 300)]
    tables.append(np.repeat(tables[1], 50, axis=0))
    tables.append(np.zeros((2, 3)))
    for table in tables:
        table[:, 2] = 1e4
    bags, y = Bags(tables), np.array([1, 0, 1, 0, 1, 0])
    model = RMISVC(scaling=scaling, solver=solver, random_state=0).fit(bags, y)
    for values in (model.coef_, model.decision_function(bags), model.predict_proba(bags), model.instance_scores(bags)):
        assert np.isfinite(values).all()
    assert len(recwarn) == 0
