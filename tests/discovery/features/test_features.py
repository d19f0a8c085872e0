"""Features of boxes: averages with partial cells, their reduction, and crops."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("PIL")
from onnx import TensorProto, helper, numpy_helper

from bagwise.discovery.features.backbones import open_backbone
from bagwise.discovery.features.reduction import Reduction, principal_axes
from bagwise.discovery.features.regions import (
    CONTRAST,
    MOST_CELLS,
    CropFeatures,
    RoiFeatures,
    box_averages,
    quarter_averages,
    surroundings,
)


@pytest.fixture
def network(tmp_path):
    """Two outputs of one small network: a map at stride 8, and one vector."""
    rng = np.random.default_rng(0)
    kernel = numpy_helper.from_array(rng.normal(size=(6, 3, 8, 8)).astype(np.float32) / 10, "kernel")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "kernel"], ["map"], kernel_shape=[8, 8], strides=[8, 8]),
            helper.make_node("GlobalAveragePool", ["map"], ["vector"]),
        ],
        "network",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["n", 6, 1, 1])],
        [kernel],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    (tmp_path / "network.onnx").write_bytes(model.SerializeToString())
    return lambda layer: open_backbone(tmp_path / "network.onnx", layer)


def random_boxes(n, width, height, seed=0):
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.uniform(0, width, (n, 2)), axis=1), np.sort(rng.uniform(0, height, (n, 2)), axis=1)
    return np.column_stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]]).astype(np.float32)


def quadrant_weights(boxes, size, cells):
    """How much each cell weighs in each quarter of each box, (4, n, cells): averages of maps with a single one."""
    return quarter_averages(np.eye(cells[0] * cells[1], dtype=np.float32), size, cells, boxes).transpose(1, 0, 2)


def box_weights(boxes, size, cells):
    return box_averages(np.eye(cells[0] * cells[1], dtype=np.float32), size, cells, boxes)


def test_averages_are_those_of_plain_numpy():
    rng = np.random.default_rng(0)
    grid = rng.normal(size=(5, 7, 33)).astype(np.float32)
    boxes, (width, height) = random_boxes(20, 90, 60), (90, 60)
    shares = []
    for low, high, length, count in ((1, 3, height, 5), (0, 2, width, 7)):
        edges = np.linspace(0, length, count + 1)
        inside = np.minimum(boxes[:, high, None], edges[1:]) - np.maximum(boxes[:, low, None], edges[:-1])
        shares.append(inside.clip(0) / inside.clip(0).sum(axis=1, keepdims=True))
    expected = np.einsum("nr,nc,rck->nk", *shares, grid)
    found = box_averages(grid.reshape(35, 33), (width, height), (5, 7), boxes)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_weights_by_counting():
    """Each weight is the share of the quarter's area in the cell: count points of a fine raster."""
    width, height, rows, columns = 60, 40, 4, 5
    boxes = np.array([[3, 5, 50, 33], [0, 0, 60, 40], [20.5, 10.25, 22, 12]], np.float32)
    weights = quadrant_weights(boxes, (width, height), (rows, columns))
    assert weights.shape == (4, 3, 20)
    points = (np.arange(400) + 0.5) / 400
    for n, (x1, y1, x2, y2) in enumerate(boxes):
        for quarter in range(4):
            left, top = x1 + (x2 - x1) / 2 * (quarter % 2), y1 + (y2 - y1) / 2 * (quarter // 2)
            column = ((left + points * (x2 - x1) / 2) / width * columns).astype(int).clip(0, columns - 1)
            row = ((top + points * (y2 - y1) / 2) / height * rows).astype(int).clip(0, rows - 1)
            counted = np.outer(np.bincount(row, minlength=rows), np.bincount(column, minlength=columns)) / 400**2
            np.testing.assert_allclose(weights[quarter, n], counted.ravel(), atol=0.01)


def test_weights_sum_to_one_for_the_tiniest_boxes():
    boxes = np.array([[0, 0, 0.01, 0.01], [99.9, 49.9, 100, 50]], np.float32)
    weights = quadrant_weights(boxes, (100, 50), (3, 7))
    np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=1e-5)


