"""Features of boxes: averages with partial cells, their reduction, and crops."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("PIL")
from onnx import TensorProto, helper, numpy_helper

from bagwise.discovery.backbones import open_backbone
from bagwise.discovery.features import CropFeatures, RoiFeatures, quadrant_weights
from bagwise.discovery.reduction import Reduction, principal_axes


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


def test_roi_averages(network):
    features = RoiFeatures(network("map"))
    image = np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    map = features.map(image)
    whole = features.raw(image, np.array([[0, 0, 96, 64]], np.float32))
    np.testing.assert_allclose(whole[0].mean(axis=0), map.mean(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    rows, columns = map.shape[1:]
    cell = np.array([[0, 0, 96 / columns, 64 / rows]], np.float32)
    np.testing.assert_allclose(features.raw(image, cell)[0], np.tile(map[:, 0, 0], (4, 1)), rtol=1e-4, atol=1e-5)


def test_reduction_before_pooling_equals_reduction_after(network):
    plain = RoiFeatures(network("map"))
    image = np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    boxes = random_boxes(40, 96, 64)
    raw = plain.raw(image, boxes)
    reduction = Reduction.fit(raw, n_components=8)
    # By the definition: z-score channels, whole box beside its quarters, principal components, unit length.
    rows = raw.reshape(-1, 6).astype(float)
    z = (raw - rows.mean(axis=0)) / rows.std(axis=0)
    z = np.concatenate([z.mean(axis=1, keepdims=True), z], axis=1).reshape(40, -1)
    z -= z.mean(axis=0)
    expected = z @ np.linalg.svd(z, full_matrices=False)[2][:8].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = RoiFeatures(plain.backbone, reduction).extract(image, boxes)
    assert found.shape == (40, 8)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=2e-3)
    np.testing.assert_allclose(reduction.finish(reduction.narrow(raw)), found, atol=1e-4)


def test_reduction_survives_disk_and_small_samples(tmp_path):
    sample = np.random.default_rng(0).normal(size=(3, 4, 10)).astype(np.float32)
    reduction = Reduction.fit(sample, n_components=100)
    assert reduction.columns.shape[2] == 3  # never more columns than boxes
    reduction.save(tmp_path / "r.npz")
    again = Reduction.load(tmp_path / "r.npz")
    narrow = reduction.narrow(sample)
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
    vectors = features.extract(image, boxes)
    assert vectors.shape == (3, 6)
    one = image[10:11, 10:11].repeat(224, 0).repeat(224, 1)
    np.testing.assert_allclose(vectors[1], network("vector").run(one[None])[0], rtol=1e-4, atol=1e-5)
    maps = CropFeatures(network("map")).extract(image, boxes)
    np.testing.assert_allclose(maps, vectors, rtol=1e-3, atol=1e-4)
    many = random_boxes(70, 96, 64)
    reduction = Reduction.fit(features.raw(image, many), 4)
    reduced = CropFeatures(network("vector"), reduction).extract(image, many)
    assert reduced.shape == (70, 4)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1, rtol=1e-5)


def test_a_vector_layer_needs_crops(network):
    image = np.zeros((64, 96, 3), np.uint8)
    with pytest.raises(ValueError, match="--crop"):
        RoiFeatures(network("vector")).raw(image, random_boxes(2, 96, 64))
