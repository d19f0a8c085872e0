"""An ONNX network run by torch, node by node: the operators that image networks are made of, and no others."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from bagwise._utils.optional import require

Values = list[Any]
Attributes = dict[str, Any]


class TorchNetwork:
    """A network on a torch device; see `Runtime`.

    Weights are copied to the device once. All arithmetic is in the type of the weights, never shortened, and by the
    same algorithms each time, so that the same call returns the same bits.

    Parameters
    ----------
    model : bytes
        A serialised ONNX model with one input and one output.
    name : str
        For errors.
    device : str
    """

    def __init__(self, model: bytes, name: str, device: str) -> None:
        onnx = require("onnx", extra="vision")
        self._torch = torch = require("torch", extra="gpu")
        self._device, self._lock = device, Lock()
        proto = onnx.load_from_string(model)
        graph = proto.graph
        self._opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)
        weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                weights[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
        self._weights = {key: torch.from_numpy(np.array(value)).to(device) for key, value in weights.items()}
        inputs = [value for value in graph.input if value.name not in weights]
        self._input, self._output = inputs[0].name, graph.output[0].name
        shape = inputs[0].type.tensor_type.shape.dim if len(inputs) == 1 else []
        self.input_shape = [size.dim_value if size.HasField("dim_value") else None for size in shape]
        half = inputs[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        self.dtype = np.dtype(np.float16 if half else np.float32)
        self._nodes = [
            (node.op_type, list(node.input), list(node.output), _attributes(node))
            for node in graph.node
            if not set(node.output) & weights.keys()  # a constant, by now
        ]
        unknown = sorted({kind for kind, *_ in self._nodes} - OPERATORS.keys())
        if unknown:
            raise ValueError(
                f"{name} has operators that bagwise cannot run with torch ({', '.join(unknown)}): "
                "install onnxruntime-gpu, or use the device cpu"
            )
        self._last_use = {key: at for at, (_, names, *_) in enumerate(self._nodes) for key in names}

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        torch = self._torch
        exact = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
        with self._lock, torch.inference_mode(), exact:  # the flags are those of the whole process
            values = {**self._weights, self._input: torch.from_numpy(np.array(batch)).to(self._device)}
            for at, (kind, names, outputs, attributes) in enumerate(self._nodes):
                given = [values[key] if key else None for key in names]
                values[outputs[0]] = OPERATORS[kind](torch, given, {"opset": self._opset, **attributes})
                for key in names:
                    if self._last_use[key] == at and key != self._output:
                        values.pop(key, None)  # activations are large
            return values[self._output].cpu().numpy()


def _attributes(node: Any) -> Attributes:
    onnx = require("onnx", extra="vision")
    return {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}


def _pads(x: Any, kernel: list[int], attributes: Attributes) -> list[int]:
    """Pixels to add at (top, left, bottom, right) of a map (n, channels, rows, columns)."""
    kind = attributes.get("auto_pad", b"NOTSET").decode()
    if kind == "VALID":
        return [0] * 4
    if kind == "NOTSET":
        return list(attributes.get("pads", [0] * 4))
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    before, after = [], []
    for size, side, stride, dilation in zip(x.shape[2:], kernel, strides, dilations):
        total = max(0, (-(-size // stride) - 1) * stride + (side - 1) * dilation + 1 - size)
        less, more = total // 2, total - total // 2
        before.append(less if kind == "SAME_UPPER" else more)
        after.append(more if kind == "SAME_UPPER" else less)
    return before + after


def _padded(torch: Any, x: Any, pads: list[int], value: float = 0.0) -> Any:
    top, left, bottom, right = pads
    return torch.nn.functional.pad(x, (left, right, top, bottom), value=value) if any(pads) else x


def _conv(torch: Any, values: Values, attributes: Attributes) -> Any:
    x, weight, *bias = values
    x = _padded(torch, x, _pads(x, list(weight.shape[2:]), attributes))
    return torch.nn.functional.conv2d(
        x,
        weight,
        bias[0] if bias else None,
        stride=attributes.get("strides", [1, 1]),
        dilation=attributes.get("dilations", [1, 1]),
        groups=attributes.get("group", 1),
    )


def _pool(torch: Any, values: Values, attributes: Attributes, average: bool) -> Any:
    x, kernel = values[0], attributes["kernel_shape"]
    pads = _pads(x, kernel, attributes)
    options = {"kernel_size": kernel, "stride": attributes.get("strides", [1, 1])}
    options["ceil_mode"] = bool(attributes.get("ceil_mode", 0))
    if not average:
        x = _padded(torch, x, pads, -float("inf"))
        return torch.nn.functional.max_pool2d(x, dilation=attributes.get("dilations", [1, 1]), **options)
    if attributes.get("count_include_pad", 0):
        return torch.nn.functional.avg_pool2d(_padded(torch, x, pads), **options)
    # What was added does not count: sums over real pixels, by the number of real pixels.
    real = _padded(torch, torch.ones_like(x[:1, :1]), pads)
    sums, share = (torch.nn.functional.avg_pool2d(part, **options) for part in (_padded(torch, x, pads), real))
    return sums / share


def _gemm(torch: Any, values: Values, attributes: Attributes) -> Any:
    a, b, *c = values
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    product = attributes.get("alpha", 1.0) * (a @ b)
    return product + attributes.get("beta", 1.0) * c[0] if c else product


def _clip(torch: Any, values: Values, attributes: Attributes) -> Any:
    low, high = (*values[1:], None, None)[:2]
    return torch.clamp(
        values[0],
        attributes.get("min") if low is None else low,
        attributes.get("max") if high is None else high,
    )


def _batch_norm(torch: Any, values: Values, attributes: Attributes) -> Any:
    x, scale, bias, mean, variance = values
    return torch.nn.functional.batch_norm(x, mean, variance, scale, bias, eps=attributes.get("epsilon", 1e-5))


def _softmax(torch: Any, values: Values, attributes: Attributes) -> Any:
    x = values[0]
    if attributes["opset"] >= 13:
        return torch.softmax(x, attributes.get("axis", -1))
    return torch.softmax(_flat(torch, values, attributes), 1).reshape(x.shape)


def _flat(torch: Any, values: Values, attributes: Attributes) -> Any:
    x, axis = values[0], attributes.get("axis", 1)
    axis = axis if axis >= 0 else axis + x.ndim
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def _reshape(torch: Any, values: Values, attributes: Attributes) -> Any:
    x, wanted = values[0], [int(size) for size in values[1]]
    keep = not attributes.get("allowzero", 0)
    return x.reshape([x.shape[i] if size == 0 and keep else size for i, size in enumerate(wanted)])


def _axes(values: Values, attributes: Attributes) -> list[int] | None:
    """Axes, which newer opsets give as an input."""
    if len(values) > 1 and values[1] is not None:
        return [int(axis) for axis in values[1]]
    return attributes.get("axes")


def _mean(torch: Any, values: Values, attributes: Attributes) -> Any:
    axes = _axes(values, attributes)
    if not axes and attributes.get("noop_with_empty_axes", 0):
        return values[0]
    return values[0].mean(axes or list(range(values[0].ndim)), keepdim=bool(attributes.get("keepdims", 1)))


def _squeeze(torch: Any, values: Values, attributes: Attributes) -> Any:
    axes = _axes(values, attributes)
    return values[0].squeeze() if axes is None else values[0].squeeze(tuple(axes))


OPERATORS: dict[str, Callable[[Any, Values, Attributes], Any]] = {
    "Add": lambda torch, v, a: v[0] + v[1],
    "AveragePool": lambda torch, v, a: _pool(torch, v, a, average=True),
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": lambda torch, v, a: torch.cat(v, a["axis"]),
    "Conv": _conv,
    "Div": lambda torch, v, a: v[0] / v[1],
    "Dropout": lambda torch, v, a: v[0],
    "Flatten": _flat,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda torch, v, a: v[0].mean((2, 3), keepdim=True),
    "HardSigmoid": lambda torch, v, a: torch.clamp(a.get("alpha", 0.2) * v[0] + a.get("beta", 0.5), 0, 1),
    "HardSwish": lambda torch, v, a: torch.nn.functional.hardswish(v[0]),
    "Identity": lambda torch, v, a: v[0],
    "LRN": lambda torch, v, a: torch.nn.functional.local_response_norm(
        v[0], a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0)
    ),
    "LeakyRelu": lambda torch, v, a: torch.nn.functional.leaky_relu(v[0], a.get("alpha", 0.01)),
    "MatMul": lambda torch, v, a: v[0] @ v[1],
    "MaxPool": lambda torch, v, a: _pool(torch, v, a, average=False),
    "Mul": lambda torch, v, a: v[0] * v[1],
    "ReduceMean": _mean,
    "Relu": lambda torch, v, a: torch.relu(v[0]),
    "Reshape": _reshape,
    "Sigmoid": lambda torch, v, a: torch.sigmoid(v[0]),
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Sub": lambda torch, v, a: v[0] - v[1],
    "Transpose": lambda torch, v, a: v[0].permute(a.get("perm", list(range(v[0].ndim))[::-1])),
}
