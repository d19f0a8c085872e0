"""The logistic fit against a general minimiser, and what holds at its limits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bagwise.calibration import (
    base_rate_log_loss,
    calibrate,
    calibrated,
    fit_logistic,
    fold_of_each_bag,
    log_loss,
    out_of_fold,
    shrunk,
    usual_range,
    without_tails,
)


def problem(n=200, seed=0):
    rng = np.random.RandomState(seed)
    target = rng.rand(n) < 0.3
    return 3 * target + 2 * rng.randn(n) - 5, target


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_minimum_for_platts_targets(weighted):
    scores, target = problem()
    weight = np.random.RandomState(1).uniform(0.5, 4, len(target)) if weighted else None
    share = np.ones(len(target)) if weight is None else weight / weight.mean()
    positive, negative = share[target].sum(), share[~target].sum()
    wanted = np.where(target, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(w):
        z = w[0] * scores + w[1]
        return np.sum(share * (np.logaddexp(0, z) - wanted * z))

    expected = minimize(loss, [0, 0], method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit_logistic(scores, target, weight), expected, rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_probabilities_do_not_depend_on_the_unit_of_the_scores(factor):
    scores, target = problem()
    plain, moved = fit_logistic(scores, target), fit_logistic(factor * scores + 7 * factor, target)
    np.testing.assert_allclose(
        moved[0] * (factor * scores + 7 * factor) + moved[1], plain[0] * scores + plain[1], rtol=1e-6
    )


def test_scores_that_tell_nothing_or_the_opposite_give_the_base_rate():
    scores, target = problem()
    for useless in (np.full(len(target), 3.0), -scores):
        slope, offset = fit_logistic(useless, target)
        log_odds = slope * useless + offset
        np.testing.assert_allclose(1 / (1 + np.exp(-log_odds)), target.mean(), atol=0.01)
        assert log_loss(log_odds, target) == pytest.approx(base_rate_log_loss(target), abs=1e-3)
    slope, _ = fit_logistic(-scores, target)
    assert slope > 0  # the order of the bags stays


def test_separated_classes_stay_finite():
    target = np.arange(20) < 5
    slope, offset = fit_logistic(np.where(target, 1e4, -1e4), target)
    p = 1 / (1 + np.exp(-(slope * 1e4 + offset)))
    assert p == pytest.approx(6 / 7, abs=1e-3)


def test_weights_count_by_their_ratio():
    scores, target = problem()
    weight = np.where(target, 3.0, 1.0)
    np.testing.assert_allclose(fit_logistic(scores, target, weight), fit_logistic(scores, target, 100 * weight))
    assert fit_logistic(scores, target, weight) != fit_logistic(scores, target)


def test_folds_spread_every_class():
    y = np.array([0] * 23 + [1] * 9 + [2] * 6)
    fold = fold_of_each_bag(y[:, None] == np.arange(3), 5)
    for label in range(3):
        counts = np.bincount(fold[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(fold)
    assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(fold, fold_of_each_bag(y[:, None] == np.arange(3), 5))


def test_few_bags_make_fewer_folds():
    assert fold_of_each_bag(np.array([[True], [True], [False], [False]])).max() == 1
    assert fold_of_each_bag(np.array([[True], [False]])) is None
    assert calibrate(lambda train, test: np.zeros((len(test), 1)), np.array([[True], [False]])) is None


def test_no_bag_is_scored_by_a_model_that_saw_it():
    seen = []

    def scores_of_fold(train, test):
        assert not set(train) & set(test)
        seen.extend(test)
        return np.repeat(test[:, None], 2, axis=1).astype(float)

    fold = fold_of_each_bag(np.arange(30)[:, None] % 2 == 0)
    np.testing.assert_array_equal(out_of_fold(scores_of_fold, fold)[:, 1], np.arange(30))
    assert sorted(seen) == list(range(30))


def test_calibration_improves_scores_that_are_too_sure():
    scores, target = problem(400)
    calibration = calibrate(lambda train, test: 50 * scores[test, None], target[:, None])
    assert calibration.shape == (1, 2)
    unseen, truth = problem(400, seed=5)
    sure = calibrated(50 * unseen[:, None], calibration)[:, 0]
    assert log_loss(sure, truth) < base_rate_log_loss(truth) < log_loss(50 * unseen, truth)


def test_what_chance_explains_is_taken_away():
    target = np.arange(180) < 95
    base = base_rate_log_loss(target)
    assert shrunk((2.0, 1.0), base - 0.001, target) == (pytest.approx(2e-6), pytest.approx(0.0, abs=1e-5))
    slope, offset = shrunk((2.0, 1.0), base - 0.01, target)  # a gain of 3.6, of which 1 is chance
    assert slope == pytest.approx(2 * (1 - 1 / 3.6))
    # Classes as uneven as chance makes them count as even.
    assert offset == pytest.approx((1 - 1 / 3.6) * (1 - np.log(95 / 85)))
    assert shrunk((2.0, 1.0), base - 0.01, target, n_compared=32)[0] == pytest.approx(2e-6)


def test_rare_classes_stay_rare():
    target = np.arange(300) < 12
    slope, offset = shrunk((2.0, -4.0), 0.01, target)
    assert slope == pytest.approx(2.0, rel=0.02)
    assert offset == pytest.approx(-4.0, rel=0.02)


def test_noise_gives_the_base_rate():
    rng = np.random.RandomState(0)
    losses = []
    for _ in range(50):
        target, unseen = rng.rand(100) < 0.3, rng.rand(1000) < 0.3
        curve = calibrate(lambda train, test: rng.randn(len(test), 1), target[:, None])
        losses.append(log_loss(calibrated(rng.randn(1000, 1), curve)[:, 0], unseen))
    assert np.mean(losses) < base_rate_log_loss(np.arange(10) < 3) + 0.01


def test_classes_made_uneven_by_weights_stay_so():
    target = np.arange(60) < 30
    weight = np.where(target, 1e-6, 1.0)
    _, offset = shrunk((2.0, -14.0), base_rate_log_loss(target, weight), target, weight)
    assert offset == pytest.approx(np.log(1e-6), rel=0.01)


def test_tails_keep_their_order_and_lose_their_weight():
    scores, target = problem()
    scores[np.flatnonzero(target)[0]] = -1e4  # positive all the same
    usual = usual_range(scores[:, None], np.ones(len(scores)))
    tamed = without_tails(scores[:, None], usual)[:, 0]
    np.testing.assert_array_equal(np.argsort(tamed), np.argsort(scores))
    near = np.abs(scores - np.median(scores)) < 10
    np.testing.assert_array_equal(tamed[near], scores[near])
    assert fit_logistic(scores, target)[0] < 0.01
    assert fit_logistic(tamed, target)[0] > 0.2


def test_scores_without_tails_stay_as_they_are():
    scores = np.random.RandomState(0).randn(200, 2)
    usual = usual_range(scores, np.ones(200))
    np.testing.assert_array_equal(usual, 0)
    np.testing.assert_array_equal(without_tails(1e6 * scores, usual), 1e6 * scores)


def test_the_usual_range_of_a_bag_of_weight_two_is_that_of_the_bag_twice():
    rng = np.random.RandomState(0)
    scores, weight = rng.standard_cauchy((50, 2)), rng.randint(0, 4, 50)
    weighted = usual_range(scores, weight.astype(float))
    np.testing.assert_array_equal(weighted, usual_range(np.repeat(scores, weight, axis=0), np.ones(weight.sum())))
    assert (weighted[:, 1] > 0).all()
