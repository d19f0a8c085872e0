"""The feature store: boxes and features of many images on disk, written once, read in parts.

::

    STORE/manifest.json          what the features are: settings, hashes, versions
    STORE/index.arrow            of a store with many shards: their indexes together, made anew when they change
    STORE/shard-00000/           up to 64 images
        index.parquet            file, width, height, first row, last row
        boxes.npy                float32 (n, 4)
        objectness.npy           float32 (n,)
        features.npy             int8 (n, d), memory-mapped when read
        scales.npy               float32 (n,): features are scales * int8
        cells.npy                int8 (m, d): the same for the cells of the network's map
        cell_scales.npy          float32 (m,)
        pictures.npy             uint8 (p, 2): edges and figure, pixel by pixel

A shard is written aside and renamed into place, so it is there whole or not at all: an interrupted run resumes
where it stopped, and whatever the number of images only one shard is in memory.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bagwise._utils.atomic import new_folder, write_text
from bagwise._utils.npy import open_array
from bagwise.bags import Bags
from bagwise.discovery.features.arrays import OpenArrays, quantise
from bagwise.discovery.features.index import INDEX, BadIndex, Entry, Index, Stamps, read_shard_index
from bagwise.discovery.sources.columns import Names

FORMAT = 2
TOGETHER = "index.arrow"
SHARD = re.compile(r"shard-\d+")
READ_AT_ONCE = 8
IMAGES_PER_SHARD = 64
SHARDS_APART = 128  # new ones from which all indexes are kept in one file: fewer are read in a few milliseconds
FOLDED = 1 << 16  # images that are Python objects at most

# Type and number of dimensions of the arrays of a shard.
ARRAYS = {
    "boxes": (np.float32, 2),
    "objectness": (np.float32, 1),
    "features": (np.int8, 2),
    "scales": (np.float32, 1),
    "cells": (np.int8, 2),
    "cell_scales": (np.float32, 1),
    "pictures": (np.uint8, 2),
}


class StoreError(ValueError):
    """The store cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Maps:
    """What is kept of an image besides its boxes, so that finding a class in it needs no second look at it.

    Attributes
    ----------
    cells : float32 array (rows, columns, d)
        Features of the cells of the network's map; (0, 0, d) where the features are not made from one.
    edges, figure : uint8 arrays (picture rows, picture columns)
        Strength of boundaries, and how clearly a pixel belongs to the image's subject, 255 for one; small pictures
        of the whole image.
    """

    cells: np.ndarray
    edges: np.ndarray
    figure: np.ndarray

    @classmethod
    def none(cls, width: int) -> "Maps":
        """Nothing kept, for features of some width."""
        return cls(np.zeros((0, 0, width), np.float32), *(np.zeros((0, 0), np.uint8) for _ in range(2)))


@dataclass(frozen=True)
class _Pending:
    """A image of the shard that is being filled."""

    file: str
    size: tuple[int, int]
    boxes: np.ndarray
    objectness: np.ndarray
    values: np.ndarray
    scales: np.ndarray
    grid: tuple[int, int]
    cells: np.ndarray
    cell_scales: np.ndarray
    pictures: np.ndarray


