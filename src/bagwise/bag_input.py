"""What bags are made of: rows and offsets, from whatever form the data came in, checked on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


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
    parts = [part if sparse.issparse(part) else np.asarray(part) for part in data]
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


def refuse_missing(values: NDArray, what: str) -> None:
    """NaN and None are equal to nothing, not even to themselves: they can name no bag and be no label."""
    if values.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in values], dtype=bool)
    else:
        missing = values != values
    if missing.any():
        raise ValueError(f"row {int(missing.argmax())} has no {what}: fill it in, or leave the row out")


def column(frame: Any, name: str) -> NDArray:
    """A column of a pandas, polars or pyarrow table, or of a mapping of lists."""
    column = frame[name]
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def numeric(frame: Any, name: str) -> NDArray:
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