def test_ring_by_counting():
    """The window around a box, weighted by its area, less the box itself is the ring: count points of a raster."""
    width, height, rows, columns = 60, 40, 4, 5
    boxes = np.array([[20, 10, 40, 30], [0, 0, 30, 40], [0, 0, 60, 40]], np.float32)
    outer, area = surroundings(boxes, (width, height))
    assert area[2] == 1
    around, inside = (box_weights(each, (width, height), (rows, columns)) for each in (outer, boxes))
    x, y = (np.arange(1200) + 0.5) / 1200 * width, (np.arange(800) + 0.5) / 800 * height
    for n, (x1, y1, x2, y2) in enumerate(boxes[:2]):
        dx, dy = (x2 - x1) / 4, (y2 - y1) / 4
        window = ((y >= y1 - dy) & (y < y2 + dy))[:, None] & ((x >= x1 - dx) & (x < x2 + dx))
        inner = ((y >= y1) & (y < y2))[:, None] & ((x >= x1) & (x < x2))
        counted = (window & ~inner).reshape(rows, 200, columns, 240).sum(axis=(1, 3)).ravel()
        ring = (area[n] * around[n] - inside[n]) / (area[n] - 1)
        np.testing.assert_allclose(ring, counted / counted.sum(), atol=1e-5)


def test_roi_averages(network):
    features = RoiFeatures(network("map"), short_sides=(64,))
    image = np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    (map,) = features.prepare(image, random_boxes(1, 96, 64))
    rows, columns = map.shape[1:]
    boxes = np.array([[0, 0, 96, 64], [0, 0, 96 / columns, 64 / rows]], np.float32)
    whole, cell = features.averages([map], (96, 64), boxes, np.array([0, 1]))
    np.testing.assert_allclose(whole.mean(axis=0), map.mean(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cell, np.tile(map[:, 0, 0], (4, 1)), rtol=1e-4, atol=1e-5)


def test_vectors_by_the_definition(network):
    """z-scored channels, whole box beside its quarters, principal components, unit length, less the surroundings."""
    features = RoiFeatures(network("map"), short_sides=(64,))
    image = np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    boxes = random_boxes(40, 96, 64)
    (map,) = features.prepare(image, boxes)
    with pytest.raises(ValueError, match="no reduction yet"):
        features.finish([map], (96, 64), boxes)
    quarters = features.averages([map], (96, 64), boxes, np.arange(40))
    features.reduction = Reduction.fit(quarters, n_components=8)

    rows = quarters.reshape(-1, 6).astype(float)
    outer, area = surroundings(boxes, (96, 64))
    seen, cells = area > 1.02, map.reshape(6, -1).T
    around, inside = (box_weights(each, (96, 64), map.shape[1:]) @ cells for each in (outer, boxes))
    ring = (area[:, None] * around - inside) / np.where(seen, area - 1, 1)[:, None]
    z, around = ((part - rows.mean(axis=0)) / rows.std(axis=0) for part in (quarters, ring))
    z = np.concatenate([z.mean(axis=1, keepdims=True), z], axis=1).reshape(40, -1)
    around = np.tile(around, 5) - z.mean(axis=0)
    z = z - z.mean(axis=0)
    # The axes' signs are arbitrary: products of vectors are not.
    axes = np.linalg.svd(z, full_matrices=False)[2][:8]
    z, around = z @ axes.T, around @ axes.T
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    expected = z - CONTRAST * around * seen[:, None]
    found, kept = features.finish([map], (96, 64), boxes)
    assert found.shape == (40, 8)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=5e-3)
    narrow = features.reduction.narrow(cells)
    np.testing.assert_allclose(kept.reshape(-1, 8), features.reduction.finish_alike(narrow), atol=1e-4)


