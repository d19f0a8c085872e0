"""Dual coordinate descent for linear support vector machines with shared slacks, compiled.

The same loop serves dense and CSR rows: a row store is the tuple ``(X,)`` or ``(data, indices, indptr)``, and the
three operations on rows are chosen by its type when the loop is compiled. Imported on first use.
"""

import numpy as np
from numba import njit
from numba.extending import overload

# Sums may be reordered (that is what lets them run on vector units); NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}


def row_dot(store, row, w):
    """x_row · w."""


def row_add(store, row, step, w):
    """Add step · x_row to w."""


def row_pair(store, a, b):
    """x_a · x_b."""


@overload(row_dot, jit_options={"fastmath": FAST})
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


@overload(row_add, jit_options={"fastmath": FAST})
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


@overload(row_pair, jit_options={"fastmath": FAST})
def _row_pair(store, a, b):
    if len(store) == 1:

        def dense(store, a, b):
            x, y = store[0][a], store[0][b]
            total = 0.0
            for i in range(len(x)):
                total += x[i] * y[i]
            return total

        return dense

    def csr(store, a, b):
        data, indices, indptr = store
        s, t = indptr[a], indptr[b]
        total = 0.0
        while s < indptr[a + 1] and t < indptr[b + 1]:
            if indices[s] == indices[t]:
                total += data[s] * data[t]
                s += 1
                t += 1
            elif indices[s] < indices[t]:
                s += 1
            else:
                t += 1
        return total

    return csr


@njit(cache=True, nogil=True)
def _shuffle(order, state):
    """Fisher and Yates, with a 64-bit linear congruential generator whose state is carried on."""
    for last in range(len(order) - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = np.int64((state >> np.uint64(33)) % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]
    return state


@njit(cache=True, nogil=True, fastmath=FAST)
def passes(store, rows, group, offsets, sign, cap, norm2, alpha, used, slope, active, w, bias, n_passes, state):
    """Walk n_passes times over the active items in random order and move each one's dual variable to its best value.

    Item k is the row rows[k] and belongs to group[k]; the items of group g are offsets[g]:offsets[g + 1], have the
    label sign[g], and their dual variables alpha, none negative, may sum to cap[g] at most (used[g] is the sum).
    norm2 holds ‖x‖² + 1 of each item (1 for the intercept's constant feature), slope its derivative y z - 1 when last
    seen. w and bias, an array of one, are changed along.
    """
    for _ in range(n_passes):
        state = _shuffle(active, state)
        for k in active:
            g, row = group[k], rows[k]
            y = sign[g]
            slope_k = y * (row_dot(store, row, w) + bias[0]) - 1.0
            room = max(cap[g] - used[g], 0.0)
            step = -slope_k / norm2[k]
            full = step >= room
            step = max(min(step, room), -alpha[k])
            if step != 0.0:
                alpha[k] += step
                used[g] = cap[g] if full else used[g] + step
                row_add(store, row, step * y, w)
                bias[0] += step * y
                slope_k += step * norm2[k]
            slope[k] = slope_k
            if not full or slope_k >= 0.0 or offsets[g + 1] - offsets[g] == 1:
                continue
            # The group has used up its cap: take from the item that deserves its share least, and give it to k.
            partner = -1
            for j in range(offsets[g], offsets[g + 1]):
                if alpha[j] > 0.0 and j != k and (partner < 0 or slope[j] > slope[partner]):
                    partner = j
            if partner < 0:
                continue
            other = rows[partner]
            slope_j = y * (row_dot(store, other, w) + bias[0]) - 1.0
            product = row_pair(store, row, other) + 1.0
            curvature = max(norm2[k] + norm2[partner] - 2.0 * product, 1e-12 * norm2[k])
            move = max(min((slope_j - slope_k) / curvature, alpha[partner]), -alpha[k])
            if move != 0.0:
                alpha[k] += move
                alpha[partner] -= move
                row_add(store, row, move * y, w)
                row_add(store, other, -move * y, w)
            slope[k] = slope_k + move * (norm2[k] - product)
            slope[partner] = slope_j + move * (product - norm2[partner])
    return state


@njit(cache=True, nogil=True)
def scores(store, w, bias, z):
    """z = X w + intercept, for all rows."""
    for row in range(len(z)):
        z[row] = row_dot(store, row, w) + bias[0]


@njit(cache=True, nogil=True)
def add_rows(store, rows, steps, w):
    """Add Σ_k steps[k] · x_rows[k] to w."""
    for k in range(len(rows)):
        row_add(store, rows[k], steps[k], w)


@njit(cache=True, nogil=True)
def squared_norms(store, n_rows):
    """(n_rows,) ‖x‖² of each row."""
    out = np.empty(n_rows)
    for row in range(n_rows):
        out[row] = row_pair(store, row, row)
    return out
