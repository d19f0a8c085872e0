"""Arithmetic of boxes."""

import numpy as np

from bagwise._utils.boxes import areas, intersections, overlaps, suppress


def test_overlaps_by_counting_pixels():
    rng = np.random.default_rng(0)
    corners = np.sort(rng.integers(0, 20, (12, 2, 2)), axis=1)
    corners[:, 1] += 1
    boxes = corners.reshape(12, 4).astype(float)
    masks = np.zeros((12, 21, 21), bool)
    for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int)):
        mask[y1:y2, x1:x2] = True
    common = np.einsum("iyx,jyx->ij", masks.astype(int), masks.astype(int))
    total = (masks[:, None] | masks[None]).sum(axis=(2, 3))
    np.testing.assert_array_equal(areas(boxes), masks.sum(axis=(1, 2)))
    np.testing.assert_array_equal(intersections(boxes, boxes), common)
    np.testing.assert_allclose(overlaps(boxes, boxes), common / total)


def test_suppress():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 10], [0, 0, 10, 10], [50, 50, 60, 60]], float)
    scores = np.array([1.0, 3.0, 2.0, 1.0, -5.0])
    assert suppress(boxes, scores, 0.5, 10).tolist() == [1, 2, 4]
    assert suppress(boxes, scores, 0.5, 2).tolist() == [1, 2]
    assert suppress(boxes, scores, 0.95, 10).tolist() == [1, 2, 0, 4]  # equal boxes: one of them
    assert suppress(boxes, np.zeros(5), 0.5, 10).tolist() == [0, 2, 4]  # equal scores: the earlier row
    assert suppress(boxes[:0], scores[:0], 0.5, 10).tolist() == []
