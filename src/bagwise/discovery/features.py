"""From a photograph and its boxes to one feature vector per box.

`RoiFeatures` runs the network once over the whole photograph and averages its map inside each box;
`CropFeatures` warps every box to the network's input and runs it on each, as R-CNN and the paper did.

Both work in two halves: ``prepare`` runs the network, ``finish`` makes the vectors. Between them the reduction can be
learnt from the ``averages`` of a sample.

The vector of a box is what is inside minus a share of what is around it. A box on a part of an object has more of the
object around it, so what counts for the box counts against it there: the whole scores higher than its parts.
"""

from typing import Protocol

import numpy as np

from .backbones import Backbone, resize
from .boxes import areas
from .reduction import Reduction, unit

CROP_SIDE = 224  # for networks that take any size
CROPS_PER_CALL = 32
RING_SHARE = 0.25  # the ring around a box is this share of its width and height on each side
CONTRAST = 0.25
SMALLEST_RING = 0.02  # of the box's area; less is left of it where the box fills the photograph

Size = tuple[int, int]


class Features(Protocol):
    """What turns boxes into vectors. ``size`` is (width, height) of the photograph in pixels."""

    backbone: Backbone
    reduction: Reduction | None

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """What the network says of a photograph (height, width, 3) and its boxes (n, 4)."""

    def averages(self, prepared: np.ndarray, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Plain averages of channels over the parts of some of the boxes, float32 (n, parts, channels)."""

    def finish(self, prepared: np.ndarray, size: Size, boxes: np.ndarray) -> np.ndarray:
        """The vectors that learning uses, float32 (n, d)."""


def quadrant_weights(boxes: np.ndarray, size: Size, cells: tuple[int, int]) -> np.ndarray:
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


def ring_weights(boxes: np.ndarray, size: Size, cells: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """How much each cell weighs in the average over the ring around each box.

    Parameters
    ----------
    boxes, size, cells
        As for `quadrant_weights`.

    Returns
    -------
    weights : float32 array (n, rows * columns)
        Rows sum to one.
    seen : bool array (n,)
        False where the box fills the photograph, so that there is no ring; its weights are zero.
    """
    margin = RING_SHARE * (boxes[:, 2:] - boxes[:, :2])
    outer = np.hstack([boxes[:, :2] - margin, boxes[:, 2:] + margin]).clip(0, np.array(size * 2))
    inner_area, outer_area = areas(boxes)[:, None], areas(outer)[:, None]
    seen = outer_area - inner_area > SMALLEST_RING * inner_area
    inside, around = (quadrant_weights(b, size, cells).mean(axis=0) for b in (boxes, outer))
    ring = (around * outer_area - inside * inner_area) / np.where(seen, outer_area - inner_area, 1)
    # Rounding may leave a cell that is wholly inside slightly below zero.
    return np.where(seen, np.maximum(ring, 0), 0).astype(np.float32), seen[:, 0]


class RoiFeatures:
    """One pass over the photograph, then the map's averages over the quarters of each box and the ring around it.

    Parameters
    ----------
    backbone : Backbone
        Cut at a layer that gives maps.
    reduction : Reduction, optional
        Needed by ``finish``.
    contrast : float
        How much of the surroundings is taken off.
    """

    def __init__(self, backbone: Backbone, reduction: Reduction | None = None, *, contrast: float = CONTRAST) -> None:
        self.backbone = backbone
        self.reduction = reduction
        self.contrast = contrast

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """The network's map, float32 (channels, rows, columns)."""
        output = self.backbone.run(self.backbone.preprocess(image)[None])
        if output.ndim != 4:
            raise ValueError(
                f"the layer {self.backbone.name} gives one vector for the whole photograph, no map: "
                "choose an earlier layer, or run it on crops of the boxes (--crop)"
            )
        return output[0]

    def averages(self, prepared: np.ndarray, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        channels, *cells = prepared.shape
        return _quarters(prepared.reshape(channels, -1).T, size, (cells[0], cells[1]), boxes[rows])

    def finish(self, prepared: np.ndarray, size: Size, boxes: np.ndarray) -> np.ndarray:
        inside, around = self.inside_and_around(prepared, size, boxes)
        return inside - self.contrast * around

    def inside_and_around(self, prepared: np.ndarray, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors of what is in each box and of what is around it, both (n, d); zero where nothing is."""
        if self.reduction is None:
            raise ValueError("the features have no reduction yet: fit one on the averages of a sample of boxes")
        # Averaging and projecting are both linear: projecting the few cells first is cheaper.
        channels, *cells = prepared.shape
        grid = (cells[0], cells[1])
        narrow = self.reduction.narrow(prepared.reshape(channels, -1).T)
        ring, seen = ring_weights(boxes, size, grid)
        around = np.where(seen[:, None], self.reduction.finish_alike(ring @ narrow), 0)
        return self.reduction.finish(_quarters(narrow, size, grid, boxes)), around


def _quarters(map: np.ndarray, size: Size, cells: tuple[int, int], boxes: np.ndarray) -> np.ndarray:
    """Averages over the quarters of boxes of a map given as one row per cell: (n, 4, channels)."""
    weights = quadrant_weights(boxes, size, cells)
    averages = weights.reshape(-1, weights.shape[2]) @ map
    return averages.reshape(4, len(boxes), -1).transpose(1, 0, 2)


class CropFeatures:
    """The network on every box by itself, warped to its input whatever the box's shape.

    Parameters
    ----------
    backbone : Backbone
        Maps are averaged to one vector.
    reduction : Reduction, optional
        Without it the vectors are the network's own, of unit length.
    """

    def __init__(self, backbone: Backbone, reduction: Reduction | None = None) -> None:
        self.backbone = backbone
        self.reduction = reduction

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """The network's vectors, float32 (n, channels)."""
        rows, columns = self.backbone.size or (CROP_SIDE, CROP_SIDE)
        vectors = []
        for start in range(0, len(boxes), CROPS_PER_CALL):
            crops = [resize(_cut(image, box), rows, columns) for box in boxes[start : start + CROPS_PER_CALL]]
            output = self.backbone.run(np.stack(crops))
            vectors.append(output.mean(axis=(2, 3)) if output.ndim == 4 else output)
        return np.concatenate(vectors)

    def averages(self, prepared: np.ndarray, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return prepared[rows, None, :]

    def finish(self, prepared: np.ndarray, size: Size, boxes: np.ndarray) -> np.ndarray:
        if self.reduction is None:
            return unit(prepared)
        return self.reduction.finish(self.reduction.narrow(prepared)[:, None, :])


def _cut(image: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The pixels that a box touches; at least one."""
    x1, y1 = np.floor(box[:2]).astype(int)
    x2, y2 = np.ceil(box[2:]).astype(int)
    return image[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)]
