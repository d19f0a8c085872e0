"""An ONNX network run by torch, node by node: the operators that image networks are made of, and no others.

Converters (onnx2torch, torch.export's reader) would be one more package to install for what are two hundred lines here,
and run the same convolutions: with several images in a batch, the time between them is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import current_thread
from typing import Any, TypeVar

import numpy as np

from bagwise._utils.optional import require

T = TypeVar("T")
Values = list[Any]
Attributes = dict[str, Any]

# Images that a network on a card takes at once. Always as many, the last one repeated where there are fewer: how a card
# takes its sums depends on how many there are, and so an image's numbers never depend on which images are beside it.
BATCH = 4


def in_batches(kinds: Sequence[Hashable], size: int = BATCH) -> Iterator[list[int]]:
    """Numbers of things in batches of one kind each; where there are too few, the last one stands several times."""
    places: dict[Hashable, list[int]] = {}
    for number, kind in enumerate(kinds):
        places.setdefault(kind, []).append(number)
    for alike in places.values():
        for start in range(0, len(alike), size):
            batch = alike[start : start + size]
            yield batch + batch[-1:] * (size - len(batch))


class UnknownOperators(ValueError):
    """The network has operators that are not among `OPERATORS`."""


class TorchNetwork:
    """A network on a torch device; see `Runtime`.

    Weights are copied to the device once, and what depends on nothing else is computed once. All arithmetic is in the
    type of the weights, never shortened, and by the same algorithms each time, so that the same call returns the same
    bits. Threads may share it.

    Parameters
    ----------
    model : bytes
        A serialised ONNX model with one input.
    name : str
        For errors.
    device : str
    """

    def __init__(self, model: bytes, name: str, device: str) -> None:
        onnx = require("onnx", extra="vision")
        self.torch = torch = require("torch", extra="gpu")
        self.device = device
        proto = onnx.load_from_string(model)
        graph = proto.graph
        opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=1)
        weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                weights[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
        self._known = {key: _placed(torch, np.array(value), device) for key, value in weights.items()}
        inputs = [value for value in graph.input if value.name not in weights]
        self._input, self.outputs = inputs[0].name, [output.name for output in graph.output]
        shape = inputs[0].type.tensor_type.shape.dim if len(inputs) == 1 else []
        self.input_shape = [size.dim_value if size.HasField("dim_value") else None for size in shape]
        kinds = {onnx.TensorProto.FLOAT16: np.float16, onnx.TensorProto.UINT8: np.uint8}
        self.dtype = np.dtype(kinds.get(inputs[0].type.tensor_type.elem_type, np.float32))
        self.metadata = {entry.key: entry.value for entry in proto.metadata_props}
        nodes = [
            (node.op_type, list(node.input), list(node.output), {"opset": opset, **_attributes(node)})
            for node in graph.node
            if not set(node.output) & weights.keys()  # a constant, by now
        ]
        unknown = sorted({kind for kind, *_ in nodes} - OPERATORS.keys())
        if unknown:
            raise UnknownOperators(
                f"{name} has operators that bagwise cannot run with torch ({', '.join(unknown)}): "
                "install onnxruntime-gpu, or use the device cpu"
            )
        self._nodes = []
        with torch.inference_mode():
            for node in nodes:
                kind, names, made, attributes = node
                if all(key in self._known or not key for key in names):
                    given = [self._known.get(key) for key in names]
                    self._known[made[0]] = OPERATORS[kind](torch, given, attributes)
                else:
                    self._nodes.append(node)
        self._plans: dict[tuple[str, ...], list[tuple[Any, list[str], str, list[str]]]] = {}

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        return alone_on_card(lambda: self.computed(batch, self.outputs[:1])[0])

    def computed(self, batch: np.ndarray, outputs: Sequence[str]) -> list[np.ndarray]:
        """Some of the network's outputs; called by `alone_on_card`."""
        with self.exactly():
            given = self.torch.from_numpy(np.array(batch)).to(self.device)
            return [each.cpu().numpy() for each in self.run(given, outputs)]

    @contextmanager
    def exactly(self) -> Iterator[None]:
        """Where tensors are made and `run` is called: no gradients, and nothing shortened.

        And no cuDNN, which plans every shape of a map anew, for longer than the products and the depthwise kernels that
        do without it take: images come in many shapes.
        """
        flags = self.torch.backends.cudnn.flags(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
        with self.torch.inference_mode(), flags:
            yield

    def mark(self) -> Any:
        """A place in the card's work, for `copies_from`; None where there is no card."""
        return self.torch.cuda.current_stream().record_event() if self.device == "cuda" else None

    @contextmanager
    def copies_from(self, mark: Any) -> Iterator[None]:
        """Where results are copied from the card once the work before a mark is done, beside the work after it."""
        if mark is None:
            yield
            return
        stream = self.torch.cuda.Stream()
        stream.wait_event(mark)
        with self.torch.cuda.stream(stream):
            yield

    def run(self, batch: Any, outputs: Sequence[str]) -> list[Any]:
        """Some of the network's outputs, as tensors on the device; called by `alone_on_card`."""
        values = {self._input: batch}
        for operator, names, output, done in self._plan(tuple(outputs)):
            given = [values[key] if key in values else self._known.get(key) for key in names]
            values[output] = operator(given)
            for key in done:  # activations are large
                values.pop(key, None)
        return [values[key] for key in outputs]

    def _plan(self, outputs: tuple[str, ...]) -> list[tuple[Any, list[str], str, list[str]]]:
        """What to do for these outputs: an operator, its inputs, its output, and what nobody asks for any more."""
        if outputs in self._plans:
            return self._plans[outputs]
        needed, steps, asked_later = set(outputs), [], set(outputs)
        for kind, names, made, attributes in reversed(self._nodes):
            if made[0] not in needed:
                continue
            needed |= set(names)
            done = [key for key in dict.fromkeys(names) if key and key not in asked_later]
            asked_later |= set(names)
            steps.append((self._bound(kind, names, attributes), names, made[0], done))
        self._plans[outputs] = steps[::-1]
        return self._plans[outputs]

    def _bound(self, kind: str, names: list[str], attributes: Attributes) -> Callable[[Values], Any]:
        """An operator whose weights are known: what can be made of them is made once, not with every batch."""
        torch, constants = self.torch, [self._known.get(key) for key in names[1:]]
        if kind in WITH_CONSTANTS and all(each is not None or not key for each, key in zip(constants, names[1:])):
            ready = WITH_CONSTANTS[kind](torch, constants, attributes)
            return lambda values: ready(values[0])
        operator = OPERATORS[kind]
        return lambda values: operator(torch, values, attributes)


def _placed(torch: Any, value: np.ndarray, device: str) -> Any:
    """A weight on the device; sizes, places and single numbers stay here, where Python reads them."""
    tensor = torch.from_numpy(value)
    return tensor if value.ndim == 0 or value.dtype in (np.int32, np.int64) else tensor.to(device)


_CARD = "bagwise-card"


def alone_on_card(work: Callable[[], T]) -> T:
    """Do some work in the one thread that speaks to the card, and wait for it.

    Every call of torch gives Python's lock away and takes it back. Many threads that each launch hundreds of kernels
    spend their time handing that lock around.
    """
    if current_thread().name.startswith(_CARD):
        return work()
    return _card_thread().submit(work).result()


@cache
def _card_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix=_CARD)


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


