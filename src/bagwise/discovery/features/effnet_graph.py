"""EfficientNet-Lite0 as an ONNX graph, its batch norms folded into the convolutions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bagwise._utils.optional import require

# (repeats, kernel, stride of the first, expansion, output channels)
BLOCKS = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM_CHANNELS = 32
BATCH_NORM_EPSILON = 1e-3
OPSET = 13


def same_padding(kernel: int, stride: int) -> list[int]:
    """TensorFlow's SAME padding (top, left, bottom, right) for sides that are multiples of the stride."""
    total = kernel - stride
    return [total // 2, total // 2, total - total // 2, total - total // 2]


def fold_batch_norm(weights: Mapping[str, np.ndarray], conv: str, norm: str) -> tuple[np.ndarray, np.ndarray]:
    """Kernel and bias of the one convolution that equals a convolution followed by its batch norm."""
    scale = weights[f"{norm}.weight"] / np.sqrt(weights[f"{norm}.running_var"] + BATCH_NORM_EPSILON)
    kernel = weights[f"{conv}.weight"] * scale[:, None, None, None]
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return kernel.astype(np.float32), bias.astype(np.float32)


class _Graph:
    """Nodes and weights as they are added; each method returns the name of its output tensor."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.onnx = require("onnx", extra="vision")
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def conv(self, x: str, output: str, conv: str, norm: str, *, stride: int = 1, relu6: bool = True) -> str:
        kernel, bias = fold_batch_norm(self.weights, conv, norm)
        inputs = [x, self.constant(f"{conv}.kernel", kernel), self.constant(f"{conv}.bias", bias)]
        side = kernel.shape[2]
        depthwise = kernel.shape[0] if conv.endswith("_depthwise_conv") else 1
        x = self.node(
            "Conv",
            inputs,
            f"{output}.linear" if relu6 else output,
            kernel_shape=[side, side],
            strides=[stride, stride],
            pads=same_padding(side, stride),
            group=depthwise,
        )
        return self.node("Clip", [x, "zero", "six"], output) if relu6 else x

    def block(self, x: str, index: int, stride: int, expansion: int, residual: bool) -> str:
        """Inverted residual: 1x1 expansion, depthwise convolution, 1x1 projection without activation."""
        name, weights = f"block_{index}", f"_blocks.{index}"
        y = x
        if expansion > 1:
            y = self.conv(y, f"{name}.expanded", f"{weights}._expand_conv", f"{weights}._bn0")
        y = self.conv(y, f"{name}.filtered", f"{weights}._depthwise_conv", f"{weights}._bn1", stride=stride)
        projected = f"{name}.projected" if residual else name
        y = self.conv(y, projected, f"{weights}._project_conv", f"{weights}._bn2", relu6=False)
        return self.node("Add", [y, x], name) if residual else y


def build_efficientnet_lite0(weights: Mapping[str, np.ndarray]) -> Any:
    """The ONNX model from its weights.

    Parameters
    ----------
    weights : mapping
        The state dict: ``_conv_stem.weight``, ``_bn0.*``, ``_blocks.N.*``, ``_conv_head.weight``, ``_bn1.*``.

    Returns
    -------
    onnx.ModelProto
        Input ``image`` (n, 3, height, width), RGB, normalised, sides multiples of 32; output ``features``
        (n, 1280, height / 32, width / 32). The blocks' outputs are named ``block_0`` to ``block_15``.
    """
    graph = _Graph(weights)
    helper, float32 = graph.onnx.helper, graph.onnx.TensorProto.FLOAT
    graph.constant("zero", np.array(0, dtype=np.float32))
    graph.constant("six", np.array(6, dtype=np.float32))
    x = graph.conv("image", "stem", "_conv_stem", "_bn0", stride=2)
    channels, index = STEM_CHANNELS, 0
    for repeats, _kernel, first_stride, expansion, out_channels in BLOCKS:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            x = graph.block(x, index, stride, expansion, residual=stride == 1 and channels == out_channels)
            channels, index = out_channels, index + 1
    graph.conv(x, "features", "_conv_head", "_bn1")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "efficientnet-lite0",
            [helper.make_tensor_value_info("image", float32, ["n", 3, "height", "width"])],
            [helper.make_tensor_value_info("features", float32, ["n", 1280, "rows", "columns"])],
            graph.constants,
        ),
        producer_name="bagwise",
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    model.ir_version = 8  # what ONNX Runtime 1.18, our oldest, can read
    graph.onnx.checker.check_model(model)
    return model
