"""Features of boxes made on a graphics card: what `RoiFeatures` does, with everything after decoding kept there.

The answers are those of the CPU to rounding, far below the store's steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from bagwise._utils.torch_network import TorchNetwork, alone_on_card
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.regions import (
    MOST_CELLS,
    SMALLEST_RING,
    Prepared,
    RoiFeatures,
    Size,
    shares,
    surroundings,
)

# Pillow weighs pixels with so many binary digits, and rounds to a byte after each direction.
PILLOW_BITS = 22


class CardRoiFeatures(RoiFeatures):
    """`RoiFeatures` for a backbone that torch runs on a device; maps stay there until the vectors are made."""

    @property
    def _network(self) -> TorchNetwork:
        network = self.backbone.runtime
        assert isinstance(network, TorchNetwork)
        return network

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> list[Any]:
        return alone_on_card(lambda: self._prepare(image))

    def _prepare(self, image: np.ndarray) -> list[Any]:
        network, torch = self._network, self._network.torch
        with network.exactly():
            pixels = torch.from_numpy(np.array(image)).to(network.device)
            maps = []
            for side in self.short_sides:
                rows, columns = self.backbone.seen_size(image.shape[:2], side)
                output = network.run(self._normalised(resized(torch, pixels, rows, columns)), network.outputs[:1])[0]
                if output.ndim != 4:
                    raise ValueError(self.backbone.no_map())
                maps.append(output[0].float())
        return maps

    def _normalised(self, pixels: Any) -> Any:
        """float (1, 3, rows, columns), or with channels last, from pixels (rows, columns, 3)."""
        torch, normalisation = self._network.torch, self.backbone.normalisation
        if normalisation.order == "BGR":
            pixels = pixels.flip(2)
        mean, deviation = (pixels.new_tensor(v) for v in (normalisation.mean, normalisation.deviation))
        batch = ((pixels - mean) / deviation)[None]
        dtype = torch.float16 if self.backbone.runtime.dtype == np.float16 else torch.float32
        return (batch if self.backbone.channels_last else batch.permute(0, 3, 1, 2)).to(dtype).contiguous()

    def averages(self, prepared: Prepared, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return alone_on_card(lambda: self._averages(prepared, size, boxes[rows]))

    def _averages(self, prepared: Prepared, size: Size, chosen: np.ndarray) -> np.ndarray:
        result = np.empty((len(chosen), 4, len(prepared[0])), np.float32)
        grids, flat = _flattened(prepared)
        which = self.fitting(chosen, size, grids)
        with self._network.exactly():
            for number, (grid, cells) in enumerate(zip(grids, flat)):
                mine = which == number
                result[mine] = self._parts(cells, size, grid, chosen[mine])[:, :4].cpu().numpy()
        return result

    def finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.reduction is None:
            raise ValueError("the features have no reduction yet: fit one on the averages of a sample of boxes")
        return alone_on_card(lambda: self._finish(prepared, size, boxes))

    def _finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grids, flat = _flattened(prepared)
        which = self.fitting(boxes, size, grids)
        with self._network.exactly():
            mean, channels, *_, offset = self._reduction()
            vectors = np.empty((len(boxes), len(offset)), np.float32)
            narrow = [(cells - mean) @ channels for cells in flat]
            for number, (grid, cells) in enumerate(zip(grids, narrow)):
                mine = which == number
                if mine.any():
                    vectors[mine] = self._vectors_on_card(cells, grid, size, boxes[mine]).cpu().numpy()
            return vectors, self._cells_on_card(narrow[-1], grids[-1]).cpu().numpy()

    def _reduction(self) -> tuple[Any, ...]:
        """Mean, channels, columns by part, columns of a box whose parts are alike, and offset, on the card."""
        reduction, network = self.reduction, self._network
        assert reduction is not None
        if self._copied is None or self._copied[0] is not reduction:
            by_part = reduction.columns.reshape(-1, reduction.columns.shape[2])
            arrays = (reduction.mean, reduction.channels, by_part, reduction.columns.sum(axis=0), reduction.offset)
            tensors = tuple(network.torch.from_numpy(np.array(array)).to(network.device) for array in arrays)
            self._copied = (reduction, tensors)
        return self._copied[1]

    _copied: tuple[Reduction, tuple[Any, ...]] | None = None

    def _vectors_on_card(self, narrow: Any, grid: tuple[int, int], size: Size, boxes: np.ndarray) -> Any:
        """As `RoiFeatures._vectors`."""
        torch, (_, _, columns, alike, offset) = self._network.torch, self._reduction()
        parts = self._parts(narrow, size, grid, boxes)
        quarters = parts[:, :4]
        inside = _unit(quarters.flatten(1) @ columns - offset)
        if self.contrast == 0:
            return inside
        area = torch.from_numpy(surroundings(boxes, size)[1].astype(np.float32)).to(narrow.device)[:, None]
        seen = area - 1 > SMALLEST_RING
        ring = (area * parts[:, 4] - quarters.mean(dim=1)) / torch.where(seen, area - 1, 1)
        return inside - self.contrast * torch.where(seen, _unit(ring @ alike - offset), 0)

    def _cells_on_card(self, narrow: Any, grid: tuple[int, int]) -> Any:
        """As `RoiFeatures._cells`."""
        torch, (_, _, _, alike, offset) = self._network.torch, self._reduction()
        shrink = min(1.0, (MOST_CELLS / (grid[0] * grid[1])) ** 0.5)
        few = [max(1, int(count * shrink)) for count in grid]
        down, across = (
            torch.from_numpy(shares(np.arange(n) / n, np.arange(1, n + 1) / n, 1, many)).to(narrow)
            for n, many in zip(few, grid)
        )
        fewer = torch.einsum("ry,yxk,cx->rck", down, narrow.reshape(*grid, -1), across)
        return _unit(fewer @ alike - offset)

    def _parts(self, cells: Any, size: Size, grid: tuple[int, int], boxes: np.ndarray) -> Any:
        """Averages of a map, one row per cell, over the quarters of boxes and their windows: (n, 5, channels)."""
        torch, window = self._network.torch, surroundings(boxes, size)[0]
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2
        sides = np.empty((2, 3, len(boxes), max(grid)), np.float32)  # along y and x: first half, second half, window
        for axis, (length, count) in enumerate(((size[1], grid[0]), (size[0], grid[1]))):
            i = 1 - axis
            bounds = ((boxes[:, i], middle[:, i]), (middle[:, i], boxes[:, i + 2]), (window[:, i], window[:, i + 2]))
            for part, (low, high) in enumerate(bounds):
                sides[axis, part, :, :count] = shares(low, high, length, count)
        copied = torch.from_numpy(sides).to(cells.device)
        down, across = copied[0][[0, 0, 1, 1, 2], :, : grid[0]], copied[1][[0, 1, 0, 1, 2], :, : grid[1]]
        weights = down[:, :, :, None] * across[:, :, None, :]
        averages = weights.reshape(5 * len(boxes), len(cells)) @ cells
        return averages.reshape(5, len(boxes), cells.shape[1]).transpose(0, 1)


def _flattened(maps: Prepared) -> tuple[list[tuple[int, int]], list[Any]]:
    """Rows and columns of maps, and their cells as rows (cells, channels)."""
    return [(each.shape[1], each.shape[2]) for each in maps], [each.reshape(len(each), -1).T for each in maps]


def _unit(vectors: Any) -> Any:
    """Rows divided by their length; rows of zeros stay."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=float(np.finfo(np.float32).tiny))


