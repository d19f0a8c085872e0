"""From a photograph and its boxes to one feature vector per box.

`RoiFeatures` runs the network once over the whole photograph and averages its map inside each box;
`CropFeatures` warps every box to the network's input and runs it on each, as R-CNN and the paper did.
"""

from typing import Protocol

import numpy as np

from .backbones import Backbone, resize
from .reduction import Reduction

CROP_SIDE = 224  # for networks that take any size
CROPS_PER_CALL = 32


class Features(Protocol):
    """What turns boxes into vectors."""

    @property
    def backbone(self) -> Backbone:
        """The network behind it."""

    def raw(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """float32 (n, parts, channels): averages of the parts of each box."""

    def extract(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """float32 (n, d): the vectors that learning uses."""


def quadrant_weights(boxes: np.ndarray, size: tuple[int, int], cells: tuple[int, int]) -> np.ndarray:
    """How much each cell of a map weighs in the average over each quarter of each box.

    A cell that the quarter covers in part weighs in proportion, so a small move of a box is a small change of its
    features, and boxes smaller than a cell are no special case.

    Parameters
    ----------
    boxes : float array (n, 4)
        Inside the photograph, with width and height above zero.
    size : (width, height) of the photograph in pixels
    cells : (rows, columns) of the map

    Returns
    -------
    float32 array (4, n, rows * columns)
        Rows sum to one. Quarters in the order top left, top right, bottom left, bottom right.
    """
    x = np.linspace(boxes[:, 0], boxes[:, 2], 3)  # left, middle, right
    y = np.linspace(boxes[:, 1], boxes[:, 3], 3)
    columns = [_overlap(x[i], x[i + 1], size[0], cells[1]) for i in (0, 1)]
    rows = [_overlap(y[i], y[i + 1], size[1], cells[0]) for i in (0, 1)]
    weights = np.empty((4, len(boxes), cells[0] * cells[1]), np.float32)
    for quarter in range(4):
        product = rows[quarter // 2][:, :, None] * columns[quarter % 2][:, None, :]
        weights[quarter] = product.reshape(len(boxes), -1)
    return weights


def _overlap(low: np.ndarray, high: np.ndarray, length: int, cells: int) -> np.ndarray:
    """(n, cells) share of each interval that lies in each of the equal cells of [0, length)."""
    edges = np.arange(cells + 1) * (length / cells)
    inside = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
    inside = np.maximum(inside, 0)
    return inside / inside.sum(axis=1, keepdims=True)


class RoiFeatures:
    """One pass over the photograph, then the map's average over the quarters of each box.

    Parameters
    ----------
    backbone : Backbone
        Cut at a layer that gives maps.
    reduction : Reduction, optional
        How averages become the final vectors; without it ``extract`` gives the plain averages.
    """

    def __init__(self, backbone: Backbone, reduction: Reduction | None = None) -> None:
        self.backbone = backbone
        self.reduction = reduction

    def map(self, image: np.ndarray) -> np.ndarray:
        """The network's map of a photograph, float32 (channels, rows, columns)."""
        output = self.backbone.run(self.backbone.preprocess(image)[None])
        if output.ndim != 4:
            raise ValueError(
                f"the layer {self.backbone.name} gives one vector for the whole photograph, no map: "
                "choose an earlier layer, or run it on crops of the boxes (--crop)"
            )
        return output[0]

    def raw(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        return self.pool(self.map(image), image.shape, boxes)

    def pool(self, map: np.ndarray, shape: tuple[int, ...], boxes: np.ndarray) -> np.ndarray:
        """Averages of a map over the quarters of boxes, float32 (n, 4, channels)."""
        channels, rows, columns = map.shape
        weights = quadrant_weights(boxes, (shape[1], shape[0]), (rows, columns))
        cells = np.ascontiguousarray(map.reshape(channels, -1).T)
        averages = weights.reshape(-1, rows * columns) @ cells
        return averages.reshape(4, len(boxes), channels).transpose(1, 0, 2)

    def extract(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        map = self.map(image)
        if self.reduction is None:
            return np.ascontiguousarray(self.pool(map, image.shape, boxes)).reshape(len(boxes), -1)
        # Averaging and projecting are both linear: projecting the few cells first is cheaper.
        narrow = self.reduction.narrow(map.reshape(len(map), -1).T)
        narrow_map = narrow.T.reshape(-1, *map.shape[1:])
        return self.reduction.finish(self.pool(narrow_map, image.shape, boxes))


class CropFeatures:
    """The network on every box by itself, warped to its input whatever the box's shape.

    Parameters
    ----------
    backbone : Backbone
        Maps are averaged to one vector.
    reduction : Reduction, optional
    """

    def __init__(self, backbone: Backbone, reduction: Reduction | None = None) -> None:
        self.backbone = backbone
        self.reduction = reduction

    def raw(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        rows, columns = self.backbone.size or (CROP_SIDE, CROP_SIDE)
        parts = []
        for start in range(0, len(boxes), CROPS_PER_CALL):
            crops = [resize(_cut(image, box), rows, columns) for box in boxes[start : start + CROPS_PER_CALL]]
            output = self.backbone.run(np.stack(crops))
            parts.append(output.mean(axis=(2, 3)) if output.ndim == 4 else output)
        return np.concatenate(parts)[:, None, :]

    def extract(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        raw = self.raw(image, boxes)
        if self.reduction is None:
            return raw.reshape(len(boxes), -1)
        return self.reduction.finish(self.reduction.narrow(raw))


def _cut(image: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The pixels that a box touches; at least one."""
    x1, y1 = np.floor(box[:2]).astype(int)
    x2, y2 = np.ceil(box[2:]).astype(int)
    return image[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)]