class FeatureStore:
    """A folder of shards.

    Parameters
    ----------
    path : path
    settings : mapping, optional
        What determines the features. Given for a new store it is kept; given for an existing one it must agree.

    Examples
    --------
    >>> with FeatureStore("store", {"backbone": "..."}) as store:  # doctest: +SKIP
    ...     if "cat/1.jpg" not in store:
    ...         store.write("cat/1.jpg", (640, 480), boxes, objectness, features)
    ...     bags = store.bags(["cat/1.jpg"])
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.settings = self._open_manifest(settings)
        self._pending: list[_Pending] = []
        self._arrays = OpenArrays()
        self._recent: dict[str, Entry] = {}  # written since the index was put together
        self._found: dict[str, Entry] = {}  # asked for lately
        self._recent_tables: dict[str, pa.Table] = {}
        self._asked: tuple[Names, np.ndarray] | None = None
        self._together: Stamps = {}  # of the shards in the file that keeps all indexes
        self._stamps = self._shards_there()
        self._index = self._open_index()
        self._next_shard = 1 + max((int(name[6:]) for name in self._stamps), default=-1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()  # what is finished stays finished, even on Ctrl-C
        if kind is None:
            self.consolidate()

    def __contains__(self, file: str) -> bool:
        return file in self._recent or self._index.row(file) is not None

    def __len__(self) -> int:
        return len(self._index) + len(self._recent)

    @property
    def files(self) -> list[str]:
        """Every image of the store, sorted."""
        return list(self.index.names)

    @property
    def index(self) -> Index:
        """Where the rows of every image are."""
        if self._recent:
            self._fold()
        return self._index

    def _fold(self) -> None:
        self._index = self._index.with_shards(self._recent_tables, self._stamps)
        self._recent, self._recent_tables, self._asked = {}, {}, None

    def places(self, files: Iterable[str]) -> np.ndarray:
        """Rows of some images in the `index`, -1 for those that the store does not hold; (n_files,)."""
        index, names, asked = self.index, Names.of(files), self._asked
        if asked is None or asked[0] is not names:  # every class asks for the same images
            asked = self._asked = names, index.names.places(names)
        return asked[1]

    def holds(self, files: Iterable[str]) -> np.ndarray:
        """Which of some images the store holds, bool (n_files,)."""
        return self.places(files) >= 0

    @property
    def shard_numbers(self) -> set[int]:
        """Numbers that shards have."""
        return {int(name[6:]) for name in self._stamps}

    def entry(self, file: str) -> Entry:
        """Where an image's rows are, and its size in pixels."""
        found = self._recent.get(file) or self._found.get(file)
        if found is not None:
            return found
        row = self._index.row(file)
        if row is None:
            raise StoreError(f"{self.path} does not hold {file!r}")
        if len(self._found) >= FOLDED:
            self._found = {}
        found = self._found[file] = self._index.entry(row)
        return found

    def write(
        self,
        file: str,
        size: tuple[int, int],
        boxes: np.ndarray,
        objectness: np.ndarray,
        features: np.ndarray,
        maps: Maps | None = None,
    ) -> None:
        """Add an image.

        Parameters
        ----------
        file : str
        size : (width, height) in pixels
        boxes : float array (n, 4)
        objectness : float array (n,)
        features : float array (n, d)
            Kept to about half a percent of each row's largest value.
        maps : Maps, optional
        """
        if file in self or any(p.file == file for p in self._pending):
            raise StoreError(f"{self.path} already holds {file!r}")
        n = len(boxes)
        if n == 0 or boxes.shape != (n, 4) or objectness.shape != (n,) or features.ndim != 2 or len(features) != n:
            raise StoreError(
                f"{file!r}: boxes, objectness and features should have the same number of rows, at least one"
            )
        maps = maps or Maps.none(features.shape[1])
        if maps.cells.shape[2:] != features.shape[1:] or maps.edges.shape != maps.figure.shape:
            raise StoreError(f"{file!r}: cells should be as wide as features, and edges and figure of one size")
        if not all(np.isfinite(values).all() for values in (features, objectness, maps.cells)):
            raise StoreError(f"{file!r}: its features are not finite")
        values, scales = quantise(features)
        cells, cell_scales = quantise(maps.cells.reshape(-1, features.shape[1]))
        pictures = np.stack([maps.edges, maps.figure], axis=2).astype(np.uint8)
        boxes, objectness = boxes.astype(np.float32), objectness.astype(np.float32)
        grid = (maps.cells.shape[0], maps.cells.shape[1])
        self._pending.append(
            _Pending(file, size, boxes, objectness, values, scales, grid, cells, cell_scales, pictures)
        )
        if len(self._pending) >= IMAGES_PER_SHARD:
            self.flush()

    def flush(self) -> None:
        """Write the images that wait for their shard to be full."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        starts, cell_starts, picture_starts = (
            np.concatenate([[0], np.cumsum(counts)])
            for counts in zip(*((len(p.boxes), len(p.cells), p.pictures[..., 0].size) for p in pending))
        )
        index = {
            "file": [p.file for p in pending],
            "width": [p.size[0] for p in pending],
            "height": [p.size[1] for p in pending],
            "start": starts[:-1],
            "stop": starts[1:],
            "cell_rows": [p.grid[0] for p in pending],
            "cell_columns": [p.grid[1] for p in pending],
            "cell_start": cell_starts[:-1],
            "picture_rows": [p.pictures.shape[0] for p in pending],
            "picture_columns": [p.pictures.shape[1] for p in pending],
            "picture_start": picture_starts[:-1],
        }
        arrays = {
            "boxes": np.concatenate([p.boxes for p in pending]),
            "objectness": np.concatenate([p.objectness for p in pending]),
            "features": np.concatenate([p.values for p in pending]),
            "scales": np.concatenate([p.scales for p in pending]),
            "cells": np.concatenate([p.cells for p in pending]),
            "cell_scales": np.concatenate([p.cell_scales for p in pending]),
            "pictures": np.concatenate([p.pictures.reshape(-1, 2) for p in pending]),
        }
        shard = self.path / f"shard-{self._next_shard:05d}"
        with new_folder(shard) as aside:
            table = pa.table(index, schema=INDEX)
            pq.write_table(table, aside / "index.parquet", compression="zstd")
            for name, array in arrays.items():
                np.save(aside / f"{name}.npy", array)
        self._next_shard += 1
        self._stamps[shard.name] = stamp(shard)
        self._recent_tables[shard.name] = table
        for file, *numbers in zip(*(column.to_pylist() for column in table.columns)):
            self._recent[file] = Entry(shard.name, *numbers)
        if len(self._recent) >= FOLDED:
            self._fold()

    def consolidate(self) -> bool:
        """Keep the indexes of all shards in one file, once so many are new that reading them one by one takes time.

        Returns
        -------
        bool
            Whether there was a reason to write the file.
        """
        if len(self._stamps.items() ^ self._together.items()) < SHARDS_APART:
            return False
        self.index.write(self.path / TOGETHER)
        self._together = dict(self._stamps)
        return True

    def boxes(self, file: str) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and objectness (n,) of an image."""
        entry = self.entry(file)
        rows = self._rows(entry)
        return self._array(entry.shard, "boxes")[rows], self._array(entry.shard, "objectness")[rows]

    def features(self, file: str) -> np.ndarray:
        """Features of an image, float32 (n, d)."""
        values, scales = self.kept_features(file)
        return values * scales[:, None]

    def kept_features(self, file: str) -> tuple[np.ndarray, np.ndarray]:
        """Features of an image as they lie on disk: int8 (n, d), and float32 (n,) to multiply each row by."""
        entry = self.entry(file)
        rows = self._rows(entry)
        return self._array(entry.shard, "features")[rows], self._array(entry.shard, "scales")[rows]

    def maps(self, file: str) -> Maps:
        """What is kept of an image besides its boxes."""
        entry = self.entry(file)
        cells = self._part(entry, "cells", entry.cell_start, entry.cell_rows * entry.cell_columns)
        scales = self._part(entry, "cell_scales", entry.cell_start, len(cells))
        size = (entry.picture_rows, entry.picture_columns)
        pictures = self._part(entry, "pictures", entry.picture_start, size[0] * size[1])
        edges, figure = (np.ascontiguousarray(pictures[:, i]).reshape(size) for i in (0, 1))
        grid = (entry.cell_rows, entry.cell_columns, cells.shape[1])
        return Maps((cells * scales[:, None]).reshape(grid), edges, figure)

    def bags(self, files: Sequence[str], priors: Iterable[np.ndarray] | None = None) -> Bags:
        """One bag per image: only the rows asked for are read.

        Parameters
        ----------
        files : sequence of str
        priors : arrays (n_i,), optional
            Log-odds offsets of each image's boxes.
        """
        entries = [self.entry(file) for file in files]
        if not entries:
            raise StoreError("no image was asked for")
        for entry in entries:
            self._rows(entry)
        offsets = np.concatenate([[0], np.cumsum([len(entry) for entry in entries])]).astype(np.int64)
        width = self._array(entries[0].shard, "features").shape[1]
        instances = np.empty((int(offsets[-1]), width), np.float32)
        for file, start, stop in zip(files, offsets, offsets[1:]):
            instances[start:stop] = self.features(file)
        prior = None if priors is None else np.concatenate(list(priors))
        return Bags.from_arrays(instances, offsets, prior=prior)

    def _rows(self, entry: Entry) -> slice:
        """The rows of an image, once it is sure that its shard has them: an index may promise anything."""
        if not 0 <= entry.start < entry.stop <= len(self._array(entry.shard, "features")):
            raise _damaged(self.path / entry.shard / "index.parquet", "it names rows that are not there")
        return slice(entry.start, entry.stop)

    def _part(self, entry: Entry, name: str, start: int, count: int) -> np.ndarray:
        """Some rows of an array, once it is sure that it has them."""
        array = self._array(entry.shard, name)
        if start < 0 or count < 0 or start + count > len(array):
            raise _damaged(self.path / entry.shard / "index.parquet", "it names rows that are not there")
        return array[start : start + count]

    def _array(self, shard: str, name: str) -> np.ndarray:
        return self._arrays.get(shard, name, self._read_array)

    def _read_array(self, shard: str, name: str) -> np.ndarray:
        file = self.path / shard / f"{name}.npy"
        try:
            array = np.asarray(open_array(file))  # as mapped as before; slices of a `memmap` take ten times as long
        except FileNotFoundError:
            raise StoreError(f"{file} is missing; delete {file.parent}, and its images are done again") from None
        except (OSError, ValueError) as error:
            raise _damaged(file, error) from None
        kind, dimensions = ARRAYS[name]
        if array.dtype != kind or array.ndim != dimensions:
            raise _damaged(file, f"it should hold {np.dtype(kind)} in {dimensions} dimensions")
        return array

    def _open_manifest(self, settings: Mapping[str, Any] | None) -> dict[str, Any]:
        file = self.path / "manifest.json"
        if file.is_file():
            try:
                manifest = json.loads(file.read_text(encoding="utf-8"))
                found = manifest["settings"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise StoreError(f"{file} is damaged ({error}); delete {self.path} to start again") from None
            if manifest.get("format") != FORMAT:
                raise StoreError(f"{self.path} is of format {manifest.get('format')}; this version reads {FORMAT}")
            if settings is not None:
                wanted = json.loads(json.dumps(dict(settings)))
                differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
                if differing:
                    raise StoreError(
                        f"{self.path} was made with other settings ({', '.join(differing)}): "
                        "choose another output folder, or delete this one"
                    )
            return found
        if settings is None:
            raise StoreError(f"{self.path} is not a feature store: it has no manifest.json")
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps({"format": FORMAT, "settings": dict(settings)}, indent=2) + "\n")
        return json.loads(json.dumps(dict(settings)))

    def _shards_there(self) -> dict[str, str]:
        """The shards, sorted, with what changes when their index does."""
        names = [name for name in os.listdir(self.path) if SHARD.fullmatch(name)]
        return {name: stamp(f"{self.path}/{name}") for name in sorted(names)}

    def _open_index(self) -> Index:
        """That of all shards: from the file that keeps them together where a shard is as it was then."""
        together, file = Index.empty(), self.path / TOGETHER
        if file.is_file():
            try:
                together = Index.read(file)
            except BadIndex:  # it holds nothing that the shards do not hold
                together = Index.empty()
        self._together = together.stamps
        same = {name for name, seen in self._stamps.items() if seen and together.stamps.get(name) == seen}
        apart = [name for name in self._stamps if name not in same]
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            tables = dict(zip(apart, pool.map(self._shard_index, apart)))
        return together.only(same).with_shards(tables, self._stamps)

    def _shard_index(self, shard: str) -> pa.Table:
        file = self.path / shard / "index.parquet"
        try:
            return read_shard_index(file)
        except BadIndex as error:
            raise _damaged(file, error) from None


def stamp(shard: str | Path) -> str:
    """What changes when the index of a shard does; empty when it has none."""
    try:
        status = os.stat(f"{shard}/index.parquet")  # paths as text: there may be thousands
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size}"


def _damaged(file: Path, reason: object) -> StoreError:
    return StoreError(f"{file} is damaged ({reason}); delete {file.parent}, and its images are done again")