def test_each_box_from_the_pass_that_suits_it(network):
    """A box that is 224 pixels large in one pass has its features from that pass alone."""
    features = RoiFeatures(network("map"), short_sides=(448, 224), contrast=0.0)
    image = np.random.default_rng(1).integers(0, 256, (224, 320, 3), dtype=np.uint8)
    boxes = np.array([[0, 0, 224, 224], [0, 0, 112, 112], [100, 50, 300, 224], [5, 5, 60, 60]], np.float32)
    maps = features.prepare(image, boxes)
    assert [each.shape[1:] for each in maps] == [(56, 80), (28, 40)]
    assert features.fitting(boxes, (320, 224), [(56, 80), (28, 40)]).tolist() == [1, 0, 1, 0]
    quarters = features.averages(maps, (320, 224), random_boxes(60, 320, 224), np.arange(60))
    features.reduction = Reduction.fit(quarters, n_components=8)
    both, cells = features.finish(maps, (320, 224), boxes)
    for number in (0, 1):
        one = RoiFeatures(features.backbone, features.reduction, contrast=0.0, short_sides=(448, 224)[number:][:1])
        alone, _ = one.finish(maps[number : number + 1], (320, 224), boxes)
        mine = [1, 3] if number == 0 else [0, 2]
        np.testing.assert_allclose(both[mine], alone[mine], atol=1e-5)
        assert not np.allclose(both, alone, atol=1e-2)
    assert cells.shape[0] * cells.shape[1] <= MOST_CELLS


def test_reduction_survives_disk_and_small_samples(tmp_path):
    sample = np.random.default_rng(0).normal(size=(3, 4, 10)).astype(np.float32)
    reduction = Reduction.fit(sample, n_components=100)
    assert reduction.columns.shape[2] == 3  # never more columns than boxes
    narrow = reduction.narrow(sample)
    alike = np.repeat(narrow[:, :1], 4, axis=1)
    np.testing.assert_allclose(reduction.finish_alike(narrow[:, 0]), reduction.finish(alike), atol=1e-4)
    reduction.save(tmp_path / "r.npz")
    again = Reduction.load(tmp_path / "r.npz")
    np.testing.assert_array_equal(again.finish(again.narrow(sample)), reduction.finish(narrow))
    (tmp_path / "r.npz").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"r\.npz is damaged"):
        Reduction.load(tmp_path / "r.npz")


def test_principal_axes_have_fixed_signs():
    rows = np.random.default_rng(0).normal(size=(50, 6))
    rows -= rows.mean(axis=0)
    axes = principal_axes(rows, 4)
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(axes, principal_axes(-rows, 4))
    variances = (rows @ axes).var(axis=0)
    assert (np.diff(variances) <= 1e-12).all()


def test_crops(network):
    image = np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    boxes = np.array([[0, 0, 96, 64], [10, 10, 10.5, 10.5], [5.5, 3, 40, 60]], np.float32)
    features = CropFeatures(network("vector"))
    (vectors,) = features.prepare(image, boxes)
    assert vectors.shape == (3, 6)
    one = image[10:11, 10:11].repeat(224, 0).repeat(224, 1)
    np.testing.assert_allclose(vectors[1], network("vector").run(one[None])[0], rtol=1e-4, atol=1e-5)
    (maps,) = CropFeatures(network("map")).prepare(image, boxes)
    np.testing.assert_allclose(maps, vectors, rtol=1e-3, atol=1e-4)
    plain, cells = features.finish([vectors], (96, 64), boxes)
    assert cells.shape == (0, 0, 6)
    np.testing.assert_allclose(plain, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), rtol=1e-5)
    many = random_boxes(70, 96, 64)
    prepared = features.prepare(image, many)
    features.reduction = Reduction.fit(features.averages(prepared, (96, 64), many, np.arange(70)), 4)
    reduced, _ = features.finish(prepared, (96, 64), many)
    assert reduced.shape == (70, 4)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1, rtol=1e-5)


def test_a_vector_layer_needs_crops(network):
    with pytest.raises(ValueError, match="--crop"):
        RoiFeatures(network("vector")).prepare(np.zeros((64, 96, 3), np.uint8), random_boxes(2, 96, 64))
