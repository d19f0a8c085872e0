"""Features of boxes made on a graphics card: what `RoiFeatures` does, with everything after decoding kept there.

The answers are those of the CPU to rounding, far below the store's steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bagwise._utils.torch_network import BATCH, TorchNetwork, alone_on_card, in_batches
from bagwise.discovery.features.reduction import Algebra, Reduction
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
# Boxes are filled up to multiples of this many, so that few numbers of them occur; see `BATCH` for why that matters.
BOXES_ROUNDED = 128


class CardRoiFeatures(RoiFeatures):
    """`RoiFeatures` for a backbone that torch runs on a device, of several images at once.

    Maps stay on the device until the vectors are made.
    """

    @property
    def _network(self) -> TorchNetwork:
        network = self.backbone.runtime
        assert isinstance(network, TorchNetwork)
        return network

    def prepare(self, image: np.ndarray, boxes: np.ndarray) -> list[Any]:
        return self.prepare_all([image])[0]

    def prepare_all(self, images: Sequence[np.ndarray]) -> list[list[Any]]:
        """What `prepare` returns for each of several images."""
        return alone_on_card(lambda: self._prepare_all(images))

    def _prepare_all(self, images: Sequence[np.ndarray]) -> list[list[Any]]:
        network = self._network
        prepared: list[list[Any]] = [[] for _ in images]
        with network.exactly():
            pixels = [network.torch.from_numpy(np.array(image)).to(network.device) for image in images]
            for side in self.short_sides:
                seen = [self.backbone.seen_size(image.shape[:2], side) for image in images]
                for batch in in_batches(seen, self.backbone.batch or BATCH):
                    planes = self._planes(pixels, dict.fromkeys(batch), seen[batch[0]])
                    output = network.run(network.torch.stack([planes[i] for i in batch]), network.outputs[:1])[0]
                    if output.ndim != 4:
                        raise ValueError(self.backbone.no_map())
                    for place, i in enumerate(dict.fromkeys(batch)):
                        prepared[i].append(output[place].float())
        return prepared

    def _planes(self, pixels: Sequence[Any], numbers: Iterable[int], seen: tuple[int, int]) -> dict[int, Any]:
        """Some of the images in the size in which the network sees them, as it wants them."""
        torch = self._network.torch
        alike: dict[tuple[int, ...], list[int]] = {}
        for i in numbers:
            alike.setdefault(tuple(pixels[i].shape), []).append(i)
        planes: dict[int, Any] = {}
        for those in alike.values():
            made = self._normalised(resized(torch, torch.stack([pixels[i] for i in those]), *seen))
            planes.update(zip(those, made))
        return planes

    def _normalised(self, planes: Any) -> Any:
        """Planes (n, 3, rows, columns) of pixels as the network wants them."""
        torch, normalisation = self._network.torch, self.backbone.normalisation
        if normalisation.order == "BGR":
            planes = planes.flip(1)
        mean, deviation = self._levels
        planes = (planes - mean) / deviation
        dtype = torch.float16 if self.backbone.runtime.dtype == np.float16 else torch.float32
        return (planes.permute(0, 2, 3, 1) if self.backbone.channels_last else planes).to(dtype).contiguous()

    @cached_property
    def _levels(self) -> tuple[Any, Any]:
        """Mean and deviation of each plane, on the device: copied once, because a copy waits for all work before it."""
        torch, normalisation = self._network.torch, self.backbone.normalisation
        values = (torch.tensor(v, dtype=torch.float32) for v in (normalisation.mean, normalisation.deviation))
        mean, deviation = (each[:, None, None].to(self._network.device) for each in values)
        return mean, deviation

    @property
    def algebra(self) -> Algebra:
        """What a reduction is learned with, on the device."""
        torch = self._network.torch
        return Algebra(
            self._there(torch.matmul),
            self._there(lambda rows: rows.T @ rows),
            self._there(lambda covariance: torch.linalg.eigh(covariance)[1]),
        )

    def _there(self, function: Callable[..., Any]) -> Callable[..., np.ndarray]:
        """A function of tensors as one of arrays."""

        def there(*arrays: np.ndarray) -> np.ndarray:
            with self._network.exactly():
                tensors = [self._network.torch.from_numpy(array).to(self._network.device) for array in arrays]
                found: np.ndarray = function(*tensors).cpu().numpy()
            return found

        return lambda *arrays: alone_on_card(lambda: there(*arrays))

    def averages(self, prepared: Prepared, size: Size, boxes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return alone_on_card(lambda: self._averages(prepared, size, boxes[rows]))

    def _averages(self, prepared: Prepared, size: Size, chosen: np.ndarray) -> np.ndarray:
        grids = _grids(prepared)
        which = self.fitting(chosen, size, grids)
        result = np.empty((len(chosen), 4, len(prepared[0])), np.float32)
        with self._network.exactly():
            where = self._where([size], [chosen], len(chosen))
            for number, (map, grid) in enumerate(zip(prepared, grids)):
                parts = self._parts(_rows_of(self._network.torch, [map]), grid, where)[0, :4].transpose(0, 1)
                result[which == number] = parts.cpu().numpy()[which == number]
        return result

    def finish(self, prepared: Prepared, size: Size, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.finish_all([prepared], [size], [boxes])[0]

    def finish_all(
        self, prepared: Sequence[Prepared], sizes: Sequence[Size], boxes: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """What `finish` returns for each of several images."""
        if self.reduction is None:
            raise ValueError("the features have no reduction yet: fit one on the averages of a sample of boxes")
        return alone_on_card(lambda: self._finish_all(prepared, sizes, boxes))

    def _finish_all(
        self, prepared: Sequence[Prepared], sizes: Sequence[Size], boxes: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        rounded = [-(-len(each) // BOXES_ROUNDED) * BOXES_ROUNDED for each in boxes]
        made = []
        with self._network.exactly():
            for batch in in_batches([(*_grids(each), count) for each, count in zip(prepared, rounded)]):
                where = self._where([sizes[i] for i in batch], [boxes[i] for i in batch], rounded[batch[0]])
                made.append((batch, *self._finish_batch([prepared[i] for i in batch], where)))
            done: dict[int, tuple[np.ndarray, np.ndarray]] = {}
            # The card does all that before the first answer is waited for.
            for batch, *answers in made:
                vectors, cells = (each.cpu().numpy() for each in answers)
                for place, i in enumerate(dict.fromkeys(batch)):
                    done[i] = vectors[place, : len(boxes[i])], cells[place]
        return [done[i] for i in range(len(prepared))]

    def _finish_batch(self, prepared: Sequence[Prepared], where: _Where) -> tuple[Any, Any]:
        """As `RoiFeatures.finish`, of images whose maps are alike: (images, boxes, d), (images, rows, columns, d)."""
        mean, channels, *_ = self._reduction()
        grids = _grids(prepared[0])
        which = [self.fitting(*each, grids) for each in zip(where.boxes, where.sizes)]
        fits = self._network.torch.from_numpy(np.stack(which)).to(self._network.device)[:, :, None]
        vectors = narrow = None
        for number, grid in enumerate(grids):
            narrow = (_rows_of(self._network.torch, [maps[number] for maps in prepared]) - mean) @ channels
            found = self._vectors_on_card(narrow, grid, where)
            vectors = found if vectors is None else self._network.torch.where(fits == number, found, vectors)
        return vectors, self._cells_on_card(narrow, grids[-1])

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

    def _vectors_on_card(self, narrow: Any, grid: tuple[int, int], where: _Where) -> Any:
        """As `RoiFeatures._vectors`."""
        torch, (_, _, columns, alike, offset) = self._network.torch, self._reduction()
        parts = self._parts(narrow, grid, where)
        quarters = parts[:, :4]
        inside = _unit(quarters.transpose(1, 2).flatten(2) @ columns - offset)
        if self.contrast == 0:
            return inside
        area = where.area[:, :, None]
        seen = area - 1 > SMALLEST_RING
        ring = (area * parts[:, 4] - quarters.mean(dim=1)) / torch.where(seen, area - 1, 1)
        return inside - self.contrast * torch.where(seen, _unit(ring @ alike - offset), 0)

    def _cells_on_card(self, narrow: Any, grid: tuple[int, int]) -> Any:
        """As `RoiFeatures._cells`."""
        torch, (_, _, _, alike, offset) = self._network.torch, self._reduction()
        shrink = min(1.0, (MOST_CELLS / (grid[0] * grid[1])) ** 0.5)
        few = [max(1, int(count * shrink)) for count in grid]
        down, across = (_cell_shares(torch, *each, str(narrow.device)) for each in zip(few, grid))
        fewer = (down @ narrow.reshape(len(narrow), grid[0], -1)).unflatten(2, (grid[1], -1))
        fewer = across @ fewer
        return _unit(fewer @ alike - offset)

    def _where(self, sizes: Sequence[Size], boxes: Sequence[np.ndarray], count: int) -> _Where:
        """Boxes of several images, as many of each: the first of an image stands for those that are missing."""
        torch, device = self._network.torch, self._network.device
        filled = [np.concatenate([each, np.repeat(each[:1], count - len(each), axis=0)]) for each in boxes]
        around = [surroundings(each, size) for each, size in zip(filled, sizes)]
        area = np.stack([area for _, area in around]).astype(np.float32)
        corners = np.stack(filled)
        middle = (corners[..., :2] + corners[..., 2:]) / 2
        window = np.stack([window for window, _ in around])
        sides = []
        for axis in (1, 0):
            low, high = corners[..., axis], corners[..., axis + 2]
            bounds = ((low, middle[..., axis]), (middle[..., axis], high), (window[..., axis], window[..., axis + 2]))
            length = np.array([size[axis] for size in sizes], np.float64)
            sides.append((np.array(bounds, np.float64), length))
        put = [tuple(torch.from_numpy(each).to(device) for each in side) for side in sides]
        return _Where(sizes, filled, torch.from_numpy(area).to(device), (put[0], put[1]))

    def _parts(self, cells: Any, grid: tuple[int, int], where: _Where) -> Any:
        """Averages over the quarters of boxes and their windows: (images, 5, boxes, channels).

        Parameters
        ----------
        cells : tensor (images, rows * columns, channels)
        """
        torch = self._network.torch
        down, across = (_shares(torch, bounds, length, count) for (bounds, length), count in zip(where.sides, grid))
        down = torch.stack([down[0], down[0], down[1], down[1], down[2]])
        across = torch.stack([across[0], across[1], across[0], across[1], across[2]])
        weights = down[..., None] * across[..., None, :]
        parts, images, boxes = weights.shape[:3]
        averages = weights.transpose(0, 1).reshape(images, parts * boxes, -1) @ cells
        return averages.reshape(images, parts, boxes, -1)


@dataclass(frozen=True)
class _Where:
    """Where the boxes of several images lie; as many boxes in each.

    Attributes
    ----------
    sizes : list of (width, height)
    boxes : list of arrays (n, 4)
    area : float32 tensor (images, n)
        Of the window around each box, in areas of the box.
    sides : two pairs of float64 tensors (3, 2, images, n), (images,)
        Along y and along x: where each box's first half, its second and its window begin and end, and the length of
        the image.
    """

    sizes: Sequence[Size]
    boxes: Sequence[np.ndarray]
    area: Any
    sides: tuple[Any, Any]


def _shares(torch: Any, bounds: Any, length: Any, cells: int) -> Any:
    """As `shares`: float32 (3, images, n, cells)."""
    edges = torch.arange(cells + 1, device=bounds.device) * (length / cells)[:, None, None]
    inside = torch.minimum(bounds[:, 1, ..., None], edges[..., 1:])
    inside = (inside - torch.maximum(bounds[:, 0, ..., None], edges[..., :-1])).clamp(min=0)
    return (inside / inside.sum(dim=-1, keepdim=True)).float()


@lru_cache(maxsize=256)
def _cell_shares(torch: Any, few: int, many: int, device: str) -> Any:
    """float32 (few, many): how much of each of a few cells of a side lies in each of many."""
    sides = np.arange(few) / few, np.arange(1, few + 1) / few
    return torch.from_numpy(shares(*sides, 1, many)).to(device, torch.float32)


def _grids(maps: Prepared) -> tuple[tuple[int, int], ...]:
    """Rows and columns of maps."""
    return tuple((each.shape[1], each.shape[2]) for each in maps)


def _rows_of(torch: Any, maps: Sequence[Any]) -> Any:
    """The cells of maps (channels, rows, columns) that are alike, as rows: (maps, cells, channels)."""
    return torch.stack([each.flatten(1) for each in maps]).transpose(1, 2)


def _unit(vectors: Any) -> Any:
    """Rows divided by their length; rows of zeros stay."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=float(np.finfo(np.float32).tiny))


