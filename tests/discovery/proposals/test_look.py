"""One look at an image: boxes of Edge Boxes and of the figure's components, and small maps of what was seen."""

import heapq

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")

from bagwise._utils.boxes import overlaps
from bagwise.discovery.proposals.boxes import edge_boxes
from bagwise.discovery.proposals.edges import edge_detector
from bagwise.discovery.proposals.figure import figure_map
from bagwise.discovery.proposals.look import PICTURE_SIDE, Looker, component_boxes, join_components, small_picture
from bagwise.discovery.proposals.outlines import only_outline, walls, with_outlines


@pytest.fixture(scope="module")
def disc():
    """A red disc left of the middle of a grey image with a little noise."""
    y, x = np.mgrid[:240, :320]
    image = np.random.default_rng(0).integers(150, 160, (240, 320, 3), dtype=np.uint8)
    image[(x - 120) ** 2 + (y - 130) ** 2 < 60**2] = (200, 30, 30)
    return image


@pytest.mark.parametrize("edges", ["network", "gradient"])
def test_a_look_is_what_its_parts_see(disc, edges):
    detector = edge_detector(edges)
    plain, worth = edge_boxes(disc, detector, min_score=0.01, max_boxes=100)
    look = Looker(detector, figure=True, min_score=0.01, max_boxes=100)(disc)
    np.testing.assert_array_equal(look.boxes[: len(plain)], plain)
    np.testing.assert_array_equal(look.objectness[: len(plain)], worth)
    assert look.edges.shape == look.figure.shape == (PICTURE_SIDE, PICTURE_SIDE * 4 // 3)
    np.testing.assert_array_equal(look.figure, with_outlines(small_picture(figure_map(disc)), look.edges))
    for found in component_boxes(look.figure, (320, 240)):  # the largest component of a level is among the boxes
        assert overlaps(found[:1], look.boxes.astype(float)).max() >= 0.9
    off = Looker(detector, figure=False, min_score=0.01, max_boxes=100)(disc)
    np.testing.assert_array_equal(off.boxes, plain)
    assert not off.figure.any()
    np.testing.assert_array_equal(off.edges, look.edges)


def test_components_join_as_one_of_the_best_tenth():
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [0, 20, 10, 30]], np.float32)
    objectness = np.array([0.1, 0.2, 0.3], np.float32)
    there, new = [0, 0, 10, 10.5], [5, 5, 40, 40]
    joined, worth = join_components(boxes, objectness, np.array([there, new], np.float32))
    np.testing.assert_array_equal(joined, [*boxes, new])
    np.testing.assert_allclose(worth, [0.1, 0.2, 0.3, np.quantile(objectness, 0.9)])
    assert worth.dtype == np.float32
    same, _ = join_components(boxes, objectness, np.empty((0, 4), np.float32))
    np.testing.assert_array_equal(same, boxes)


def test_an_image_too_small_to_look_at():
    look = Looker(edge_detector("network"), figure=True, min_score=0.01, max_boxes=10)(np.zeros((9, 30, 3), np.uint8))
    np.testing.assert_array_equal(look.boxes, [[0, 0, 30, 9]])
    assert not look.figure.any()


def test_walls_by_trying_every_path():
    """The twin: Dijkstra's search with the strongest edge so far for a distance."""
    edges = np.random.default_rng(0).random((9, 12))
    least = np.full(edges.shape, np.inf)
    waiting = []
    for r in range(9):
        for c in range(12):
            if r in (0, 8) or c in (0, 11):
                heapq.heappush(waiting, (edges[r, c], r, c))
    while waiting:
        height, r, c = heapq.heappop(waiting)
        if height >= least[r, c]:
            continue
        least[r, c] = height
        for y, x in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if 0 <= y < 9 and 0 <= x < 12:
                heapq.heappush(waiting, (max(height, edges[y, x]), y, x))
    np.testing.assert_array_equal(walls(edges), least)


def ring(edges, top, left, bottom, right):
    edges[top, left : right + 1] = edges[bottom, left : right + 1] = 200
    edges[top : bottom + 1, left] = edges[top : bottom + 1, right] = 200


def test_outlines_count_on_plain_ground_alone():
    edges, figure = np.zeros((40, 60), np.uint8), np.zeros((40, 60), np.uint8)
    figure[12:18, 12:18] = 180
    ring(edges, 10, 10, 25, 40)
    found = with_outlines(figure, edges)
    assert (found[10:26, 10:41] == round(255 * 0.9)).all()
    assert (found[:10] == 0).all()
    gap = edges.copy()
    gap[10, 20:24] = 0  # an open outline holds nothing but itself
    assert with_outlines(figure, gap)[20, 30] == 0
    busy = edges.copy()
    busy[30, :] = 200  # a horizon: the ground is not plain
    np.testing.assert_array_equal(with_outlines(figure, busy), figure)
    np.testing.assert_array_equal(with_outlines(figure, np.zeros_like(edges)), figure)


def test_a_faint_end_belongs_to_the_thing_where_it_is_closed():
    edges = np.zeros((60, 90), np.uint8)
    ring(edges, 20, 20, 40, 45)
    faint = round(255 * 0.2)
    edges[25, 46:65] = edges[35, 46:65] = edges[25:36, 65] = faint  # a pale end of the thing
    np.testing.assert_array_equal(only_outline(edges), [20, 20, 65, 41])  # without the rim of a blurred edge
    assert with_outlines(np.zeros_like(edges), edges)[30, 55]
    line = edges.copy()
    line[35, 46:65] = 0  # an open line is no end: it may be anything
    np.testing.assert_array_equal(only_outline(line), [20, 20, 46, 41])
    apart = np.zeros_like(edges)
    ring(apart, 20, 20, 40, 45)
    apart[50:56, 5:25] = faint  # a shadow somewhere else is nothing
    np.testing.assert_array_equal(only_outline(apart), [20, 20, 46, 41])
    assert not with_outlines(np.zeros_like(edges), apart)[50:56, 5:25].any()
    framed = edges.copy()
    framed[25, 46:] = framed[35, 46:] = faint  # a pale band that goes on beyond the frame is ground
    framed[25:36, 65] = 0
    np.testing.assert_array_equal(only_outline(framed), [20, 20, 46, 41])


def test_the_only_outline_is_the_one_thing_to_be_seen():
    edges = np.zeros((40, 60), np.uint8)
    assert only_outline(edges) is None
    ring(edges, 10, 10, 25, 40)
    np.testing.assert_array_equal(only_outline(edges), [10, 10, 41, 26])
    ring(edges, 30, 45, 32, 47)  # a crumb: less than a tenth of the edges
    np.testing.assert_array_equal(only_outline(edges), [10, 10, 41, 26])
    two = edges.copy()
    ring(two, 30, 10, 35, 40)  # plain ground all the same, but not one thing
    assert with_outlines(np.zeros_like(edges), two)[12, 12]
    assert only_outline(two) is None
    edges[:, 55] = 200  # something else
    assert only_outline(edges) is None
