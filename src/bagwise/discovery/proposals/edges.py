"""How strongly each pixel of an image looks like the boundary of something.

Three detectors share one shape, ``detector(image) -> map``: the small network shipped with the package
(``"network"``), Dollár's structured forest when the user has its file, and smoothed colour gradients (``"gradient"``).
`thin_edges` then keeps only the crest of each boundary, with the direction across it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bagwise._utils.optional import require

WEIGHTS = Path(__file__).with_name("weights") / "edges.onnx"
# Larger images are shrunk to this many pixels first: proposals are no better above it, only slower.
WORKING_AREA = 640 * 480


def shrink_to_working_area(image: np.ndarray) -> np.ndarray:
    """The image itself, or a copy of `WORKING_AREA` pixels if it has more."""
    height, width = image.shape[:2]
    scale = (WORKING_AREA / (height * width)) ** 0.5
    if scale >= 1:
        return image
    cv2 = require("cv2", extra="vision")
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


class EdgeDetector(Protocol):
    """A callable from an RGB image to a map of boundary strength."""

    @property
    def name(self) -> str:
        """Short name for manifests and logs."""

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Map ``image``, uint8 (h, w, 3) RGB, to float32 (h, w) in [0, 1]."""


def edge_detector(kind: str | Path = "network", *, threads: int = 1, device: str = "cpu") -> EdgeDetector:
    """Make the detector called ``kind``.

    Parameters
    ----------
    kind : "network", "gradient", or the path of a structured forest (Dollár's ``model.yml.gz``)
    threads : int, default=1
        Threads of the network inside one process; the others take one.
    device : str, default="cpu"
        Where the network runs; the others know only the CPU.
    """
    if kind == "network":
        if device != "cpu":
            from bagwise.discovery.proposals.edges_on_card import CardEdges

            return CardEdges(device)
        return NetworkEdges(threads=threads)
    if kind == "gradient":
        return GradientEdges()
    path = Path(kind)
    if not path.is_file():
        raise ValueError(
            f"unknown edge detector {str(kind)!r}: pass 'network', 'gradient' "
            "or the path of an existing structured forest file (model.yml.gz)"
        )
    return ForestEdges(path)


class _LazyModel(ABC):
    """Keeps a native model out of pickles and opens it on first use in each process."""

    def __init__(self) -> None:
        self._model: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    @abstractmethod
    def _open(self) -> Any:
        """Load the native model."""

    @property
    def model(self) -> Any:
        if self._model is None:
            self._model = self._open()
        return self._model


