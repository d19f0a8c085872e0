"""Kernels between bags: sums of a Gaussian kernel over all pairs of instances, a block of pairs at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.base import FloatArray

# Pairs of instances are compared in blocks of this many rows and columns: a few megabytes at a time.
ROWS_PER_BLOCK = 512
# From this many pairs on, inner products are formed in single precision, which is more than twice as fast. The error
# of a kernel value, about 1e-6, is far below what the SVM's own tolerance lets through.
PAIRS_IN_DOUBLE = 1 << 28


def set_kernel(
    a: Bags,
    b: Bags | None = None,
    *,
    gamma: float,
    weight_a: FloatArray | None = None,
    weight_b: FloatArray | None = None,
) -> FloatArray:
    """K[i, j] = Σ_x Σ_y weight(x) weight(y) exp(-γ ‖x - y‖²), x over the instances of a[i] and y over those of b[j].

    Parameters
    ----------
    a, b : Bags
        Without b, a is compared with itself, and only half of the pairs are formed.
    gamma : float
    weight_a, weight_b : (n_instances,) arrays, optional
        One by default.

    Returns
    -------
    (len(a), len(b)) float64 array
    """
    from bagwise.bag_space import _kernel_loops as loops

    symmetric = b is None
    other = a if b is None else b
    pairs = a.n_instances * other.n_instances
    single = pairs >= PAIRS_IN_DOUBLE or (a.dtype == np.float32 and other.dtype == np.float32)
    dtype = np.dtype(np.float32 if single else np.float64)
    add_block = loops.add_block_single if single else loops.add_block_double
    left = _Rows(a, other, weight_a, dtype)
    right = left if symmetric else _Rows(other, other, weight_b, dtype)
    out = np.zeros((len(a), len(other)))
    for i in range(0, a.n_instances, ROWS_PER_BLOCK):
        rows = slice(i, i + ROWS_PER_BLOCK)
        for j in range(i if symmetric else 0, other.n_instances, ROWS_PER_BLOCK):
            columns = slice(j, j + ROWS_PER_BLOCK)
            first, edges = right.segments(columns)
            row_bag = left.bag[rows]
            part = np.zeros((row_bag[-1] - row_bag[0] + 1, len(edges) - 1))
            add_block(
                left.products(rows, right, columns),
                left.half_norm[rows],
                right.half_norm[columns],
                float(gamma),
                left.weight[rows],
                right.weight[columns],
                row_bag - row_bag[0],
                edges,
                part,
            )
            bags_a = slice(row_bag[0], row_bag[-1] + 1)
            bags_b = slice(first, first + len(edges) - 1)
            out[bags_a, bags_b] += part
            if symmetric and j > i:  # a bag that both blocks cut gets its pairs in both orders
                out[bags_b, bags_a] += part.T
    return (out + out.T) / 2 if symmetric else out


def self_kernel(bags: Bags, *, gamma: float, weight: FloatArray | None = None) -> FloatArray:
    """(n_bags,) the set kernel of each bag with itself: the diagonal of `set_kernel`, without most of the rest."""
    own = []
    start = 0
    while start < len(bags):
        full = int(np.searchsorted(bags.offsets, bags.offsets[start] + ROWS_PER_BLOCK, side="right")) - 1
        stop = max(full, start + 1)
        rows = slice(bags.offsets[start], bags.offsets[stop])
        own.append(
            np.diag(set_kernel(bags[start:stop], gamma=gamma, weight_a=None if weight is None else weight[rows]))
        )
        start = stop
    return np.concatenate(own)


class _Rows:
    """What the blocks need of one side: centred rows, half squared norms, weights, bags."""

    def __init__(self, bags: Bags, reference: Bags, weight: FloatArray | None, dtype: np.dtype) -> None:
        x = bags.instances
        if sparse.issparse(x):
            self.x = x.astype(dtype)
            self.half_norm = np.asarray(self.x.multiply(self.x).sum(axis=1)).ravel() / 2
        else:
            # Distances do not change by a shift, but far from the origin they would drown in rounding errors.
            self.x = (x - self.centre(reference.instances)).astype(dtype, copy=False)
            self.half_norm = np.einsum("ij,ij->i", self.x, self.x) / 2
        self.half_norm = self.half_norm.astype(dtype, copy=False)
        self.weight = np.ones(len(self.half_norm), dtype) if weight is None else weight.astype(dtype, copy=False)
        self.bag = bags.bag_of_instance
        self.offsets = bags.offsets

    @staticmethod
    def centre(x: NDArray) -> NDArray:
        return x.mean(axis=0, dtype=np.float64)

    def products(self, rows: slice, other: _Rows, columns: slice) -> NDArray:
        block: Any = self.x[rows] @ other.x[columns].T
        return block.toarray() if sparse.issparse(block) else block

    def segments(self, columns: slice) -> tuple[int, NDArray[np.int64]]:
        """The first bag with rows in the block, and where this and the following bags begin in it, end included."""
        stop = min(columns.stop, len(self.bag))
        first, last = int(self.bag[columns.start]), int(self.bag[stop - 1])
        return first, np.clip(self.offsets[first : last + 2], columns.start, stop) - columns.start
