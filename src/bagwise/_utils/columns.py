"""What columns of dense or CSR tables measure, a few rows at a time: tables may be files larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from bagwise._utils.mapped import row_blocks

FloatArray = NDArray[np.float64]

ROWS_AT_ONCE = 4096


def mean_and_variance(
    x: Any, weight: FloatArray | None = None, of: Callable[[Any], Any] = lambda rows: rows
) -> tuple[FloatArray, FloatArray]:
    """(n_features,) weighted mean and variance of each column, or of what ``of`` makes of the rows.

    Dense rows are read twice, a block at a time.
    """
    if sparse.issparse(x):
        mean, variance = mean_variance_axis(of(x).astype(np.float64), axis=0, weights=weight)
        return mean, np.maximum(variance, 0)
    total = float(len(x)) if weight is None else weight.sum()
    mean = np.zeros(x.shape[1])
    for rows, block in _blocks(x):
        part = of(block)
        mean += part.sum(axis=0, dtype=np.float64) if weight is None else weight[rows] @ part
    mean /= total
    variance = np.zeros(x.shape[1])
    for rows, block in _blocks(x):
        squares = (of(block) - mean) ** 2
        variance += squares.sum(axis=0) if weight is None else weight[rows] @ squares
    return mean, variance / total


def column_medians(x: np.ndarray, weight: FloatArray | None = None) -> FloatArray:
    """(n_features,) weighted median of each column; of a file that is larger than memory, of a first block."""
    block = next(iter(row_blocks(x)))
    if weight is None:
        return np.median(block, axis=0)
    weight = weight[: len(block)]
    medians = np.empty(x.shape[1])
    for column, values in enumerate(block.T):
        order = np.argsort(values)
        below, half = np.cumsum(weight[order]), weight.sum() / 2
        middle = (np.searchsorted(below, half, side) for side in ("left", "right"))
        medians[column] = np.mean([values[order[min(place, len(order) - 1)]] for place in middle])
    return medians


def signed_roots(values: np.ndarray) -> np.ndarray:
    """Square roots of sizes, with the signs of the values."""
    return np.copysign(np.sqrt(np.abs(values)), values)


def _blocks(x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows as a slice and as an array, a few at a time, read-only maps included without filling memory."""
    first = 0
    for block in row_blocks(x):
        for start in range(0, len(block), ROWS_AT_ONCE):
            part = block[start : start + ROWS_AT_ONCE]
            yield slice(first, first + len(part)), part
            first += len(part)


def rounding_of(x: Any) -> float:
    """Relative errors of the values and of their mean, which grow with the number of rows."""
    return max(10 * np.finfo(x.dtype).eps, x.shape[0] * np.finfo(np.float64).eps)


def mean_square(x: Any, weight: FloatArray | None) -> float:
    """The weighted mean of the squared norms of the rows."""
    if sparse.issparse(x):
        norms = np.asarray(x.multiply(x).sum(axis=1), dtype=np.float64).ravel()
    else:
        norms = np.concatenate([np.einsum("ij,ij->i", part, part, dtype=np.float64) for _, part in _blocks(x)])
    return float(np.average(norms, weights=weight))