class NetworkEdges(_LazyModel):
    """The package's own convolutional network, on ONNX Runtime.

    Parameters
    ----------
    threads : int, default=1
        Threads used inside one image.
    weights : path, default=the shipped file
    """

    name = "network"

    def __init__(self, *, threads: int = 1, weights: str | Path = WEIGHTS) -> None:
        super().__init__()
        self.threads = threads
        self.weights = Path(weights)
        self._unfinished: set[str] = set()

    def _open(self) -> Any:
        runtime = require("onnxruntime", extra="vision")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model, self._unfinished = without_last_enlargement(self.weights.read_bytes())
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return self._run(image, "edges")[0]

    def edges_and_figure(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both maps of one pass.

        Parameters
        ----------
        image : uint8 array (h, w, 3)
            RGB.

        Returns
        -------
        edges : float32 array (h, w) in [0, 1]
            What calling the object returns.
        figure : float32 array (h, w) in [0, 1]
            How clearly each pixel belongs to the subject of the image, whatever its class.
        """
        edges, figure = self._run(image, "edges", "figure")
        return edges, figure

    def _run(self, image: np.ndarray, *outputs: str) -> list[np.ndarray]:
        padded, inside = mirrored(image, self._multiple(outputs))
        return [np.ascontiguousarray(each[inside]) for each in self._maps(padded, outputs)]

    def _multiple(self, outputs: Sequence[str]) -> int:
        """What the sides of the input must be multiples of, of a network that has these outputs."""
        known, multiple = self._facts()
        for output in outputs:
            if output not in known:
                raise ValueError(f"{self.weights} has no output {output!r}: attach it with training/{output}/attach.py")
        return multiple

    def _facts(self) -> tuple[set[str], int]:
        """Names of the outputs, and what the sides of the input must be multiples of."""
        metadata = self.model.get_modelmeta().custom_metadata_map
        return {output.name for output in self.model.get_outputs()}, int(metadata["stride"])

    def _maps(self, padded: np.ndarray, outputs: Sequence[str]) -> list[np.ndarray]:
        rows, columns = padded.shape[:2]
        maps = [each[0, 0] for each in self.model.run(list(outputs), {"image": padded[None]})]
        return [_enlarged(each, rows, columns) if o in self._unfinished else each for o, each in zip(outputs, maps)]


def mirrored(image: np.ndarray, multiple: int) -> tuple[np.ndarray, tuple[slice, slice]]:
    """An image mirrored on all sides up to multiples of some size, and where in it the image is.

    So the picture's frame is not taken for an edge.
    """
    (top, bottom), (left, right) = (
        (missing // 2, missing - missing // 2) for missing in (-side % multiple for side in image.shape[:2])
    )
    padded = np.pad(image, ((top, bottom), (left, right), (0, 0)), mode="symmetric")
    return padded, (slice(top, top + image.shape[0]), slice(left, left + image.shape[1]))


def without_last_enlargement(model: bytes) -> tuple[bytes, set[str]]:
    """The same network without what its outputs end with, where that is a linear enlargement and a sigmoid.

    ONNX Runtime keeps maps in blocks of 16 channels: it would enlarge 15 empty ones beside the one of an output, which
    is a third of the network's time. `_enlarged` does the rest.

    Returns
    -------
    model : bytes
        Serialised ONNX.
    unfinished : set of str
        The outputs that are small and have had no sigmoid.
    """
    onnx = require("onnx", extra="vision")
    loaded = onnx.load_model_from_string(model)
    graph = loaded.graph
    makers = {output: node for node in graph.node for output in node.output}
    unfinished = set()
    for output in graph.output:
        sigmoid = makers[output.name]
        resize = makers.get(sigmoid.input[0]) if sigmoid.op_type == "Sigmoid" else None
        if resize is None or resize.op_type != "Resize":
            continue
        how = {attribute.name: attribute.s for attribute in resize.attribute}
        if (how.get("mode"), how.get("coordinate_transformation_mode", b"half_pixel")) == (b"linear", b"half_pixel"):
            makers[resize.input[0]].output[:] = [output.name]
            graph.node.remove(sigmoid)
            graph.node.remove(resize)
            output.type.tensor_type.ClearField("shape")
            unfinished.add(output.name)
    return loaded.SerializeToString(), unfinished


def _enlarged(map: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The sigmoid of a map enlarged to some size, float32."""
    cv2 = require("cv2", extra="vision")
    larger = cv2.resize(map, (columns, rows), interpolation=cv2.INTER_LINEAR)
    return 1 / (1 + np.exp(-larger))


class GradientEdges:
    """Colour gradients relative to their surroundings: needs no model at all."""

    name = "gradient"

    def __call__(self, image: np.ndarray) -> np.ndarray:
        cv2 = require("cv2", extra="vision")
        lab = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
        smooth = cv2.GaussianBlur(lab, (0, 0), 1.5)
        dx = cv2.Sobel(smooth, cv2.CV_32F, 1, 0) / 8
        dy = cv2.Sobel(smooth, cv2.CV_32F, 0, 1) / 8
        strength = np.sqrt((dx * dx + dy * dy).sum(-1))
        # Dividing by the neighbourhood's own strength lets faint outlines stand out and quietens texture;
        # the constant (in Lab units per pixel) keeps sensor noise in flat areas from being blown up.
        return (strength / (strength + cv2.GaussianBlur(strength, (0, 0), 8) + 5)).astype(np.float32)


class ForestEdges(_LazyModel):
    """Structured forests through OpenCV, with a model file the user supplies."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)

    @property
    def name(self) -> str:
        return f"forest:{self.path.name}"

    def _open(self) -> Any:
        cv2 = require("cv2", extra="vision")
        try:
            return cv2.ximgproc.createStructuredEdgeDetection(str(self.path))
        except cv2.error as error:
            raise ValueError(f"{self.path} is not a structured forest that OpenCV can read: {error}") from error

    def __call__(self, image: np.ndarray) -> np.ndarray:
        edges = self.model.detectEdges(image.astype(np.float32) / 255)
        return np.clip(edges, 0, 1, dtype=np.float32)


def edge_normals(edges: np.ndarray) -> np.ndarray:
    """Direction across the boundary at every pixel.

    Parameters
    ----------
    edges : float32 array (h, w)

    Returns
    -------
    float32 array (h, w)
        Radians in [0, π): the direction in which the smoothed map curves down most, that is the eigenvector of its
        Hessian with the smaller eigenvalue.
    """
    cv2 = require("cv2", extra="vision")
    smooth = cv2.GaussianBlur(edges, (0, 0), 2.0)
    xx = cv2.Sobel(smooth, cv2.CV_32F, 2, 0, ksize=3)
    yy = cv2.Sobel(smooth, cv2.CV_32F, 0, 2, ksize=3)
    xy = cv2.Sobel(smooth, cv2.CV_32F, 1, 1, ksize=3)
    normals = 0.5 * np.arctan2(2 * xy, xx - yy) + np.float32(np.pi / 2)
    # float32(π/2)·2 exceeds π by a rounding: fold it back.
    return np.where(normals >= np.float32(np.pi), 0, normals).astype(np.float32)


def thin_edges(edges: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Zero every pixel that is weaker than its neighbours across the boundary.

    Parameters
    ----------
    edges, normals : float32 arrays (h, w)
        Strength, and the direction across the boundary from `edge_normals`.

    Returns
    -------
    float32 array (h, w)
    """
    cv2 = require("cv2", extra="vision")
    height, width = edges.shape
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    dx, dy = np.cos(normals), np.sin(normals)
    crest = np.ones(edges.shape, bool)
    for sign in (-1, 1):
        beside = cv2.remap(edges, x + sign * dx, y + sign * dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        # A plateau two pixels wide would vanish under a strict comparison: ask for one percent.
        crest &= edges * 1.01 >= beside
    return np.where(crest, edges, 0).astype(np.float32)
