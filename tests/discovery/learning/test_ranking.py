"""Evidence, figure and their agreement: against plain loops over pixels, and on images whose answer is known."""

import numpy as np
import pytest

from bagwise.discovery.features.store import Maps
from bagwise.discovery.learning.evidence import box_sums, inside_and_share, integral, soft_foreground, windows
from bagwise.discovery.learning.ranking import (
    Ranking,
    beside_components,
    figure_likeness,
    gate,
    on_plain_ground,
    tightened,
)
from bagwise.discovery.proposals.look import component_boxes

SIZE = (120, 80)


def random_boxes(n, seed=0):
    rng = np.random.default_rng(seed)
    x, y = (np.sort(rng.uniform(0, side, (n, 2)), axis=1) for side in SIZE)
    return np.column_stack([x[:, 0], y[:, 0], x[:, 1] + 0.5, y[:, 1] + 0.5]).clip(0, SIZE * 2)


def summed(picture, box):
    """Every cell times the share of it that the box covers."""
    rows, columns = picture.shape
    high, wide = SIZE[1] / rows, SIZE[0] / columns
    total = 0.0
    for r in range(rows):
        for c in range(columns):
            tall = max(0, min(box[3], (r + 1) * high) - max(box[1], r * high)) / high
            broad = max(0, min(box[2], (c + 1) * wide) - max(box[0], c * wide)) / wide
            total += picture[r, c] * tall * broad
    return total


def test_box_sums_by_counting():
    picture = np.random.default_rng(1).random((5, 7))
    boxes = np.vstack([random_boxes(30), [[0, 0, 120, 80], [119.9, 79.9, 120, 80]]])
    found = box_sums(integral(picture), boxes, SIZE)
    np.testing.assert_allclose(found, [summed(picture, box) for box in boxes], rtol=1e-9, atol=1e-9)


def test_inside_and_share_by_the_definition():
    soft = np.random.default_rng(2).random((4, 6))
    boxes = random_boxes(20)
    log_inside, log_share = inside_and_share(soft, boxes, SIZE)
    for n, box in enumerate(boxes):
        area = (box[2] - box[0]) * (box[3] - box[1]) / (20 * 20)
        x, y, w, h = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]
        window = np.clip([x - w, y - h, x + w, y + h], 0, SIZE * 2)
        np.testing.assert_allclose(windows(boxes, SIZE)[n], window)
        assert log_inside[n] == pytest.approx(np.log(summed(soft, box) / area + 1e-3))
        assert log_share[n] == pytest.approx(np.log(summed(soft, box) / summed(soft, window) + 1e-3))


def test_the_whole_is_preferred_to_its_parts_and_to_more():
    evidence = np.full((8, 12), -3.0)
    evidence[2:6, 3:9] = 3.0
    whole, part, more = [30, 20, 90, 60], [30, 20, 60, 40], [10, 10, 110, 70]
    boxes = np.array([whole, part, more], float)
    maps = Maps(np.zeros((8, 12, 2)), *(np.zeros((8, 12), np.uint8) for _ in range(2)))
    added, figure, weight, _ = Ranking().terms(maps, boxes, SIZE, evidence, trust=1.0)
    assert added.argmax() == 0
    assert (figure == 0).all()  # nothing in the map
    assert weight == 0


def square(rows=16, columns=24, at=np.s_[4:12, 6:18]):
    picture = np.zeros((rows, columns), np.uint8)
    picture[at] = 255
    return picture


def likeness(figure, boxes):
    return figure_likeness(beside_components(figure, boxes, SIZE), figure, boxes, SIZE)


def test_likeness_by_the_definition():
    figure = (np.random.default_rng(3).random((8, 12)) * 50).astype(np.uint8)  # no component: all below .2
    boxes = random_boxes(20)
    found = likeness(figure, boxes)
    for n, box in enumerate(boxes):
        held = summed(figure / 255, box)
        area = (box[2] - box[0]) * (box[3] - box[1]) / 100
        assert found[n] == pytest.approx(held / (area + figure.sum() / 255 - held))
    two = square(at=np.s_[2:6, 2:8]) | square(at=np.s_[8:14, 14:22])
    for found in component_boxes(two, SIZE):
        np.testing.assert_allclose(found, [[70, 40, 110, 70], [10, 10, 40, 30]])
    # A box around one of two components is as like the figure as can be.
    assert likeness(two, np.array([[10.0, 10, 40, 30]]))[0] == 1
    # Nearly all pixels of a ladle are in its bowl; a box around that is still less like it than one around the whole.
    ladle = square(at=np.s_[8:14, 2:8]) | square(at=np.s_[10:11, 8:22])
    whole, bowl = likeness(ladle, np.array([[10.0, 40, 110, 70], [10, 40, 40, 70]]))
    assert whole == 1
    assert bowl == pytest.approx(30 / 100)


