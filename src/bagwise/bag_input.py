"""What bags are made of: rows and offsets, from whatever form the data came in, checked on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.mapped import forget

# Rows are checked for NaN and infinity this many values at a time, so that memory stays bounded on huge arrays.
VALUES_PER_CHECK = 1 << 22


def from_array(data: Any) -> tuple[Any, NDArray[np.int64]]:
    """Rows and offsets of a cube (bags of one size) or of a table (bags of one row)."""
    if data.ndim == 3:
        n, m, d = data.shape
        if n == 0 or m == 0:
            raise ValueError(f"an array of shape {data.shape} holds no instances: give at least one bag with one row")
        return data.reshape(n * m, d), np.arange(0, n * m + 1, m)
    if data.ndim != 2:
        raise ValueError(f"bags need an array of two or three dimensions, not {data.ndim}")
    return data, np.arange(data.shape[0] + 1)


def offsets_of(shapes: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Offsets of bags of these shapes, once it is sure that they are bags of one width."""
    if not shapes:
        raise ValueError("there are no bags: give at least one")
    width = shapes[0][1] if len(shapes[0]) == 2 else None
    for i, shape in enumerate(shapes):
        if len(shape) != 2:
            raise ValueError(f"bag {i} has {len(shape)} dimensions: each bag must be a table of instances by features")
        if shape[0] == 0:
            raise ValueError(f"bag {i} is empty: remove it or give it at least one instance")
        if shape[1] != width:
            raise ValueError(f"bag {i} has {shape[1]} features but bag 0 has {width}: all must have the same")
    return np.concatenate([[0], np.cumsum([shape[0] for shape in shapes])])


def from_list(data: Any) -> tuple[Any, NDArray[np.int64]]:
    """Rows and offsets of a list of tables, dense or sparse."""
    parts = [
        rows_of_frame(part) if is_frame(part) else part if sparse.issparse(part) else np.asarray(part) for part in data
    ]
    offsets = offsets_of([part.shape for part in parts])
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr"), offsets
    return np.concatenate(parts), offsets


def as_float_rows(instances: Any) -> Any:
    """Dense C-contiguous or CSR, float32 or float64, copying only when it has to."""
    if sparse.issparse(instances):
        instances = instances.tocsr()
        if not instances.has_sorted_indices or not instances.has_canonical_format:
            instances = instances.copy()
            instances.sum_duplicates()
        return instances if instances.dtype in (np.float32, np.float64) else instances.astype(np.float64)
    instances = np.asanyarray(instances)
    if instances.ndim != 2:
        raise ValueError(f"instances must have two dimensions, not {instances.ndim}")
    if instances.dtype.kind == "c":
        raise ValueError("complex data is not supported: give real numbers")
    if instances.dtype not in (np.float32, np.float64):
        try:
            instances = instances.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"instances must be numbers, not {instances.dtype}: {error}") from error
    return np.ascontiguousarray(instances) if not instances.flags.c_contiguous else instances


def check_offsets(offsets: Any, n_instances: int) -> NDArray[np.int64]:
    """The offsets as int64, once it is sure that they cut all instances into bags that are not empty."""
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise ValueError("offsets must be a list of whole numbers, one more than there are bags; give at least one bag")
    offsets = offsets.astype(np.int64, copy=False)
    if offsets[0] != 0 or offsets[-1] != n_instances:
        raise ValueError(
            f"offsets must run from 0 to the number of instances, {n_instances}, not from {offsets[0]} to {offsets[-1]}"
        )
    empty = np.flatnonzero(np.diff(offsets) <= 0)
    if len(empty):
        raise ValueError(f"bag {empty[0]} is empty: remove it or give it at least one instance")
    return offsets


def first_not_finite(instances: Any) -> tuple[int, int, Any] | None:
    """Row, column and value of the first NaN or infinity, or None."""
    is_sparse = sparse.issparse(instances)
    values = instances.data if is_sparse else instances.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, len(values), VALUES_PER_CHECK):
            chunk = values[start : start + VALUES_PER_CHECK]
            # The sum is finite unless something is NaN, infinite or enormous; only then look one by one.
            if not np.isfinite(chunk.sum()) and not np.isfinite(chunk).all():
                at = start + int(np.flatnonzero(~np.isfinite(chunk))[0])
                if is_sparse:
                    row = int(np.searchsorted(instances.indptr, at, side="right")) - 1
                    return row, int(instances.indices[at]), values[at]
                return *divmod(at, instances.shape[1]), values[at]
            forget(chunk)
    return None