def resized(torch: Any, image: Any, rows: int, columns: int) -> Any:
    """What `resize` does on the CPU: float32 (rows, columns, 3) of whole numbers, the width first.

    Parameters
    ----------
    torch : module
    image : uint8 tensor (height, width, 3)
    rows, columns : int
    """
    height, width = image.shape[:2]
    wide = image.double()
    if columns != width:
        wide = _rounded(torch, _weights(torch, width, columns, str(image.device)) @ wide)
    if rows != height:
        tall = _weights(torch, height, rows, str(image.device)) @ wide.reshape(height, -1)
        wide = _rounded(torch, tall).reshape(rows, columns, 3)
    return wide.float()


def _rounded(torch: Any, sums: Any) -> Any:
    return torch.floor((sums + (1 << (PILLOW_BITS - 1))) / (1 << PILLOW_BITS)).clamp(0, 255)


@lru_cache(maxsize=256)
def _weights(torch: Any, size: int, wanted: int, device: str) -> Any:
    """float64 (wanted, size): how much each pixel of a line weighs in each of a line of another size."""
    return torch.from_numpy(pillow_weights(size, wanted)).to(device)


def pillow_weights(size: int, wanted: int) -> np.ndarray:
    """Weights of Pillow's bilinear filter, which averages where it shrinks, as whole numbers of 2^-22."""
    scale = size / wanted
    stretch = max(scale, 1.0)
    centre = (np.arange(wanted)[:, None] + 0.5) * scale
    place = np.arange(size)[None, :]
    first = np.maximum((centre - stretch + 0.5).astype(int), 0)
    last = np.minimum((centre + stretch + 0.5).astype(int), size)
    weights = np.maximum(1 - np.abs((place + 0.5 - centre) * (1 / stretch)), 0)
    weights = np.where((place >= first) & (place < last), weights, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.floor(weights * (1 << PILLOW_BITS) + 0.5)