def test_likeness_is_the_mean_over_levels():
    """A body that is clear with sails that are faint: the map says of both boxes that they are the figure."""
    mill = np.where(square(at=np.s_[2:14, 4:20]), 0.3 * 255, 0).astype(np.uint8)
    mill[8:14, 8:16] = 255
    mill[0, 0] = 0.25 * 255  # a speck, of the lowest level only
    whole, body = [20.0, 10, 100, 70], [40.0, 40, 80, 70]
    found = likeness(mill, np.array([whole, body]))
    share = (40 * 30) / (80 * 60)
    np.testing.assert_allclose(found, [(1 + share + share) / 3, (share + 1 + 1) / 3])


def test_boxes_are_tightened_to_the_components_that_agree():
    mill = np.where(square(at=np.s_[2:14, 4:20]), 0.3 * 255, 0).astype(np.uint8)
    mill[2:14, 4:16] = 0.5 * 255
    mill[8:14, 8:16] = 255  # too small for a box around the whole to agree with it
    box = np.array([[16.0, 6, 104, 74], [0, 0, 8, 8]])
    mean = (np.array([20, 10, 100, 70]) + np.array([20, 10, 80, 70])) / 2
    np.testing.assert_allclose(tightened(box, beside_components(mill, box, SIZE)), [(box[0] + mean) / 2, box[1]])


def test_the_gate_opens_where_evidence_and_figure_agree():
    figure = square()
    there, elsewhere = np.zeros((8, 12)), np.zeros((8, 12))
    there[2:6, 3:9] = 1.0
    elsewhere[6:, :3] = 1.0
    assert gate(there, figure) == 1
    assert gate(elsewhere, figure) == 0
    half = there + 2 * np.random.default_rng(0).normal(size=there.shape)
    correlation = np.corrcoef(half.ravel(), there.ravel())[0, 1]
    assert 0.1 < correlation < 0.5
    assert gate(half, figure) == pytest.approx((correlation - 0.1) / 0.4, abs=1e-6)
    assert gate(there, np.zeros_like(figure)) == gate(np.ones((8, 12)), figure) == 0


def test_little_trust_leaves_the_word_to_the_figure():
    maps = Maps(np.zeros((8, 12, 2)), np.zeros((16, 24), np.uint8), square())
    evidence = np.zeros((8, 12))
    evidence[6:, :3] = 5.0  # elsewhere
    boxes = np.array([[30.0, 20, 90, 60], [0, 60, 30, 80]])
    for trust, chosen in ((1.0, 1), (0.1, 0)):
        whole, figure, weight, _ = Ranking().terms(maps, boxes, SIZE, evidence, trust)
        assert weight == pytest.approx(1 - trust)
        assert (whole + weight * figure).argmax() == chosen
    whole, figure, _, shapes = Ranking.none().terms(maps, boxes, SIZE, evidence, 1.0)
    assert not whole.any()
    assert not figure.any()
    np.testing.assert_array_equal(shapes, boxes)


def test_tightened_half_way_where_they_agree():
    boxes = np.array([[20, 20, 90, 60], [0, 0, 30, 30]], np.float32)
    found = tightened(boxes, beside_components(square(), boxes, SIZE))
    np.testing.assert_allclose(found, [[25, 20, 90, 60], [0, 0, 30, 30]])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(tightened(boxes, beside_components(np.zeros((4, 6), np.uint8), boxes, SIZE)), boxes)


def test_on_plain_ground_a_box_is_its_outline():
    edges = np.zeros((16, 24), np.uint8)
    edges[[4, 11], 6:18] = edges[4:12, [6, 17]] = 255
    exact, boxes = [30, 20, 90, 60], np.array([[34, 22, 84, 60], [0, 0, 30, 30]], np.float32)
    found = on_plain_ground(boxes, edges, SIZE, 1.0)
    np.testing.assert_array_equal(found, [exact, boxes[1]])
    assert found.dtype == np.float32
    shapes = Ranking().terms(Maps(np.zeros((8, 12, 2)), edges, square()), boxes, SIZE, np.zeros((8, 12)), 1.0).shapes
    np.testing.assert_array_equal(shapes[0], exact)
    edges[:, 22] = 255
    np.testing.assert_array_equal(on_plain_ground(boxes, edges, SIZE, 1.0), boxes)


def test_on_plain_ground_a_part_is_a_part_only_of_classes_that_are_known():
    edges = np.zeros((16, 24), np.uint8)
    edges[[4, 11], 6:18] = edges[4:12, [6, 17]] = 255
    exact, part = [[30, 20, 90, 60]], np.array([[60, 20, 78, 60]], np.float32)  # three tenths of it
    np.testing.assert_array_equal(on_plain_ground(part, edges, SIZE, 1.0), part)
    np.testing.assert_array_equal(on_plain_ground(part, edges, SIZE, 0.5), exact)


def test_soft_foreground_has_its_middle_between_median_and_maximum():
    values = np.random.default_rng(0).normal(size=(5, 9)) * 3
    found = soft_foreground(values)
    middle = (np.median(values) + values.max()) / 2
    np.testing.assert_allclose(found, 1 / (1 + np.exp(middle - values)))