def check_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """The names as a tuple, once it is sure that there is one of its own for each column."""
    if names is None:
        return None
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise ValueError(f"there are {n_features} features but {len(names)} feature names")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the feature name {twice!r} is there more than once: give every column a name of its own")
    return names


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas or polars, or a pyarrow table."""
    return hasattr(data, "columns") and hasattr(data, "shape") and not hasattr(data, "dtype")


def column_names(frame: Any) -> list[str]:
    """Names of the columns of a data frame, a pyarrow table, or a mapping of names to columns."""
    return [str(name) for name in (frame.column_names if hasattr(frame, "column_names") else list(frame))]


def names_of_frame(frame: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame. As in scikit-learn, numbers are no names."""
    names = frame.column_names if hasattr(frame, "column_names") else list(frame.columns)
    return tuple(names) if names and all(isinstance(name, str) for name in names) else None


def rows_of_frame(frame: Any) -> NDArray:
    """The values of a data frame, whose columns must all be numeric."""
    names = frame.column_names if hasattr(frame, "column_names") else list(frame.columns)
    return np.column_stack([numeric(frame, name) for name in names]) if names else np.empty(frame.shape)


def names_of_frames(parts: Sequence[Any]) -> tuple[str, ...] | None:
    """The names that the columns of all these tables have, or None where none has any; others are refused."""
    names = [names_of_frame(part) if is_frame(part) else None for part in parts]
    for i, other in enumerate(names):
        if other != names[0]:
            raise ValueError(
                f"bag {i} has columns {_shown(other)} but bag 0 has {_shown(names[0])}: "
                "give all bags the same columns in the same order"
            )
    return names[0] if names else None


def _shown(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "without names"
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def refuse_missing(values: NDArray, what: str) -> None:
    """NaN and None are equal to nothing, not even to themselves: they can name no bag and be no label."""
    if values.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in values], dtype=bool)
    else:
        missing = values != values
    if missing.any():
        raise ValueError(f"row {int(missing.argmax())} has no {what}: fill it in, or leave the row out")


def column(frame: Any, name: Any) -> NDArray:
    """A column of a pandas, polars or pyarrow table, or of a mapping of lists."""
    column = frame[name]
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def numeric(frame: Any, name: Any) -> NDArray:
    """The same for a column that has to hold numbers."""
    values = column(frame, name)
    if values.dtype.kind not in "fiub":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {name!r} is not numeric ({error}): name the feature columns, or leave this one out"
            ) from error
    return values


def label_of_each_bag(ids: NDArray, groups: NDArray, labels: NDArray, name: str) -> NDArray:
    """One label for each of the bags that ``ids`` names, of a column that repeats it in every row of the bag."""
    refuse_missing(labels, "label")
    position = {key: i for i, key in enumerate(ids.tolist())}
    bag = np.fromiter((position[key] for key in groups.tolist()), dtype=np.int64, count=len(groups))
    first = np.full(len(ids), len(bag))
    np.minimum.at(first, bag, np.arange(len(bag)))
    y = labels[first]
    clash = np.flatnonzero(y[bag] != labels)
    if len(clash):
        row = int(clash[0])
        raise ValueError(
            f"bag {str(groups[row])!r} has different labels in column {name!r} ({y[bag[row]]} and {labels[row]}): "
            "all rows of a bag must carry the same one"
        )
    return y


def runs(values: NDArray) -> int:
    """Number of runs of equal values."""
    return 1 + int(np.count_nonzero(values[1:] != values[:-1]))


def bag_column(frame: Any, y: NDArray) -> Any:
    """The first column of whole numbers that looks as if it named the bag of each row, or None.

    Its values come in runs, each value in one run only, with one label to each; and there are more of them than labels.
    """
    for name in frame.column_names if hasattr(frame, "column_names") else frame.columns:
        values = column(frame, name)
        if values.dtype.kind not in "iuf" or len(values) != len(y):
            continue
        n_runs = runs(values)
        ordered = 2 * n_runs <= len(values) and n_runs > len(np.unique(y)) and n_runs == len(np.unique(values))
        same_label = not np.any((y[1:] != y[:-1]) & (values[1:] == values[:-1]))
        if ordered and same_label and np.array_equal(values, np.round(values)):
            return name
    return None
