"""From an image and its boxes to one feature vector per box.

`RoiFeatures` runs the network over the whole image and averages its map inside each box; `CropFeatures` warps every
box to the network's input and runs it on each, as R-CNN and the paper did.

Both work in two halves: ``prepare`` runs the network, ``finish`` makes the vectors. Between them the reduction can be
learned from the ``averages`` of a sample.

The vector of a box is what is inside minus a share of what is around it. A box on a part of an object has more of the
object around it, so what counts for the box counts against it there: the whole scores higher than its parts.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bagwise._utils.boxes import areas
from bagwise.discovery.features.backbones import Backbone, resize
from bagwise.discovery.features.reduction import Reduction, unit

CROP_SIDE = 224  # for networks that take any size; what most have been trained on
CROPS_PER_CALL = 32
# Short sides of the image that the network sees. Each box has its features from the one in which it is most nearly as
# large as what the network was trained on.
SHORT_SIDES = (900, 600)
RING_SHARE = 0.25  # the ring around a box is this share of its width and height on each side
CONTRAST = 0.25
SMALLEST_RING = 0.02  # of the box's area; less is left of it where the box fills the image
MOST_CELLS = 300  # of the map that is kept of an image

Size = tuple[int, int]
Prepared = Sequence[np.ndarray]


class Features(Protocol):
    """What turns boxes into vectors. ``size`` is (width, height) of the image in pixels."""

    backbone: Backbone
    reduction: Reduction | None

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> Prepared:
        """What the network says of an image (height, width, 3) and its boxes (n, 4)."""

    def averages(self, prepared: Prepared, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Plain averages of channels over the parts of some of the boxes, float32 (n, parts, channels)."""

    def finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors that learning uses, float32 (n, d), and those of the cells of a map, (rows, columns, d)."""


def quarter_averages(map: np.ndarray, size: Size, cells: tuple[int, int], boxes: np.ndarray) -> np.ndarray:
    """Averages of a map over each quarter of each box.

    A cell that the quarter covers in part weighs in proportion, so a small move of a box is a small change of its
    features, and boxes smaller than a cell are no special case.

    Parameters
    ----------
    map : float32 array (rows * columns, k)
    size : (width, height) of the image in pixels
    cells : (rows, columns) of the map
    boxes : float array (n, 4)
        Inside the image, with width and height above zero.

    Returns
    -------
    float32 array (n, 4, k)
        Quarters in the order top left, top right, bottom left, bottom right.
    """
    x = np.linspace(boxes[:, 0], boxes[:, 2], 3)  # left, middle, right
    y = np.linspace(boxes[:, 1], boxes[:, 3], 3)
    columns = [shares(x[i], x[i + 1], size[0], cells[1]) for i in (0, 1)]
    rows = [shares(y[i], y[i + 1], size[1], cells[0]) for i in (0, 1)]
    parts = [_averages(map, cells, rows[quarter // 2], columns[quarter % 2]) for quarter in range(4)]
    return np.stack(parts, axis=1)


def box_averages(map: np.ndarray, size: Size, cells: tuple[int, int], boxes: np.ndarray) -> np.ndarray:
    """The same over each whole box: float32 (n, k)."""
    columns = shares(boxes[:, 0], boxes[:, 2], size[0], cells[1])
    rows = shares(boxes[:, 1], boxes[:, 3], size[1], cells[0])
    return _averages(map, cells, rows, columns)


def _averages(map: np.ndarray, cells: tuple[int, int], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    # Compiled code is imported on first use.
    from bagwise.discovery.features._averages import rectangle_averages

    averages = np.empty((len(rows), map.shape[1]), np.float32)
    rectangle_averages(np.ascontiguousarray(map, np.float32).reshape(*cells, -1), rows, columns, averages)
    return averages


def shares(low: np.ndarray, high: np.ndarray, length: int, cells: int) -> np.ndarray:
    """(n, cells) share of each interval that lies in each of the equal cells of [0, length)."""
    edges = np.arange(cells + 1) * (length / cells)
    inside = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
    inside = np.maximum(inside, 0)
    return inside / inside.sum(axis=1, keepdims=True)


def surroundings(boxes: np.ndarray, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """The window that ends where the ring around each box does, (n, 4), and its area in areas of the box, (n,)."""
    margin = RING_SHARE * (boxes[:, 2:] - boxes[:, :2])
    outer = np.hstack([boxes[:, :2] - margin, boxes[:, 2:] + margin]).clip(0, np.array(size * 2))
    return outer, areas(outer) / areas(boxes)


class RoiFeatures:
    """The whole image at a few sizes, then the maps' averages over the quarters of each box and the ring around it.

    Parameters
    ----------
    backbone : Backbone
        Cut at a layer that returns maps.
    reduction : Reduction, optional
        Needed by ``finish``.
    contrast : float, default=0.25
        How much of the surroundings is taken off.
    short_sides : sequence of int, default=(900, 600)
        Short sides of the image as the network sees it; one pass each. A network of fixed input size makes one pass.
    """

    def __init__(
        self,
        backbone: Backbone,
        reduction: Reduction | None = None,
        *,
        contrast: float = CONTRAST,
        short_sides: Sequence[int] = SHORT_SIDES,
    ) -> None:
        self.backbone = backbone
        self.reduction = reduction
        self.contrast = contrast
        self.short_sides = tuple(short_sides) if backbone.size is None else (0,)

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> list[np.ndarray]:
        """The network's maps, largest first, each float32 (channels, rows, columns)."""
        maps = []
        for side in self.short_sides:
            output = self.backbone.run(self.backbone.preprocess(image, side)[None])
            if output.ndim != 4:
                raise ValueError(self.backbone.no_map())
            maps.append(output[0])
        return maps

    def fitting(self, boxes: np.ndarray, size: Size, grids: Sequence[tuple[int, int]]) -> np.ndarray:
        """For each box the map in which its side is most nearly `CROP_SIDE` pixels of what the network saw, (n,)."""
        sides = np.sqrt(areas(boxes.astype(np.float64)) / (size[0] * size[1]))
        seen = [self.backbone.stride * np.sqrt(rows * columns) for rows, columns in grids]
        return np.abs(np.log(sides[:, None] * np.array(seen) / CROP_SIDE)).argmin(axis=1)

    def averages(self, prepared: Prepared, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        chosen = boxes[rows]
        result = np.empty((len(chosen), 4, len(prepared[0])), np.float32)
        grids, flat = _flattened(prepared)
        which = self.fitting(chosen, size, grids)
        for number, (grid, cells) in enumerate(zip(grids, flat)):
            result[which == number] = quarter_averages(cells, size, grid, chosen[which == number])
        return result

    def finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.reduction is None:
            raise ValueError("the features have no reduction yet: fit one on the averages of a sample of boxes")
        # Averaging and projecting are both linear: projecting the few cells first is cheaper.
        grids, flat = _flattened(prepared)
        narrow = [self.reduction.narrow(cells) for cells in flat]
        which = self.fitting(boxes, size, grids)
        vectors = np.empty((len(boxes), len(self.reduction.offset)), np.float32)
        for number, (grid, cells) in enumerate(zip(grids, narrow)):
            mine = which == number
            vectors[mine] = self._vectors(cells, grid, size, boxes[mine])
        return vectors, self._cells(narrow[-1], grids[-1])

    def _vectors(self, narrow: np.ndarray, grid: tuple[int, int], size: Size, boxes: np.ndarray) -> np.ndarray:
        """What is in each box less a share of what is around it, (n, d), from one map."""
        assert self.reduction is not None
        quarters = quarter_averages(narrow, size, grid, boxes)
        inside = self.reduction.finish(quarters)
        if self.contrast == 0:
            return inside
        window, area = surroundings(boxes, size)
        seen = area - 1 > SMALLEST_RING
        with_box = box_averages(narrow, size, grid, window)
        ring = (area[:, None] * with_box - quarters.mean(axis=1)) / np.where(seen, area - 1, 1)[:, None]
        around = self.reduction.finish_alike(ring.astype(np.float32))
        return inside - self.contrast * np.where(seen[:, None], around, 0)

    def _cells(self, narrow: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
        """Vectors of the map's cells, or of as many larger ones as are kept: (rows, columns, d)."""
        assert self.reduction is not None
        shrink = min(1.0, (MOST_CELLS / (grid[0] * grid[1])) ** 0.5)
        rows, columns = (max(1, int(count * shrink)) for count in grid)
        down, across = (
            shares(np.arange(few) / few, np.arange(1, few + 1) / few, 1, many)
            for few, many in zip((rows, columns), grid)
        )
        fewer = np.einsum("ry,yxk,cx->rck", down, narrow.reshape(*grid, -1), across, optimize=True)
        return self.reduction.finish_alike(fewer.reshape(rows * columns, -1).astype(np.float32)).reshape(
            rows, columns, -1
        )


def _flattened(maps: Prepared) -> tuple[list[tuple[int, int]], list[np.ndarray]]:
    """Rows and columns of maps, and their cells as rows (cells, channels)."""
    return [(each.shape[1], each.shape[2]) for each in maps], [each.reshape(len(each), -1).T for each in maps]


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

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> list[np.ndarray]:
        """The network's vectors, one array float32 (n, channels)."""
        rows, columns = self.backbone.size or (CROP_SIDE, CROP_SIDE)
        vectors = []
        for start in range(0, len(boxes), CROPS_PER_CALL):
            crops = [resize(_cut(image, box), rows, columns) for box in boxes[start : start + CROPS_PER_CALL]]
            output = self.backbone.run(np.stack(crops))
            vectors.append(output.mean(axis=(2, 3)) if output.ndim == 4 else output)
        return [np.concatenate(vectors)]

    def averages(self, prepared: Prepared, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return prepared[0][rows, None, :]

    def finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.reduction is None:
            vectors = unit(prepared[0])
        else:
            vectors = self.reduction.finish(self.reduction.narrow(prepared[0])[:, None, :])
        return vectors, np.zeros((0, 0, vectors.shape[1]), np.float32)


def _cut(image: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The pixels that a box touches; at least one."""
    x1, y1 = np.floor(box[:2]).astype(int)
    x2, y2 = np.ceil(box[2:]).astype(int)
    return image[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)]
