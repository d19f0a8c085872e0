"""Bags: the ragged container that every method reads, and every way into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bagwise.bag_input import (
    as_float_rows,
    check_feature_names,
    check_offsets,
    column,
    column_names,
    first_not_finite,
    from_array,
    from_list,
    is_frame,
    label_of_each_bag,
    names_of_frame,
    names_of_frames,
    numeric,
    refuse_missing,
    rows_of_frame,
)


class Bags:
    """A sequence of bags, each with one or more instances of the same width.

    All instances lie in one array, the rows of a bag side by side, so that methods can loop over them
    at the speed of memory and memory-mapped files need not be copied.

    Parameters
    ----------
    data : list of (m_i, d) arrays, CSR matrices or data frames, (n, m, d) array, (n, d) array, CSR matrix or data \
            frame, or Bags
        A two-dimensional array is read as bags of one instance each. NaN is accepted, so that it can be imputed
        (``OnInstances(SimpleImputer())``); classifiers refuse it.
    prior : array of shape (n_instances,), optional
        A log-odds offset for each instance, in the order of ``instances``. Methods that can use it add it to
        the instance's score. It is sliced along with the bags.
    ids : sequence of length n_bags, optional
        A name for each bag. It is sliced along with the bags.
    feature_names : sequence of length d, optional
        A name for each column; by default those of the data frames, if they have any. An estimator that was fitted
        with names finds its columns by name in what it predicts.

    Attributes
    ----------
    instances : (n_instances, d) float32 or float64 array, or CSR matrix
    offsets : (n_bags + 1,) int64 array
        Bag ``i`` holds the rows ``offsets[i]`` to ``offsets[i + 1]``.
    prior, ids : arrays, or None
    feature_names : tuple of str, or None

    Examples
    --------
    >>> import numpy as np
    >>> bags = Bags([np.zeros((3, 2)), np.ones((1, 2))])
    >>> bags
    Bags(2 bags, 4 instances, 2 features, float64)
    >>> bags[1]
    array([[1., 1.]])
    """

    __slots__ = ("_finite", "feature_names", "ids", "instances", "offsets", "prior")

    instances: Any
    offsets: NDArray[np.int64]
    prior: NDArray[np.float64] | None
    ids: NDArray | None
    feature_names: tuple[str, ...] | None
    _finite: bool  # known to hold neither NaN nor infinity

    def __init__(
        self,
        data: Any,
        *,
        prior: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        names = None
        if isinstance(data, Bags):
            instances, offsets, names = data.instances, data.offsets, data.feature_names
            prior = data.prior if prior is None else prior
            ids = data.ids if ids is None else ids
        elif is_frame(data):
            names = names_of_frame(data)
            instances, offsets = from_array(rows_of_frame(data))
        elif sparse.issparse(data) or isinstance(data, np.ndarray):
            instances, offsets = from_array(data)
        else:
            data = list(data)
            names = names_of_frames(data)
            instances, offsets = from_list(data)
        self._set(instances, offsets, prior, ids, names if feature_names is None else feature_names)

    @classmethod
    def from_arrays(
        cls,
        instances: Any,
        offsets: ArrayLike,
        *,
        prior: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        check_finite: bool = True,
    ) -> Bags:
        """Take the container's own form: stacked instances and offsets. Nothing is copied, memory maps included.

        Estimators look for NaN and infinity in all they are given, which reads every value once.
        ``check_finite=False`` promises that there are none, and saves that.
        """
        bags = cls.__new__(cls)
        bags._set(instances, offsets, prior, ids, feature_names, finite=not check_finite)
        return bags

    @classmethod
    def from_groups(
        cls,
        X: Any,
        groups: ArrayLike,
        *,
        prior: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Bags:
        """Make bags from a table of instances and the name of the bag of each row.

        Bags come in the order in which their names first appear, and carry them as ``ids``. Rows that are
        already adjacent are not copied.
        """
        if feature_names is None and is_frame(X):
            feature_names = names_of_frame(X)
        X = rows_of_frame(X) if is_frame(X) else X if sparse.issparse(X) else np.asanyarray(X)
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
        return cls.from_arrays(X, offsets, prior=prior, ids=names[np.sort(first)], feature_names=feature_names)

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
        names = column_names(frame)
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
        rows = np.column_stack([numeric(frame, name) for name in columns])
        bags = cls.from_groups(rows, column(frame, bag), feature_names=columns)
        if label is None:
            return bags
        return bags, label_of_each_bag(cast(NDArray, bags.ids), column(frame, bag), column(frame, label), label)

    @classmethod
    def concat(cls, parts: Sequence[Bags]) -> Bags:
        """Join several Bags into one, in order. Their columns must have the same names, or none."""
        if not parts:
            raise ValueError("there is nothing to join: give at least one Bags")
        widths = {part.n_features for part in parts}
        if len(widths) > 1:
            raise ValueError(f"bags to be joined must have the same number of features, not {sorted(widths)}")
        if len({sparse.issparse(part.instances) for part in parts}) > 1:
            raise ValueError("bags to be joined must be all dense or all sparse")
        for i, part in enumerate(parts):
            if part.feature_names != parts[0].feature_names:
                raise ValueError(f"part {i} to be joined has other feature names than part 0: {_difference(parts, i)}")
        stack = sparse.vstack if sparse.issparse(parts[0].instances) else np.concatenate
        sizes = np.concatenate([part.sizes for part in parts])
        return cls.from_arrays(
            stack([part.instances for part in parts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            prior=_join([part.prior for part in parts]),
            ids=_join([part.ids for part in parts]),
            feature_names=parts[0].feature_names,
            check_finite=not all(part._finite for part in parts),
        )

    def _set(self, instances: Any, offsets: Any, prior: Any, ids: Any, names: Any, *, finite: bool = False) -> None:
        self.instances = as_float_rows(instances)
        self.offsets = check_offsets(offsets, self.instances.shape[0])
        self.feature_names = check_feature_names(names, self.n_features)
        self._finite = finite
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

    def check_finite(self) -> None:
        """Raise a ValueError that names the bag, the row and the column of the first NaN or infinity, if any."""
        bad = None if self._finite else first_not_finite(self.instances)
        if bad is not None:
            row, column, value = bad
            name = column if self.feature_names is None else repr(self.feature_names[column])
            raise ValueError(
                f"{self._where(row)} holds {value} (NaN or infinity) in column {name}: "
                "remove or impute such values first"
            )

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

    def with_instances(
        self, instances: Any, *, feature_names: Sequence[str] | None = None, check_finite: bool = True
    ) -> Bags:
        """Return the same bags with other columns: what a transformer of instances produces.

        The new columns have the names given here, or none. ``check_finite`` as in `from_arrays`.
        """
        return Bags.from_arrays(
            instances,
            self.offsets,
            prior=self.prior,
            ids=self.ids,
            feature_names=feature_names,
            check_finite=check_finite,
        )

    def with_prior(self, prior: ArrayLike | None) -> Bags:
        """Return the same bags with another prior, or with none."""
        return Bags.from_arrays(
            self.instances,
            self.offsets,
            prior=prior,
            ids=self.ids,
            feature_names=self.feature_names,
            check_finite=not self._finite,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """``bags[i]`` is a two-dimensional array; any other index returns Bags."""
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
        if len(index) and (np.diff(index) == 1).all():  # neighbours in their order: nothing to copy
            return self._contiguous(index[0], index[-1] + 1)
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
        taken.feature_names = self.feature_names
        taken._finite = self._finite
        return taken

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise TypeError(
            "Bags are ragged and cannot become one array, which is what this function works on (BaggingClassifier and "
            "permutation_importance do): use bags.instances and bags.offsets, or one that hands bags on, such as "
            "VotingClassifier, GridSearchCV or cross_val_score"
        )

    def __repr__(self) -> str:
        form = f"CSR {self.dtype}" if sparse.issparse(self.instances) else str(self.dtype)
        prior = ", with a prior" if self.prior is not None else ""
        return f"Bags({len(self)} bags, {self.n_instances} instances, {self.n_features} features, {form}{prior})"

    def __reduce__(self) -> tuple:
        return _rebuild, (self.instances, self.offsets, self.prior, self.ids, self.feature_names, self._finite)


def _rebuild(instances: Any, offsets: Any, prior: Any, ids: Any, names: Any, finite: bool) -> Bags:
    return Bags.from_arrays(instances, offsets, prior=prior, ids=ids, feature_names=names, check_finite=not finite)


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


def _difference(parts: Sequence[Bags], i: int) -> str:
    """What tells the feature names of part i from those of part 0."""
    first, other = parts[0].feature_names, parts[i].feature_names
    if first is None or other is None:
        return f"part {0 if first is None else i} has none"
    column = next(k for k, (a, b) in enumerate(zip(first, other)) if a != b)
    return f"column {column} is {other[column]!r} there and {first[column]!r} here"
