"""Write a trained `EdgeNet` as ONNX, its weights stored in 8 or 16 bits.

    python export.py CHECKPOINT.pt OUTPUT.onnx

ONNX Runtime turns the stored weights back into float32 once, when it opens the file, and computes in that.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from network import EdgeNet, Unit, load_checkpoint
from onnx import TensorProto, helper, numpy_helper
from torch import nn


class OnnxOps:
    """The operations of the wiring, written as ONNX nodes; values are their names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._count = 0
        self._low = self.constant(np.float32(0))
        self._six = self.constant(np.float32(6))
        self._twice = self.constant(np.array([1, 1, 2, 2], np.float32))

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: np.ndarray) -> str:
        name = self._name()
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = self._name()
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def weight(self, value: np.ndarray) -> str:
        """A kernel in int8 with one scale per output channel; small ones in float16, where a scale would cost more."""
        rows = value.reshape(len(value), -1)
        if rows.shape[1] < 16:
            return self.node("Cast", self.constant(value.astype(np.float16)), to=TensorProto.FLOAT)
        scale = np.abs(rows).max(1) / 127
        scale = np.where(scale > 0, scale, 1).astype(np.float32).reshape(-1, 1, 1, 1)
        stored = self.constant(np.round(value / scale).astype(np.int8))
        return self.node("Mul", self.node("Cast", stored, to=TensorProto.FLOAT), self.constant(scale))

    def conv(self, x: str, weight: torch.Tensor, bias: torch.Tensor, **attributes: object) -> str:
        kernel = self.weight(weight.detach().double().numpy())
        return self.node("Conv", x, kernel, self.constant(bias.detach().float().numpy()), **attributes)

    def unit(self, unit: Unit, x: str) -> str:
        before, after = unit.pads
        x = self.conv(
            x,
            *unit.folded(),
            pads=[before, before, after, after],
            strides=list(unit.conv.stride),
            group=unit.conv.groups,
        )
        return self.node("Clip", x, self._low, self._six) if unit.active else x

    def head(self, conv: nn.Conv2d, x: str) -> str:
        return self.conv(x, conv.weight, conv.bias)

    def add(self, a: str, b: str) -> str:
        return self.node("Add", a, b)

    def double(self, x: str, *, smooth: bool) -> str:
        if smooth:
            options = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        else:
            options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.node("Resize", x, "", self._twice, **options)


def to_onnx(net: EdgeNet) -> onnx.ModelProto:
    """The network as a graph from uint8 (1, h, w, 3) RGB to float32 (1, 1, h, w) in [0, 1]."""
    net = net.eval()
    ops = OnnxOps()
    image = ops.node("Cast", ops.node("Transpose", "image", perm=[0, 3, 1, 2]), to=TensorProto.FLOAT)
    image = ops.node("Mul", ops.node("Sub", image, ops.constant(np.float32(127))), ops.constant(np.float32(1 / 128)))
    logits, _ = net.wire(image, ops)
    ops.nodes.append(helper.make_node("Sigmoid", [logits], ["edges"]))
    graph = helper.make_graph(
        ops.nodes,
        "bagwise edges",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, "height", "width", 3])],
        [helper.make_tensor_value_info("edges", TensorProto.FLOAT, [1, 1, "height", "width"])],
        ops.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="bagwise")
    model.ir_version = 8
    helper.set_model_props(model, {"stride": str(net.stride)})
    onnx.checker.check_model(model)
    return model


def main(checkpoint: str, output: str) -> None:
    aside = Path(output + ".part")
    aside.write_bytes(to_onnx(load_checkpoint(checkpoint)).SerializeToString())
    aside.replace(output)
    print(f"{output}: {Path(output).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
