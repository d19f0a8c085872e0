"""Operations on rows of instances, dense or CSR, for compiled loops that serve both.

A row store is the tuple ``(X,)`` or ``(data, indices, indptr)``; the operations are chosen by its type when a loop is
compiled. Imported on first use, because importing numba takes longer than most fits.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from scipy import sparse

from bagwise._utils.compiled import FAST_PART, loop

# Bytes in one line of the cache.
LINE = 64


@intrinsic
def _fetch_line(typing_context, array, index):
    """Ask for the cache line that holds a value of an array, numbered in the order of memory, before it is needed."""

    def code(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [address, number(0), number(3), number(1)])  # to read, into the nearest cache
        return context.get_dummy_value()

    return types.void(array, index), code


fetch: Any = _fetch_line  # numba hands over the typing context itself


def row_fetch(store, row):
    """Ask for a row that will be needed soon."""


def row_dot(store, row, w):
    """x_row · w."""


def row_add(store, row, step, w):
    """Add step · x_row to w."""


def row_pair(store, a, other, b):
    """Row a of one store · row b of another of the same kind."""


def row_distance(store, a, other, b):
    """Squared distance between row a of one store and row b of another of the same kind."""


@overload(row_fetch, jit_options=FAST_PART)
def _row_fetch(store, row):
    if len(store) == 1:

        def dense(store, row):
            x = store[0]
            d = x.shape[1]
            for i in range(row * d, row * d + d, LINE // x.itemsize):
                fetch(x, i)

        return dense

    def csr(store, row):
        data, indices, indptr = store
        for t in range(indptr[row], indptr[row + 1], LINE // data.itemsize):
            fetch(data, t)
            fetch(indices, t)

    return csr


@overload(row_dot, jit_options=FAST_PART)
def _row_dot(store, row, w):
    if len(store) == 1:

        def dense(store, row, w):
            x = store[0][row]
            total = 0.0
            for i in range(len(x)):
                total += x[i] * w[i]
            return total

        return dense

    def csr(store, row, w):
        data, indices, indptr = store
        total = 0.0
        for t in range(indptr[row], indptr[row + 1]):
            total += data[t] * w[indices[t]]
        return total

    return csr


@overload(row_add, jit_options=FAST_PART)
def _row_add(store, row, step, w):
    if len(store) == 1:

        def dense(store, row, step, w):
            x = store[0][row]
            for i in range(len(x)):
                w[i] += step * x[i]

        return dense

    def csr(store, row, step, w):
        data, indices, indptr = store
        for t in range(indptr[row], indptr[row + 1]):
            w[indices[t]] += step * data[t]

    return csr


@overload(row_pair, jit_options=FAST_PART)
def _row_pair(store, a, other, b):
    if len(store) == 1:

        def dense(store, a, other, b):
            x, y = store[0][a], other[0][b]
            total = 0.0
            for i in range(len(x)):
                total += x[i] * y[i]
            return total

        return dense

    def csr(store, a, other, b):
        data, indices, indptr = store
        other_data, other_indices, other_indptr = other
        s, t = indptr[a], other_indptr[b]
        total = 0.0
        while s < indptr[a + 1] and t < other_indptr[b + 1]:
            if indices[s] == other_indices[t]:
                total += data[s] * other_data[t]
                s += 1
                t += 1
            elif indices[s] < other_indices[t]:
                s += 1
            else:
                t += 1
        return total

    return csr


@overload(row_distance, jit_options=FAST_PART)
def _row_distance(store, a, other, b):
    if len(store) == 1:

        def dense(store, a, other, b):
            x, y = store[0][a], other[0][b]
            total = 0.0
            for i in range(len(x)):
                total += (x[i] - y[i]) ** 2
            return total

        return dense

    def csr(store, a, other, b):
        data, indices, indptr = store
        other_data, other_indices, other_indptr = other
        s, t = indptr[a], other_indptr[b]
        last, other_last = indptr[a + 1], other_indptr[b + 1]
        total = 0.0
        while s < last or t < other_last:
            difference = 0.0
            in_both = s < last and t < other_last and indices[s] == other_indices[t]
            if in_both or t == other_last or (s < last and indices[s] < other_indices[t]):
                difference = data[s]
                s += 1
                if in_both:
                    difference -= other_data[t]
                    t += 1
            else:
                difference = other_data[t]
                t += 1
            total += difference * difference
        return total

    return csr


def row_store(X):
    """The store of an array or CSR matrix."""
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)


@loop
def squared_norms(store, n_rows):
    """(n_rows,) ‖x‖² of each row."""
    out = np.empty(n_rows)
    for row in range(n_rows):
        out[row] = row_pair(store, row, store, row)
    return out
