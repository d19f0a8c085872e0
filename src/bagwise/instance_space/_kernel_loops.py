"""Greedy dual ascent for support vector machines with a kernel and shared slacks, compiled.

All scores are kept up to date, so that every step can take the variable, or the pair within one group, that gains
most. Rows of the kernel matrix are computed when first needed and kept as long as there is room. Imported on first
use.
"""

import math

import numpy as np

from bagwise._utils.compiled import fast_loop, loop
from bagwise._utils.row_loops import row_pair

RBF = 0
POLY = 1


@fast_loop
def _kernel_row(store, norm2, row, kind, gamma, coef0, degree, out):
    """out = k(x_row, x) + 1 for all rows x; the one is the intercept's."""
    for other in range(len(out)):
        product = row_pair(store, row, store, other)
        if kind == RBF:
            out[other] = math.exp(-gamma * max(norm2[row] + norm2[other] - 2.0 * product, 0.0)) + 1.0
        else:
            out[other] = (gamma * product + coef0) ** degree + 1.0


@loop
def _slot(store, norm2, spec, row, cache, slot_of_row, row_of_slot, stamp):
    """Where in the cache the kernel's row lies; it takes the place of the one unused for longest."""
    kind, gamma, coef0, degree = spec
    stamp[-1] += 1  # the last entry is the clock
    slot = slot_of_row[row]
    if slot < 0:
        slot = np.argmin(stamp[:-1])
        if row_of_slot[slot] >= 0:
            slot_of_row[row_of_slot[slot]] = -1
        slot_of_row[row] = slot
        row_of_slot[slot] = row
        _kernel_row(store, norm2, row, kind, gamma, coef0, degree, cache[slot])
    stamp[slot] = stamp[-1]
    return slot


@fast_loop
def add_rows(store, norm2, spec, cache, slot_of_row, row_of_slot, stamp, rows, steps, z):
    """z += Σ_k steps[k] k(x_rows[k], ·)."""
    for k in range(len(rows)):
        if steps[k] != 0.0:
            line = cache[_slot(store, norm2, spec, rows[k], cache, slot_of_row, row_of_slot, stamp)]
            step = steps[k]
            for i in range(len(z)):
                z[i] += step * line[i]


@fast_loop
def steps(
    store, norm2, spec, cache, slot_of_row, row_of_slot, stamp,
    rows, offsets, sign, cap, diagonal, alpha, used, z, max_steps, accuracy,
):  # fmt: skip
    """Make up to max_steps steps, or stop when no derivative is further than accuracy from optimal.

    Items, groups, alpha, used and cap are those of _linear_kernels.passes; diagonal holds k(x, x) + 1 of each item.
    Changes alpha, used and the scores z of all rows. Returns the number of steps made.
    """
    n_groups = len(sign)
    pair_row = np.empty(len(z))
    for made in range(max_steps):
        best_gain, best, best_partner, worst = 0.0, -1, -1, 0.0
        for g in range(n_groups):
            y, room = sign[g], max(cap[g] - used[g], 0.0)
            low = high = -1
            low_slope = high_slope = 0.0
            for k in range(offsets[g], offsets[g + 1]):
                slope = y * z[rows[k]] - 1.0
                step = max(min(-slope / diagonal[k], room), -alpha[k])
                if step != 0.0:
                    worst = max(worst, abs(slope))
                    gain = -step * (slope + 0.5 * diagonal[k] * step)
                    if gain > best_gain:
                        best_gain, best, best_partner = gain, k, -1
                if low < 0 or slope < low_slope:
                    low, low_slope = k, slope
                if alpha[k] > 0.0 and (high < 0 or slope > high_slope):
                    high, high_slope = k, slope
            if low_slope < 0.0 and room <= 0.0 and high >= 0 and high != low:
                difference = high_slope - low_slope
                if difference > 0.0:
                    worst = max(worst, difference)
                    # The true curvature is smaller for kernels that are not negative, and the gain larger.
                    curvature = diagonal[low] + diagonal[high]
                    step = min(difference / curvature, alpha[high])
                    gain = step * (difference - 0.5 * curvature * step)
                    if gain > best_gain:
                        best_gain, best, best_partner = gain, low, high
        if best < 0 or worst <= accuracy:
            return made
        g = int(np.searchsorted(offsets, best, side="right")) - 1
        y = sign[g]
        line = cache[_slot(store, norm2, spec, rows[best], cache, slot_of_row, row_of_slot, stamp)]
        if best_partner < 0:
            room = max(cap[g] - used[g], 0.0)
            wish = -(y * z[rows[best]] - 1.0) / diagonal[best]
            step = max(min(wish, room), -alpha[best])
            alpha[best] += step
            used[g] = cap[g] if wish >= room else used[g] + step
            for i in range(len(z)):
                z[i] += step * y * line[i]
        else:
            pair_row[:] = line  # the next row may push this one out of the cache
            other = cache[_slot(store, norm2, spec, rows[best_partner], cache, slot_of_row, row_of_slot, stamp)]
            curvature = diagonal[best] + diagonal[best_partner] - 2.0 * pair_row[rows[best_partner]]
            difference = y * (z[rows[best_partner]] - z[rows[best]])
            step = min(difference / max(curvature, 1e-12 * diagonal[best]), alpha[best_partner])
            alpha[best] += step
            alpha[best_partner] -= step
            for i in range(len(z)):
                z[i] += step * y * (pair_row[i] - other[i])
    return max_steps