def resized(torch: Any, images: Any, rows: int, columns: int) -> Any:
    """What `resize` does on the CPU: float32 planes (n, 3, rows, columns) of whole numbers, the width first.

    Parameters
    ----------
    torch : module
    images : uint8 tensor (n, height, width, 3)
    rows, columns : int
    """
    planes = images.permute(0, 3, 1, 2).int().contiguous()
    for axis, wanted in ((3, columns), (2, rows)):
        if planes.shape[axis] != wanted:
            planes = _filtered(torch, planes, axis, wanted)
    return planes.float()


def _filtered(torch: Any, planes: Any, axis: int, wanted: int) -> Any:
    """Planes whose rows (axis 2) or columns (axis 3) are made as many as wanted, in whole numbers as Pillow does it."""
    places, taps = _taps(torch, planes.shape[axis], wanted, str(planes.device))
    total: Any = 1 << (PILLOW_BITS - 1)  # half of one
    for place, tap in zip(places, taps):
        total = total + planes.index_select(axis, place) * (tap if axis == 3 else tap[:, None])
    return (total >> PILLOW_BITS).clamp_(0, 255)


@lru_cache(maxsize=256)
def _taps(torch: Any, size: int, wanted: int, device: str) -> tuple[Any, Any]:
    """Which pixels of a line count in each of a line of another size, and how much: int32 (k, wanted) both."""
    first, taps = pillow_weights(size, wanted)
    places = np.minimum(first + np.arange(taps.shape[1])[:, None], size - 1)
    return tuple(torch.from_numpy(np.ascontiguousarray(each, np.int32)).to(device) for each in (places, taps.T))


def pillow_weights(size: int, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of Pillow's bilinear filter, which averages where it shrinks, as whole numbers of 2^-22.

    Returns
    -------
    first : int64 array (wanted,)
        The first pixel of a line that counts in each of the new ones.
    taps : float64 array (wanted, k)
        Its weight and those of the pixels after it; zero beyond the last that counts.
    """
    scale = size / wanted
    stretch = max(scale, 1.0)
    centre = (np.arange(wanted) + 0.5) * scale
    first = np.maximum((centre - stretch + 0.5).astype(int), 0)
    last = np.minimum((centre + stretch + 0.5).astype(int), size)
    place = first[:, None] + np.arange((last - first).max())
    taps = np.maximum(1 - np.abs((place + 0.5 - centre[:, None]) * (1 / stretch)), 0)
    taps = np.where(place < last[:, None], taps, 0)
    taps /= taps.sum(axis=1, keepdims=True)
    return first, np.floor(taps * (1 << PILLOW_BITS) + 0.5)
