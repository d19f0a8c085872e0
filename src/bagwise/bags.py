"""Bags: the ragged container that every method reads, and every way into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bagwise.bag_input import (
    as_float_rows,
    check_offsets,
    column,
    from_array,
    from_list,
    label_of_each_bag,
    numeric,
    refuse_missing,
)
from bagwise.mapped import forget

# Rows are checked for NaN and infinity this many values at a time, so that memory stays bounded on huge arrays.
VALUES_PER_CHECK = 1 << 22


class Bags:
    """A sequence of bags, each with one or more instances of the same width.

    All instances lie in one array, the rows of a bag side by side, so that methods can loop over them
    at the speed of memory and memory-mapped files need not be copied.

    Parameters
    ----------
    data : list of (m_i, d) arrays or CSR matrices, (n, m, d) array, (n, d) array or CSR matrix, or Bags
        A two-dimensional array is read as bags of one instance each.
    prior : array of shape (n_instances,), optional
        A log-odds offset for each instance, in the order of ``instances``. Methods that can use it add it to
        the instance's score. It is sliced along with the bags.
    ids : sequence of length n_bags, optional
        A name for each bag. It is sliced along with the bags.

    Attributes
    ----------
    instances : (n_instances, d) float32 or float64 array, or CSR matrix
    offsets : (n_bags + 1,) int64 array
        Bag ``i`` holds the rows ``offsets[i]`` to ``offsets[i + 1]``.

    Examples
    --------
    >>> import numpy as np
    >>> bags = Bags([np.zeros((3, 2)), np.ones((1, 2))])
    >>> bags
    Bags(2 bags, 4 instances, 2 features, float64)
    >>> bags[1]
    array([[1., 1.]])
    """

    __slots__ = ("ids", "instances", "offsets", "prior")

    instances: Any
    offsets: NDArray[np.int64]
    prior: NDArray[np.float64] | None
    ids: NDArray | None

    def __init__(self, data: Any, *, prior: ArrayLike | None = None, ids: ArrayLike | None = None) -> None:
        if isinstance(data, Bags):
            instances, offsets = data.instances, data.offsets
            prior = data.prior if prior is None else prior
            ids = data.ids if ids is None else ids
        elif sparse.issparse(data) or isinstance(data, np.ndarray):
            instances, offsets = from_array(data)
        else:
            instances, offsets = from_list(data)
        self._set(instances, offsets, prior, ids)

    @classmethod
    def from_arrays(
        cls,
        instances: Any,
        offsets: ArrayLike,
        *,
        prior: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        check_finite: bool = True,
    ) -> Bags:
        """Take the container's own form: stacked instances and offsets. Nothing is copied, memory maps included.

        ``check_finite=False`` leaves out the search for NaN and infinity, which reads every value once.
        """
        bags = cls.__new__(cls)
        bags._set(instances, offsets, prior, ids, check_finite=check_finite)
        return bags

    @classmethod
    def from_groups(cls, X: Any, groups: ArrayLike, *, prior: ArrayLike | None = None) -> Bags:
        """Make bags from a table of instances and the name of the bag of each row.

        Bags come in the order in which their names first appear, and carry them as ``ids``. Rows that are
        already adjacent are not copied.
        """
        X = X if sparse.issparse(X) else np.asanyarray(X)
        names = np.asarray(groups)
        if names.ndim != 1 or len(names) != X.shape[0]:
            raise ValueError(f"groups must name the bag of each of the {X.shape[0]} rows, but has shape {names.shape}")
        if len(names) == 0:
            raise ValueError("there are no rows, so no bags: give at least one instance")
        refuse_missing(names, "bag")
        _, first, code = np.unique(names, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        bag = rank[code]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(bag))])
        if np.any(bag[1:] < bag[:-1]):
            order = np.argsort(bag, kind="stable")
            X = X[order]
            prior = None if prior is None else np.asarray(prior)[order]
        return cls.from_arrays(X, offsets, prior=prior, ids=names[np.sort(first)])

    @classmethod
    def from_frame(
        cls, frame: Any, *, bag: str, label: str | None = None, features: Sequence[str] | None = None
    ) -> Bags | tuple[Bags, NDArray]:
        """Make bags from a data frame with one row per instance.

        Parameters
        ----------
        frame : pandas or polars DataFrame, pyarrow Table, or mapping of names to columns
        bag : str
            The column that names the bag of each row.
        label : str, optional
            The column with the label of the row's bag; it must be the same in all rows of a bag.
        features : sequence of str, optional
            The columns to learn from: by default all others.

        Returns
        -------
        bags, or (bags, y) when ``label`` is given
        """
        names = [str(name) for name in (frame.column_names if hasattr(frame, "column_names") else list(frame))]
        for role, name in (("bag", bag), ("label", label), *(("feature", name) for name in features or ())):
            if name is not None and name not in names:
                shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
                raise ValueError(f"there is no {role} column {name!r}: the columns are {shown}")
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"column {twice!r} is there more than once: give every column a name of its own")
        columns = [name for name in names if name not in (bag, label)] if features is None else list(features)
        if not columns:
            raise ValueError("no feature columns are left beside the bag and label columns")
        bags = cls.from_groups(np.column_stack([numeric(frame, name) for name in columns]), column(frame, bag))
        if label is None:
            return bags
        return bags, label_of_each_bag(cast(NDArray, bags.ids), column(frame, bag), column(frame, label), label)

    @classmethod
    def concat(cls, parts: Sequence[Bags]) -> Bags:
        """Join several Bags into one, in order."""
        if not parts:
            raise ValueError("there is nothing to join: give at least one Bags")
        widths = {part.n_features for part in parts}
        if len(widths) > 1:
            raise ValueError(f"bags to be joined must have the same number of features, not {sorted(widths)}")
        if len({sparse.issparse(part.instances) for part in parts}) > 1:
            raise ValueError("bags to be joined must be all dense or all sparse")
        stack = sparse.vstack if sparse.issparse(parts[0].instances) else np.concatenate
        sizes = np.concatenate([part.sizes for part in parts])
        return cls.from_arrays(
            stack([part.instances for part in parts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            prior=_join([part.prior for part in parts]),
            ids=_join([part.ids for part in parts]),
            check_finite=False,
        )

    def _set(self, instances: Any, offsets: Any, prior: Any, ids: Any, *, check_finite: bool = True) -> None:
        self.instances = as_float_rows(instances)
        self.offsets = check_offsets(offsets, self.instances.shape[0])
        if check_finite:
            self._check_finite()
        self.prior = None
        if prior is not None:
            self.prior = np.asarray(prior, dtype=np.float64)
            if self.prior.shape != (self.n_instances,):
                raise ValueError(
                    f"prior must have one value for each of the {self.n_instances} instances, "
                    f"but has shape {self.prior.shape}"
                )
            bad = np.flatnonzero(~np.isfinite(self.prior))
            if len(bad):
                raise ValueError(f"the prior of {self._where(bad[0])} is {self.prior[bad[0]]}: it must be finite")
        self.ids = None
        if ids is not None:
            self.ids = np.asarray(ids)
            if len(self.ids) != len(self):
                raise ValueError(f"there are {len(self)} bags but {len(self.ids)} ids")

    def _check_finite(self) -> None:
        values = self.instances.data if sparse.issparse(self.instances) else self.instances.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, len(values), VALUES_PER_CHECK):
                chunk = values[start : start + VALUES_PER_CHECK]
                # The sum is finite unless something is NaN, infinite or enormous; only then look one by one.
                if not np.isfinite(chunk.sum()) and not np.isfinite(chunk).all():
                    at = start + int(np.flatnonzero(~np.isfinite(chunk))[0])
                    if sparse.issparse(self.instances):
                        row = int(np.searchsorted(self.instances.indptr, at, side="right")) - 1
                        column = int(self.instances.indices[at])
                    else:
                        row, column = divmod(at, self.n_features)
                    raise ValueError(
                        f"{self._where(row)} holds {values[at]} (NaN or infinity) in column {column}: "
                        "remove or impute such values first"
                    )
                forget(chunk)

    def _where(self, row: int) -> str:
        bag = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"bag {bag}, row {row - int(self.offsets[bag])}"

    @property
    def shape(self) -> tuple[int, int]:
        """(n_bags, n_features): what scikit-learn's splitters and checks expect."""
        return len(self), self.n_features

    @property
    def n_features(self) -> int:
        return int(self.instances.shape[1])

    @property
    def n_instances(self) -> int:
        return int(self.instances.shape[0])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(n_bags,) number of instances of each bag."""
        return np.diff(self.offsets)

    @property
    def bag_of_instance(self) -> NDArray[np.int64]:
        """(n_instances,) index of the bag of each instance."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def dtype(self) -> np.dtype:
        return cast(np.dtype, self.instances.dtype)

    def split(self, values: ArrayLike) -> list[NDArray]:
        """Cut a flat array with one entry per instance into one array per bag."""
        values = np.asarray(values)
        if len(values) != self.n_instances:
            raise ValueError(f"there are {self.n_instances} instances but {len(values)} values")
        return np.split(values, self.offsets[1:-1])

    def with_instances(self, instances: Any) -> Bags:
        """Return the same bags with other columns: what a transformer of instances produces."""
        return Bags.from_arrays(instances, self.offsets, prior=self.prior, ids=self.ids, check_finite=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """``bags[i]`` is a two-dimensional array; any other index gives Bags."""
        if isinstance(key, tuple):  # scikit-learn indexes rows as X[key, ...]
            if len(key) != 2 or not (key[1] is Ellipsis or key[1] == slice(None)):
                raise IndexError("bags can be indexed by bag only; use with_instances to change the columns")
            key = key[0]
        if isinstance(key, (int, np.integer)):
            i = range(len(self))[key]
            return self.instances[self.offsets[i] : self.offsets[i + 1]]
        if isinstance(key, slice) and key.step in (None, 1):
            return self._contiguous(*key.indices(len(self))[:2])
        return self._take(np.arange(len(self))[key])

    def _contiguous(self, start: int, stop: int) -> Bags:
        stop = max(start, stop)
        first, last = self.offsets[start], self.offsets[stop]
        return self._with(slice(first, last), self.offsets[start : stop + 1] - first, slice(start, stop))

    def _take(self, index: NDArray[np.int64]) -> Bags:
        sizes = self.sizes[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], sizes)
        return self._with(rows, offsets, index)

    def _with(self, rows: Any, offsets: NDArray[np.int64], index: Any) -> Bags:
        taken = Bags.__new__(Bags)
        taken.instances = self.instances[rows]
        taken.offsets = offsets
        taken.prior = None if self.prior is None else self.prior[rows]
        taken.ids = None if self.ids is None else self.ids[index]
        return taken

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise TypeError("Bags are ragged and cannot become one array; use bags.instances and bags.offsets")

    def __repr__(self) -> str:
        form = f"CSR {self.dtype}" if sparse.issparse(self.instances) else str(self.dtype)
        prior = ", with a prior" if self.prior is not None else ""
        return f"Bags({len(self)} bags, {self.n_instances} instances, {self.n_features} features, {form}{prior})"

    def __reduce__(self) -> tuple:
        return _rebuild, (self.instances, self.offsets, self.prior, self.ids)


def _rebuild(instances: Any, offsets: Any, prior: Any, ids: Any) -> Bags:
    return Bags.from_arrays(instances, offsets, prior=prior, ids=ids, check_finite=False)


def is_ragged(data: Any) -> bool:
    """Whether the data is a list of bags (of matrices), as against a table of rows."""
    if isinstance(data, Bags):
        return True
    if isinstance(data, np.ndarray):
        return data.ndim == 3
    if not isinstance(data, (list, tuple)) or len(data) == 0:
        return False
    return sparse.issparse(data[0]) or np.ndim(data[0]) == 2


def _join(parts: list[Any]) -> NDArray | None:
    if all(part is None for part in parts):
        return None
    if any(part is None for part in parts):
        raise ValueError("either all of the bags to be joined carry a prior (or ids), or none")
    return np.concatenate(parts)
