"""Distances between instances and bags, a block of pairs at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags

FloatArray = NDArray[np.float64]


# As many inner products are held in memory at once.
VALUES_PER_BLOCK = 1 << 22
# From this many pairs on, products are formed in single precision where that is enough: it is twice as fast.
PAIRS_IN_DOUBLE = 1 << 28


def squared_distances(rows: Any, bags: Bags, *, exact: bool) -> Iterator[tuple[slice, FloatArray]]:
    """Squared distances of rows to the nearest instance of each bag.

    Parameters
    ----------
    rows : (n_rows, d) array or CSR matrix, of the same kind as the bags' instances
    bags : Bags
    exact : bool
        Compute the distance to the nearest instance once more from the two rows, because a small one is inexact when
        it comes from inner products.

    Yields
    ------
    A slice of the rows, and a (len of slice, n_bags) array: float32 when the rows are, or when there are very many
    pairs and ``exact`` is not asked for.
    """
    from bagwise._utils import nearest_loops as loops
    from bagwise._utils.row_loops import row_store

    n_rows, x = rows.shape[0], bags.instances
    left, right = rows, x
    if not exact and n_rows * bags.n_instances >= PAIRS_IN_DOUBLE:
        left, right = rows.astype(np.float32), x.astype(np.float32)
    half = _half_norms(right)
    block = max(VALUES_PER_BLOCK // bags.n_instances, 1)
    for start in range(0, n_rows, block):
        part = slice(start, min(start + block, n_rows))
        products = left[part] @ right.T
        products = products.toarray() if sparse.issparse(products) else products
        out = np.empty((len(products), len(bags)), dtype=np.float64 if exact else products.dtype)
        if exact:
            nearest = np.empty(out.shape, dtype=np.int64)
            loops.nearest_of_bags(products, half, bags.offsets, nearest)
            loops.exact_distances(row_store(rows), start, row_store(x), nearest, out)
        else:
            loops.lowest_of_bags(products, _half_norms(left[part]), half, bags.offsets, out)
        yield part, out


def hausdorff(a: Bags, b: Bags, *, kind: str) -> FloatArray:
    """(len(a), len(b)) distances between bags.

    "minimal" is the distance of the two nearest instances. "modified" is the mean distance of a bag's instances to the
    other bag's nearest one, in whichever direction that is larger.
    """
    if kind == "minimal":
        return _reduced(a, b, np.minimum, np.inf)
    forth = _reduced(a, b, np.add, 0.0) / a.sizes[:, None]
    back = forth if a is b else _reduced(b, a, np.add, 0.0) / b.sizes[:, None]
    return np.maximum(forth, back.T)


def _reduced(a: Bags, b: Bags, combine: np.ufunc, start: float) -> FloatArray:
    """(len(a), len(b)) smallest distance, or sum of the distances, of a bag's instances to another bag."""
    out = np.full((len(a), len(b)), start)
    for part, squares in squared_distances(a.instances, b, exact=True):
        first = int(np.searchsorted(a.offsets, part.start, side="right")) - 1
        last = int(np.searchsorted(a.offsets, part.stop, side="left"))
        edges = np.maximum(a.offsets[first:last], part.start) - part.start  # a block may begin inside a bag
        out[first:last] = combine(out[first:last], combine.reduceat(np.sqrt(squares), edges, axis=0))
    return out


def _half_norms(x: Any) -> FloatArray:
    square = x.multiply(x).sum(axis=1) if sparse.issparse(x) else np.einsum("ij,ij->i", x, x)
    return np.asarray(square, dtype=x.dtype).ravel() / 2
