"""Scores that become log-odds on bags that were not seen; and what the methods promise beside."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score
from tests.problems import concept_problem

from bagwise import (
    APR,
    EMDD,
    MILES,
    MISVC,
    Bags,
    CitationKNN,
    DiverseDensity,
    MiFV,
    MIKernelSVC,
    MiSVC,
    MultiFoldSVC,
    SingleInstance,
)
from bagwise.benchmark.cross_validation import seeded
from bagwise.calibrated import folds_by_content
from bagwise.datasets import make_single_concept


def overlapping_problem(seed: int, share: float = 0.5):
    """A concept that is near the background: no method gets all bags right."""
    made = make_single_concept(120, 5, shift=2.5, bag_size=(2, 6), random_state=seed)
    keep = np.flatnonzero((made.y == 0) | (np.arange(120) < 240 * share))
    return made.bags[keep], made.y[keep]


class TestFolds:
    def test_spread_evenly_whatever_the_order(self):
        bags, y = concept_problem(43, n_classes=3)
        targets = y[:, None] == np.arange(3)
        fold = folds_by_content(bags, targets)
        for label in range(3):
            counts = np.bincount(fold[y == label], minlength=5)
            assert counts.max() - counts.min() <= 1
        order = np.random.RandomState(0).permutation(43)
        shuffled = Bags([bags[i][::-1] for i in order])
        np.testing.assert_array_equal(folds_by_content(shuffled, targets[order]), fold[order])

    def test_equal_bags_share_a_fold(self):
        bags, y = concept_problem(20)
        twice = Bags([*bags, *bags])
        fold = folds_by_content(twice, np.tile(y, 2)[:, None] == 1)
        np.testing.assert_array_equal(fold[:20], fold[20:])

    def test_none_where_a_class_has_one_bag(self):
        bags, _ = concept_problem(10)
        assert folds_by_content(bags, (np.arange(10) == 3)[:, None]) is None


@pytest.mark.parametrize("kind", [MISVC, MIKernelSVC, MiFV, CitationKNN, MILES, MultiFoldSVC])
def test_probabilities_are_better_than_the_base_rate_and_agree_with_predictions(kind):
    bags, y = overlapping_problem(0)
    unseen, truth = overlapping_problem(1)
    model = kind().fit(bags, y)
    proba = model.predict_proba(unseen)
    assert log_loss(truth, proba) < 0.68 < log_loss(truth, np.full(len(truth), 0.5))
    np.testing.assert_array_equal(model.predict(unseen), (proba[:, 1] > 0.5).astype(int))


@pytest.mark.parametrize("kind", [DiverseDensity, EMDD, SingleInstance])
def test_a_few_bags_far_out_do_not_make_a_guess_of_all(kind, data):
    """On Tiger some scores are a thousand times as far out as the others, and decided the calibration of all."""
    stored = np.load(data / "mil" / "tiger.npz")
    bags = Bags.from_groups(stored["X"].astype(np.float64), stored["bag"])
    folds = KFold(5, shuffle=True, random_state=0)
    assert cross_val_score(seeded(kind(), 0), bags, stored["y"], cv=folds).mean() >= 0.65


@pytest.mark.parametrize("kind", [MISVC, APR, MIKernelSVC, MiFV, MILES])
def test_without_calibration_a_margin_is_no_probability(kind):
    bags, y = concept_problem()
    model = seeded(kind(calibrate=False, scaling="standard"), 0).fit(bags, y)
    assert model.calibration_ is None
    assert not hasattr(model, "predict_proba")
    raw = model.decision_function(bags)
    calibrated = seeded(kind(scaling="standard"), 0).fit(bags, y)
    slope, offset = calibrated.calibration_[0]
    np.testing.assert_allclose(calibrated.decision_function(bags), slope * raw + offset, rtol=1e-6, atol=1e-6)


def test_votes_are_probabilities_of_their_own():
    bags, y = concept_problem()
    p = CitationKNN(calibrate=False).fit(bags, y).predict_proba(bags)[:, 1]
    assert p.min() < 0.1
    assert p.max() > 0.9


@pytest.mark.parametrize(
    "model", [MISVC(max_iter=1), MiSVC(max_iter=1), DiverseDensity(max_iter=1), EMDD(max_iter=1), MILES(max_iter=1)]
)
def test_iterations_that_end_too_early_warn(model):
    bags, y = concept_problem(60)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model.fit(bags, y)


@pytest.mark.parametrize("kind", [MISVC, MiSVC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_prior_is_added_to_scores_in_learning_and_in_predicting(kind, kernel):
    """Columns of noise: only the prior tells which instance is the concept, so the machine learns little else."""
    rng = np.random.RandomState(0)
    y = np.arange(60) % 2
    tables = [rng.randn(4, 3) for _ in y]
    prior = np.concatenate([np.where(np.arange(4) == 0, 4.0 * label, 0.0) for label in y])
    model = kind(kernel=kernel, calibrate=False, scaling="unit").fit(Bags(tables, prior=prior), y)
    assert model.score(Bags(tables, prior=prior), y) == 1
    without = Bags(tables)
    difference = model.instance_scores(Bags(tables, prior=prior)) - model.instance_scores(without)
    np.testing.assert_allclose(difference, prior, atol=1e-9)


def test_few_positive_bags_are_learned_from():
    """One in twenty-five: without balance the machine would give up."""
    train = make_single_concept(1000, 10, shift=5, random_state=0)
    keep = np.concatenate([np.flatnonzero(train.y == 0), np.flatnonzero(train.y)[:20]])
    test = make_single_concept(200, 10, shift=5, random_state=1)
    model = MISVC(random_state=0, calibrate=False).fit(train.bags[keep], train.y[keep])
    assert model.score(test.bags, test.y) >= 0.9


def test_class_weights_are_not_balanced_away():
    bags, y = overlapping_problem(0)
    unseen, _ = overlapping_problem(1)
    eager, shy = (
        MISVC(calibrate=False, class_weight={1: factor}).fit(bags, y).predict(unseen).mean() for factor in (8.0, 0.125)
    )
    assert eager > shy + 0.2


def test_scaling_is_chosen_by_what_helps():
    """Directions that all instances share make unit length harmful; a length of no meaning makes it helpful."""
    rng = np.random.RandomState(0)
    made = make_single_concept(120, 4, random_state=0)
    assert MISVC().fit(made.bags, made.y).scaling_ == "standard"
    stretched = made.bags.with_instances(made.bags.instances * np.exp(2 * rng.randn(made.bags.n_instances, 1)))
    assert MISVC().fit(stretched, made.y).scaling_ == "standard-unit"
    assert MISVC(scaling="unit").fit(made.bags, made.y).scaling_ == "unit"


def test_em_dd_finds_a_concept_among_a_hundred_columns():
    train = make_single_concept(200, 100, bag_size=(20, 20), random_state=0)
    test = make_single_concept(200, 100, bag_size=(20, 20), random_state=1)
    assert EMDD(random_state=0).fit(train.bags, train.y).score(test.bags, test.y) >= 0.95
