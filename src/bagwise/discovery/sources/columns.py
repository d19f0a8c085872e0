"""Names and labels of many images in a few blocks of memory: a million of them as Python objects would take gigabytes.

Both read as the lists do that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

AT_ONCE = 4096  # that are Python objects at a time when all are read


class Names(Sequence[str]):
    """Names, in the order given.

    Parameters
    ----------
    array : pyarrow.LargeStringArray

    Examples
    --------
    >>> names = Names.of(["b.png", "a.png"])
    >>> names[0], len(names), names == ["b.png", "a.png"]
    ('b.png', 2, True)
    >>> list(names.take([1]))
    ['a.png']
    """

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Names from any collection of them.

        Raises
        ------
        UnicodeEncodeError
            When a name is no text, as names of files on old disks may be.
        """
        if isinstance(names, Names):
            return names
        return cls(pa.array(names if isinstance(names, (list, tuple)) else list(names), pa.large_string()))

    @classmethod
    def of_column(cls, column: pa.ChunkedArray) -> Names:
        """Names from a column of strings."""
        return cls(pa.concat_arrays(column.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())]))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Names: ...

    def __getitem__(self, place: int | slice) -> str | Names:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        return self.array[int(place)].as_py()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.array.slice(start, AT_ONCE).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Names):
            return bool(self.array.equals(other.array))
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return _told(self)

    def take(self, rows: Any) -> Names:
        """Those at some places."""
        return Names(self.array.take(pa.array(np.asarray(rows, np.int64))))

    def order(self) -> np.ndarray | None:
        """Places in sorted order; None where they are in order already."""
        if len(self) < 2 or not pc.any(pc.greater(self.array[:-1], self.array[1:])).as_py():
            return None
        return np.asarray(pc.sort_indices(self.array).to_numpy(), np.int64)

    def places(self, others: Names) -> np.ndarray:
        """Where each of the others is among these, -1 where it is not; (n_others,)."""
        if self.array.equals(others.array):
            return np.arange(len(self))
        found = pc.index_in(others.array, value_set=self.array)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)


class LabelSets(Sequence[tuple[str, ...]]):
    """For each image the labels it carries.

    Parameters
    ----------
    offsets : int array (n + 1,)
    codes : int array (offsets[-1],)
        Image i carries ``names[code] for code in codes[offsets[i] : offsets[i + 1]]``.
    names : list of str

    Examples
    --------
    >>> labels = LabelSets.of([("cat",), (), ("cat", "dog")])
    >>> labels[2], labels.having("cat").tolist(), labels.sizes.tolist()
    (('cat', 'dog'), [True, False, True], [1, 0, 2])
    """

    def __init__(self, offsets: np.ndarray, codes: np.ndarray, names: Sequence[str]) -> None:
        self.offsets = offsets
        self.codes = codes
        self.names = list(names)

    @classmethod
    def of(cls, labels: Iterable[Iterable[str]]) -> LabelSets:
        """Label sets from any collection of them."""
        if isinstance(labels, LabelSets):
            return labels
        numbers: dict[str, int] = {}
        codes: list[int] = []
        stops = [0]
        for names in labels:
            codes += [numbers.setdefault(name, len(numbers)) for name in names]
            stops.append(len(codes))
        return cls(np.array(stops, np.int64), np.array(codes, np.int32), list(numbers))

    @classmethod
    def none(cls, count: int) -> LabelSets:
        """No label for any of so many images."""
        return cls(np.zeros(count + 1, np.int64), np.zeros(0, np.int32), ())

    @classmethod
    def of_column(cls, column: pa.ChunkedArray) -> LabelSets:
        """Label sets from a column of lists of strings."""
        lists = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        coded = pc.dictionary_encode(lists.flatten())
        offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))])
        codes = coded.indices.to_numpy(zero_copy_only=False)
        return cls(offsets.astype(np.int64), codes.astype(np.int32), coded.dictionary.to_pylist())

    def column(self) -> pa.Array:
        """The label sets as a column of lists of strings."""
        names = pa.array(self.names, pa.string()).take(pa.array(self.codes))
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), names)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, place: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, place: slice) -> LabelSets: ...

    def __getitem__(self, place: int | slice) -> tuple[str, ...] | LabelSets:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        row = range(len(self))[int(place)]
        return tuple(self.names[code] for code in self.codes[self.offsets[row] : self.offsets[row + 1]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return _told(self)

    @property
    def sizes(self) -> np.ndarray:
        """How many labels each image carries, (n,)."""
        return np.diff(self.offsets)

    @property
    def used(self) -> list[str]:
        """The labels that any image carries, sorted."""
        return sorted(self.names[code] for code in np.unique(self.codes))

    def having(self, label: str) -> np.ndarray:
        """Which images carry a label, bool (n,)."""
        mask = np.zeros(len(self), bool)
        if label in self.names:
            places = np.flatnonzero(self.codes == self.names.index(label))
            mask[np.searchsorted(self.offsets, places, side="right") - 1] = True
        return mask

    def take(self, rows: Any) -> LabelSets:
        """Those of some images."""
        rows = np.asarray(rows, np.int64)
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return LabelSets(offsets, self.codes[np.repeat(self.offsets[rows], sizes) + inside], self.names)

    def without(self, dropped: Iterable[str]) -> LabelSets:
        """The label sets less some labels."""
        names = set(dropped)
        keep = np.array([name not in names for name in self.names], bool)[self.codes]
        offsets = np.concatenate([[0], np.cumsum(keep)])[self.offsets]
        return LabelSets(offsets.astype(np.int64), self.codes[keep], self.names)


def _told(values: Sequence[Any]) -> str:
    first = ", ".join(repr(values[place]) for place in range(min(3, len(values))))
    return f"{type(values).__name__}([{first}{', ...' if len(values) > 3 else ''}], {len(values)} in all)"
