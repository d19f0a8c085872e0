"""Confidence without boxes: it rises with the score, and it tells sure answers from guesses."""

import numpy as np
import pytest

from bagwise.discovery.learning.confidence import Agreement, Calibration, Logistic, agreement_curve, place_log_odds


def test_logistic_rises_and_fits():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(1, 1, 400), rng.normal(-1, 1, 400)])
    outcomes = np.arange(800) < 400
    fitted = Logistic.fit(values, outcomes)
    # Two normal distributions one deviation from the middle: the log-odds are twice the value.
    assert fitted.slope == pytest.approx(2, rel=0.2)
    assert fitted.intercept == pytest.approx(0, abs=0.3)
    assert Logistic.fit(-values, outcomes)(np.array([-5.0, 5.0])).tolist() == [0.5, 0.5]  # never falls
    assert Logistic.fit(values, np.ones(800, bool)) == Logistic()
    assert Logistic.fit(np.zeros(4), outcomes[398:402]) == Logistic()
    assert Logistic.fit(np.zeros(0), np.zeros(0, bool)) == Logistic()


def test_place_log_odds_by_hand():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [50, 0, 60, 10]], float)
    scores = np.log([0.5, 0.3, 0.2])
    found = place_log_odds(boxes, scores + 100, np.array([0, 1, 2]))
    np.testing.assert_allclose(found, np.log([0.8 / 0.2, 0.8 / 0.2, 0.2 / 0.8]), rtol=1e-6)
    assert place_log_odds(boxes[:1], scores[:1], np.array([0]))[0] == 10  # the only place


def test_accuracy_is_the_root_of_agreement():
    """Two views, each right with a probability that rises with the odds, that agree only where both are right."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 2, 4000)
    accuracy = np.sqrt(1 / (1 + np.exp(-odds)))
    right = [rng.random(4000) < accuracy for _ in range(2)]
    # In one class or in two: the curve is common to all.
    halves = [Agreement(odds[part], (right[0] & right[1])[part]) for part in (slice(1000), slice(1000, None))]
    curve = agreement_curve(halves)
    assert curve == agreement_curve([Agreement(odds, right[0] & right[1])])
    fitted = Calibration.fit(odds, right[0]).agreeing(curve)
    assert np.abs(fitted.place(odds) - accuracy).mean() < 0.02
    assert fitted.place(odds).mean() == pytest.approx(right[0].mean(), abs=0.03)


def test_few_images_prove_little():
    """However sure the models, n images that all agree allow no more than (n + 1) / (n + 2)."""
    for n in (3, 9, 30):
        odds = np.linspace(5, 9, n)
        fitted = Calibration.fit(odds, np.ones(n, bool)).agreeing(agreement_curve([Agreement(odds, np.ones(n, bool))]))
        sure = fitted.place(np.array([10.0]))[0]
        assert sure <= (n + 1) / (n + 2)
        assert fitted.images == n
    assert Calibration().place(np.array([10.0]))[0] <= 0.5
    none = agreement_curve([Agreement(odds, np.zeros(n, bool))])
    assert fitted.agreeing(none).place(odds).max() < 0.5
    assert agreement_curve([Agreement(odds[:0], np.zeros(0, bool))]) == agreement_curve([]) == Logistic()
