"""Arrays that lie in files: walking over them without filling memory.

A memory-mapped array costs nothing until it is touched; then the pages that were read count as the program's own
until the system wants them back. Whatever walks over a whole array here gives its pages back as it goes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bagwise.bags import Bags

# Instances are read, scaled and learned from in blocks of about this size.
BLOCK_BYTES = 128 << 20


def _map_of(array: Any) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def is_large_map(array: Any) -> bool:
    """Whether the array lies in a file and is too large to be worked on in one piece."""
    return isinstance(array, np.ndarray) and array.nbytes > BLOCK_BYTES and _map_of(array) is not None


def forget(array: Any) -> None:
    """Give back the memory of the pages of a read-only map that the array covers; they stay in the file."""
    mapping = _map_of(array)
    # Pages of a writeable map may hold changes that are nowhere else.
    if mapping is None or array.flags.writeable or array.nbytes == 0 or not hasattr(mapping, "madvise"):
        return
    base = np.frombuffer(mapping, dtype=np.uint8).__array_interface__["data"][0]
    start = array.__array_interface__["data"][0] - base
    first_page = start // mmap.PAGESIZE * mmap.PAGESIZE
    mapping.madvise(mmap.MADV_DONTNEED, first_page, start + array.nbytes - first_page)


def row_blocks(array: NDArray) -> Iterator[NDArray]:
    """Views of consecutive rows, each of about BLOCK_BYTES; a block is forgotten when the next one is asked for."""
    rows = max(1, BLOCK_BYTES // max(1, array.shape[1] * array.itemsize))
    for first in range(0, len(array), rows):
        block = array[first : first + rows]
        yield block
        forget(block)


def bag_ranges(offsets: NDArray[np.int64], max_rows: int) -> Iterator[slice]:
    """Cut bags into consecutive ranges of at most so many rows, or of one bag that has more."""
    start, n_bags = 0, len(offsets) - 1
    while start < n_bags:
        stop = int(np.searchsorted(offsets, offsets[start] + max_rows, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


def bag_blocks(bags: Bags) -> Iterator[tuple[slice, Bags]]:
    """All bags in one piece, or those of a large memory map in blocks of about BLOCK_BYTES."""
    if not is_large_map(bags.instances):
        yield slice(0, len(bags)), bags
        return
    for part in bag_ranges(bags.offsets, BLOCK_BYTES // (bags.n_features * bags.dtype.itemsize)):
        block = bags[part]
        yield part, block
        forget(block.instances)
