"""Confidence without boxes: it rises with the score, and it tells sure answers from guesses."""

import numpy as np
import pytest

from bagwise import RMISVC, Bags
from bagwise.discovery.calibration import Calibration, Logistic, calibrate, place_log_odds


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


@pytest.fixture
def half_clear():
    """Sixty positive bags of boxes far apart; the odd ones have a clear key box, the even ones nothing to see."""
    rng = np.random.default_rng(0)
    grid = np.array([[20 * k, 0, 20 * k + 10, 10] for k in range(10)], np.float32)
    parts = [rng.normal(size=(10, 6)) / 3 for _ in range(120)]
    for number in range(1, 60, 2):
        parts[number][rng.integers(10), 0] += 3
    return Bags(parts), np.arange(120) < 60, [grid] * 60


def test_clear_answers_are_surer(half_clear):
    bags, y, boxes = half_clear

    def fit(part, labels):
        return RMISVC(0.03, max_steps=2000, scaling=None, random_state=0).fit(part, labels)

    calibration = calibrate(bags, y, boxes, fit)
    assert calibrate(bags, y, boxes, fit) == calibration
    scores = bags.split(fit(bags, y).instance_scores(bags))
    sure = [calibration.place(place_log_odds(boxes[0], part, np.array([part.argmax()])))[0] for part in scores[:60]]
    assert np.mean(sure[1::2]) > np.mean(sure[::2]) + 0.2
    best = np.array([part.max() for part in scores])
    shown = calibration.shown(best)
    assert shown[1:60:2].mean() > shown[60:].mean() + 0.3


def test_too_few_photographs_to_calibrate(half_clear):
    bags, y, boxes = half_clear
    few = np.r_[0:2, 60:100]
    assert calibrate(bags[few], y[few], boxes[:2], lambda part, labels: None) == Calibration()