def _conv(torch: Any, constants: Values, attributes: Attributes) -> Callable[[Any], Any]:
    weight, bias = (*constants, None)[:2]
    kernel, groups = list(weight.shape[2:]), attributes.get("group", 1)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])

    def convolved(x: Any) -> Any:
        top, left, bottom, right = pads = _pads(x, kernel, attributes)
        even = (top, left) == (bottom, right)
        padding = (top, left) if even else 0
        x = x if even else _padded(torch, x, pads)
        return torch.conv2d(x, weight, bias, strides, padding, dilations, groups)

    if kernel != [1, 1] or max(strides) > 1 or groups > 1 or any(attributes.get("pads", [])):
        return convolved
    # A product of matrices, which needs no copy of the map.
    rows, column = weight.flatten(1), None if bias is None else bias[None, :, None]

    def multiplied(x: Any) -> Any:
        n, _, height, width = x.shape
        cells = x.flatten(2)
        made = torch.matmul(rows, cells) if column is None else torch.baddbmm(column, rows.expand(n, -1, -1), cells)
        return made.view(n, -1, height, width)

    return multiplied


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


def _clip(torch: Any, constants: Values, attributes: Attributes) -> Callable[[Any], Any]:
    given = (*constants, None, None)[:2]
    low, high = (attributes.get(name) if each is None else float(each) for name, each in zip(("min", "max"), given))
    return lambda x: torch.clamp(x, low, high)


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


def _cast(torch: Any, values: Values, attributes: Attributes) -> Any:
    onnx = require("onnx", extra="vision")
    kind = onnx.helper.tensor_dtype_to_np_dtype(attributes["to"])
    return values[0].to(torch.from_numpy(np.zeros(0, kind)).dtype)


def _resize(torch: Any, values: Values, attributes: Attributes) -> Any:
    """Maps made larger: each cell repeated, or a line between the middles of cells."""
    x, _, scales, sizes = (*values, None, None, None)[:4]
    size = sizes.tolist() if sizes is not None else [int(n * s) for n, s in zip(x.shape, scales.tolist())]
    mode, places = attributes.get("mode", b"nearest"), attributes.get("coordinate_transformation_mode", b"half_pixel")
    if mode == b"nearest" and places == b"asymmetric" and attributes.get("nearest_mode") == b"floor":
        return torch.nn.functional.interpolate(x, size=size[2:], mode="nearest")
    if mode == b"linear" and places == b"half_pixel":
        return torch.nn.functional.interpolate(x, size=size[2:], mode="bilinear", align_corners=False)
    raise ValueError(
        f"bagwise cannot resize maps with torch by {mode.decode()} and {places.decode()}: use the device cpu"
    )


def _slice(torch: Any, values: Values, attributes: Attributes) -> Any:
    x, starts, ends, axes, steps = (*values, None, None)[:5]
    cut: list[Any] = [slice(None)] * x.ndim
    which = range(len(starts)) if axes is None else axes.tolist()
    by = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(which, starts.tolist(), ends.tolist(), by):
        cut[axis] = slice(start, min(end, x.shape[axis]) if end >= 0 else end, step)
    return x[tuple(cut)]


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
    "Cast": _cast,
    "Clip": lambda torch, v, a: _clip(torch, v[1:], a)(v[0]),
    "Concat": lambda torch, v, a: torch.cat(v, a["axis"]),
    "Conv": lambda torch, v, a: _conv(torch, v[1:], a)(v[0]),
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
    "Resize": _resize,
    "Shape": lambda torch, v, a: torch.tensor(v[0].shape),
    "Sigmoid": lambda torch, v, a: torch.sigmoid(v[0]),
    "Slice": _slice,
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Sub": lambda torch, v, a: v[0] - v[1],
    "Transpose": lambda torch, v, a: v[0].permute(a.get("perm", list(range(v[0].ndim))[::-1])),
}

# Operators that are made ready for inputs after the first that never change.
WITH_CONSTANTS: dict[str, Callable[[Any, Values, Attributes], Callable[[Any], Any]]] = {"Clip": _clip, "Conv": _conv}
