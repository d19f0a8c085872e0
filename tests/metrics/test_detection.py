"""Detection rates, average precision and calibration against counts by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagwise.metrics.detection import average_precision, calibration, detected, detection_rate, first_hits
from bagwise.metrics.truth import TruthBox

RIGHT, WRONG = (0, 0, 10, 10), (50, 50, 60, 60)
TRUTH = {name: [TruthBox("a", RIGHT), TruthBox("b", WRONG)] for name in "ijkl"}


def test_first_hits_counts_boxes_until_one_is_right():
    ranked = {
        ("i", "a"): np.array([RIGHT, WRONG]),
        ("j", "a"): np.array([WRONG, (0, 0, 1, 1), RIGHT, RIGHT]),
        ("k", "a"): np.array([WRONG, WRONG]),
        ("i", "b near"): np.array([RIGHT, WRONG]),
    }
    groups = {"a": ("a", ["i", "j", "k", "l"]), "b near": ("b", ["i"])}
    needed = first_hits(ranked, TRUTH, groups)
    np.testing.assert_array_equal(needed["a"], [1, 3, np.inf, np.inf])
    np.testing.assert_array_equal(needed["b near"], [2])
    # One box: a quarter of a, nothing of b; two: b as well; three: half of a. The classes weigh the same.
    np.testing.assert_allclose(detection_rate(needed, [1, 2, 3, 400]), [0.125, 0.625, 0.75, 0.75])


def test_detection_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to evaluate"):
        detection_rate({"a": np.empty(0)})


def plain_average_precision(correct, confidence):
    order = sorted(range(len(correct)), key=lambda i: -confidence[i])
    found, total = 0, 0.0
    for place, i in enumerate(order, start=1):
        if correct[i]:
            found += 1
            total += found / place
    return total / found


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.randoms())
def test_average_precision_agrees_with_the_plain_one(correct, random):
    confidence = np.linspace(0, 1, len(correct))
    random.shuffle(confidence)
    if any(correct):
        assert average_precision(correct, confidence) == pytest.approx(plain_average_precision(correct, confidence))
    else:
        assert np.isnan(average_precision(correct, confidence))


def test_calibration_bins():
    measured = calibration([True, False, True, True], [0.05, 0.05, 0.95, 1.0])
    assert measured.count.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert measured.correct[[0, 9]].tolist() == [0.5, 1.0]
    np.testing.assert_allclose(measured.confidence[[0, 9]], [0.05, 0.975])
    assert np.isnan(measured.confidence[4])
    assert measured.error == pytest.approx((2 * 0.45 + 2 * 0.025) / 4)
    assert measured.brier == pytest.approx((0.95**2 + 0.05**2 + 0.05**2 + 0) / 4)


def test_confidences_that_are_true_have_a_small_error():
    random = np.random.default_rng(0)
    confidence = random.random(20_000)
    honest = calibration(random.random(20_000) < confidence, confidence)
    boastful = calibration(random.random(20_000) < confidence / 2, confidence)
    assert honest.error < 0.02
    assert boastful.error == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(("correct", "confidence"), [([], []), ([True], [0.5, 0.5]), ([True], [1.5]), ([1], [np.nan])])
def test_calibration_refuses_what_is_no_confidence(correct, confidence):
    with pytest.raises(ValueError, match="confidence"):
        calibration(correct, confidence)


def box_at(x):
    return np.array([x, 0, x + 10, 10], float)


def test_average_precision_by_hand():
    """Two objects and a difficult one; boxes right, double, difficult, wrong, right: precisions 1, 1/2, 1/3, 1/2."""
    truth = {
        "a": [TruthBox("cat", tuple(box_at(0))), TruthBox("cat", tuple(box_at(50)), difficult=True)],
        "b": [TruthBox("cat", tuple(box_at(20))), TruthBox("dog", tuple(box_at(80)))],
    }
    found = [
        ("b", box_at(21), 0.1),
        ("a", box_at(0), 0.9),
        ("a", box_at(1), 0.8),
        ("a", box_at(50), 0.7),
        ("b", box_at(80), 0.3),
    ]
    result = detected(found, truth, "cat")
    assert (result.objects, result.boxes) == (2, 5)
    assert result.all_points == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    assert result.eleven_points == pytest.approx((6 * 1 + 5 * 0.5) / 11)
    assert detected([], truth, "cat").all_points == 0
    assert np.isnan(detected(found, truth, "horse").all_points)


def test_average_precision_agrees_with_pycocotools():
    """Of one class at IoU .5, on random boxes: COCO takes 101 points of the same curve."""
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    rng = np.random.default_rng(0)
    truth, found = {}, []
    data = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    results = []
    for number in range(40):
        corners = rng.uniform(0, 80, (3, 2))
        objects = np.hstack([corners, corners + 20])
        truth[str(number)] = [TruthBox("cat", tuple(box)) for box in objects]
        data["images"].append({"id": number, "width": 100, "height": 100})
        for box in objects:
            size = {"bbox": [box[0], box[1], 20, 20], "area": 400, "iscrowd": 0}
            data["annotations"].append(
                {"id": len(data["annotations"]) + 1, "image_id": number, "category_id": 1, **size}
            )
        for box in objects + rng.normal(0, 3, (3, 1)):
            sure = float(rng.random())
            found.append((str(number), box, sure))
            wide = [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]
            results.append({"image_id": number, "category_id": 1, "bbox": wide, "score": sure})
    known = coco.COCO()
    known.dataset = data
    known.createIndex()
    judge = evaluation.COCOeval(known, known.loadRes(results), "bbox")
    judge.params.iouThrs = np.array([0.5])
    judge.evaluate()
    judge.accumulate()
    theirs = judge.eval["precision"][0, :, 0, 0, -1].mean()
    assert detected(found, truth, "cat").all_points == pytest.approx(theirs, abs=0.02)
