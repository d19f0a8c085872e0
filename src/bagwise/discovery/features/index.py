"""Where the rows of each image are: the index of a store, in columns, so that a million images open at once.

Every shard holds the index of its own images. Of a store with many shards all of them are kept together in one more
file, ``index.arrow``, that is memory-mapped; it names the shards that it was made from and how each of them looked,
so that one that is gone, was made again or came later is noticed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bagwise._utils.atomic import replacing
from bagwise.discovery.sources.columns import Names

INDEX = pa.schema(
    [
        ("file", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("cell_rows", pa.int32()),
        ("cell_columns", pa.int32()),
        ("cell_start", pa.int64()),
        ("picture_rows", pa.int32()),
        ("picture_columns", pa.int32()),
        ("picture_start", pa.int64()),
    ]
)
# The same for images of many shards; names of a hundred million images are more than 32-bit offsets can tell apart.
TOGETHER = pa.schema([("file", pa.large_string()), *list(INDEX)[1:], ("shard", pa.int32())])
STAMPS = b"bagwise shards"
FORMAT = 1

Stamps = Mapping[str, str]  # shard -> what changes when its index does


class BadIndex(ValueError):
    """The index of a shard cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the rows of one image are; see `INDEX`."""

    shard: str
    width: int
    height: int
    start: int
    stop: int
    cell_rows: int
    cell_columns: int
    cell_start: int
    picture_rows: int
    picture_columns: int
    picture_start: int

    def __len__(self) -> int:
        return self.stop - self.start


class Index:
    """The images of some shards, sorted by name, each once.

    Parameters
    ----------
    table : pyarrow.Table
        As `TOGETHER`, in one piece; "shard" is a place among the stamps.
    stamps : mapping of str to str
        The shards, and what changes when their index does.
    """

    def __init__(self, table: pa.Table, stamps: Stamps) -> None:
        self.table = table
        self.stamps = dict(stamps)
        self._shards = list(stamps)
        self.names = Names(_whole(table["file"]))
        # The bytes of the names one after another, and where each begins: twenty times faster to search than Arrow's.
        _, offsets, text = self.names.array.buffers()
        self._text = memoryview(text or b"")
        self._offsets = memoryview(offsets or bytes(8)).cast("B").cast("q")[self.names.array.offset :]
        self.columns: dict[str, np.ndarray] = {
            name: _whole(table[name]).to_numpy(zero_copy_only=False) for name in TOGETHER.names[1:]
        }

    @classmethod
    def empty(cls) -> Index:
        """No image."""
        return cls(TOGETHER.empty_table(), {})

    def __len__(self) -> int:
        return len(self.names)

    def row(self, file: str) -> int | None:
        """The row of an image, None when there is no such image."""
        wanted, text, stops = file.encode("utf-8", "surrogatepass"), self._text, self._offsets
        low, high = 0, len(self.names)
        while low < high:
            middle = (low + high) // 2
            if bytes(text[stops[middle] : stops[middle + 1]]) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.names) and bytes(text[stops[low] : stops[low + 1]]) == wanted else None

    def entry(self, row: int) -> Entry:
        """Where the rows of an image are."""
        return Entry(
            self._shards[self.columns["shard"][row]], *(int(self.columns[name][row]) for name in INDEX.names[1:])
        )

    def with_shards(self, tables: Mapping[str, pa.Table], stamps: Stamps) -> Index:
        """The index with more shards; of an image in two the shard whose name comes last counts."""
        if not tables:
            return self
        known = {**self.stamps, **{name: stamps[name] for name in tables}}
        parts = [self.table]
        for place, table in enumerate(tables.values(), start=len(self.stamps)):
            codes = pa.array(np.full(len(table), place, np.int32))
            parts.append(table.cast(pa.schema(list(TOGETHER)[:-1])).append_column("shard", codes))
        table = pa.concat_tables(parts).combine_chunks()
        names = Names(_whole(table["file"]))
        order = names.order()
        if order is not None:
            table = table.take(pa.array(order)).combine_chunks()
        return Index(_each_once(table, list(known)), known)

    def only(self, shards: Collection[str]) -> Index:
        """The index of some of its shards."""
        kept = np.array([name in shards for name in self._shards], bool)
        if kept.all():
            return self
        codes = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)[self.columns["shard"]]
        table = self.table.set_column(self.table.num_columns - 1, TOGETHER.field("shard"), pa.array(codes))
        stamps = {name: seen for (name, seen), stays in zip(self.stamps.items(), kept) if stays}
        return Index(table.filter(pa.array(codes >= 0)).combine_chunks(), stamps)

    def write(self, path: Path) -> None:
        """Keep it in one file, which appears whole or not at all."""
        told = json.dumps({"format": FORMAT, "shards": list(self.stamps.items())})
        schema = TOGETHER.with_metadata({STAMPS: told.encode()})
        with replacing(path) as aside, pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            writer.write_table(self.table.cast(TOGETHER).replace_schema_metadata(schema.metadata))

    @classmethod
    def read(cls, path: Path) -> Index:
        """The index that such a file holds.

        Raises
        ------
        BadIndex
            When it is not whole or not such a file.
        """
        try:
            # Windows replaces no file that is mapped.
            source = pa.memory_map(str(path)) if sys.platform != "win32" else pa.py_buffer(path.read_bytes())
            table = pa.ipc.open_file(source).read_all()
            told = json.loads((table.schema.metadata or {})[STAMPS])
            stamps = {str(name): str(stamp) for name, stamp in told["shards"]}
            if told["format"] != FORMAT or not table.schema.equals(TOGETHER) or len(stamps) != len(told["shards"]):
                raise BadIndex("another format")
            table.validate(full=True)
        except (OSError, KeyError, TypeError, ValueError, RecursionError, pa.ArrowException) as error:
            raise BadIndex(str(error)) from None
        _check(table, len(stamps))
        return cls(table, stamps)


def read_shard_index(path: Path) -> pa.Table:
    """The index of one shard, as `INDEX`.

    Raises
    ------
    BadIndex
        When it is damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(use_threads=False).select(INDEX.names).cast(INDEX)
        table.validate(full=True)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise BadIndex(str(error)) from None
    if any(table[name].null_count for name in INDEX.names):
        raise BadIndex("it has empty values")
    return table


def _check(table: pa.Table, shards: int) -> None:
    """Lookups rely on the order, and on shards that are there."""
    if any(column.null_count for column in table.columns):
        raise BadIndex("it has empty values")
    codes = _whole(table["shard"]).to_numpy(zero_copy_only=False)
    if len(codes) and not 0 <= codes.min() <= codes.max() < shards:
        raise BadIndex("it names shards that are not there")
    names = _whole(table["file"])
    if len(names) > 1 and not pc.all(pc.less(names[:-1], names[1:])).as_py():
        raise BadIndex("its images are not in order")


def _each_once(table: pa.Table, shards: list[str]) -> pa.Table:
    """A table sorted by name without what comes twice: the shard whose name comes last counts."""
    names = _whole(table["file"])
    if len(names) < 2:
        return table
    new = np.concatenate([[True], ~pc.equal(names[:-1], names[1:]).to_numpy(zero_copy_only=False)])
    if new.all():
        return table
    rank = np.argsort(np.argsort(np.array(shards)))[_whole(table["shard"]).to_numpy()]
    group = np.cumsum(new)
    order = np.lexsort([rank, group])
    last = np.flatnonzero(np.append(group[1:] != group[:-1], True))
    return table.take(pa.array(order[last])).combine_chunks()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
