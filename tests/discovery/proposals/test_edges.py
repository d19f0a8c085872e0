"""Edge detectors, thinning and directions."""

import pickle

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")

from bagwise.discovery.proposals.edges import WEIGHTS, edge_detector, edge_normals, thin_edges


@pytest.fixture(scope="module")
def disc() -> np.ndarray:
    """A red disc of radius 40 on grey, slightly noisy."""
    y, x = np.mgrid[:160, :200]
    image = np.full((160, 200, 3), 110.0)
    image[np.hypot(y - 80, x - 100) < 40] = (200, 60, 40)
    return np.clip(image + np.random.default_rng(0).normal(0, 4, image.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", params=["network", "gradient"])
def detector(request):
    return edge_detector(request.param)


def test_rim_of_a_disc_stands_out(detector, disc):
    edges = detector(disc)
    assert edges.shape == disc.shape[:2]
    assert edges.dtype == np.float32
    assert edges.min() >= 0
    assert edges.max() <= 1
    y, x = np.mgrid[:160, :200]
    away = np.abs(np.hypot(y - 80, x - 100) - 40)
    assert edges[away < 1].mean() > 0.3
    assert edges[away > 12].mean() < 0.1
    crest = thin_edges(edges, edge_normals(edges)) > 0.5 * edges.max()
    assert away[crest].max() < 3


def test_same_answer_every_time_and_after_pickling(detector, disc):
    edges = detector(disc)
    np.testing.assert_array_equal(edges, detector(disc))
    np.testing.assert_array_equal(edges, pickle.loads(pickle.dumps(detector))(disc))
    np.testing.assert_array_equal(edges, edge_detector(detector.name)(np.asfortranarray(disc)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (17, 5), (33, 64)])
def test_any_size(detector, shape):
    image = np.random.default_rng(1).integers(0, 255, (*shape, 3), dtype=np.uint8)
    edges = detector(image)
    assert edges.shape == shape
    assert np.isfinite(edges).all()


def test_nothing_to_see(detector):
    assert detector(np.full((64, 80, 3), 128, np.uint8)).max() < 0.05


def test_shipped_network_is_small():
    assert WEIGHTS.stat().st_size < 2_000_000


def test_threads_do_not_change_the_shape_of_the_answer(disc):
    np.testing.assert_allclose(edge_detector("network", threads=2)(disc), edge_detector("network")(disc), atol=1e-4)


def test_unknown_detector_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"unknown edge detector 'canny'.*'network', 'gradient'"):
        edge_detector("canny")
    broken = tmp_path / "model.yml.gz"
    broken.write_bytes(b"not a forest")
    detector = edge_detector(broken)
    assert detector.name == "forest:model.yml.gz"
    with pytest.raises(ValueError, match=r"model\.yml\.gz is not a structured forest"):
        detector(np.zeros((32, 32, 3), np.uint8))


@pytest.mark.parametrize("degrees", [0, 30, 45, 90, 120, 179])
def test_normals_point_across_a_line(degrees):
    angle = np.deg2rad(degrees)
    y, x = np.mgrid[-30:31, -30:31]
    line = np.exp(-((x * np.cos(angle) + y * np.sin(angle)) ** 2) / 4).astype(np.float32)
    normals = edge_normals(line)
    assert normals.min() >= 0
    assert normals.max() < np.pi
    near = (np.abs(x * np.cos(angle) + y * np.sin(angle)) < 1) & (np.hypot(x, y) < 20)
    difference = np.abs(normals[near] - angle) % np.pi
    assert np.minimum(difference, np.pi - difference).max() < 0.06


def test_thinning_against_plain_interpolation():
    edges = gaussian_filter(np.random.default_rng(2).random((40, 50)), 1.5).astype(np.float32)
    normals = edge_normals(edges)
    y, x = np.mgrid[:40, :50].astype(float)
    expected = np.ones(edges.shape, bool)
    margin = np.full(edges.shape, np.inf)
    for sign in (-1, 1):
        beside = map_coordinates(
            edges, [y + sign * np.sin(normals), x + sign * np.cos(normals)], order=1, mode="nearest"
        )
        expected &= edges * 1.01 >= beside
        margin = np.minimum(margin, np.abs(edges * 1.01 - beside))
    # OpenCV interpolates in steps of 1/32 pixel: leave out what that could turn.
    clear = margin > 2e-3
    assert clear.mean() > 0.7
    np.testing.assert_array_equal((thin_edges(edges, normals) > 0)[clear], expected[clear])
