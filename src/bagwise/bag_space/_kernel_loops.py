"""The inner loop of the Gaussian set kernels, compiled.

A block of inner products between instances is turned into Gaussian kernel values and summed by bag, one row at a
time in a buffer that stays in the nearest cache, so that no second block is ever written. Imported on first use,
because importing numba takes longer than most fits.

The exponential is our own, because the C library's is called for one value at a time: 2^t is split into a whole
power, put straight into the exponent bits, and a polynomial for the rest, in loops that run on vector units.
"""

import numpy as np

from bagwise._utils.compiled import fused_loop, loop

LOG2_E = 1.4426950408889634
# Adding this number leaves the rounded value in the lowest bits of the mantissa.
ROUND_64 = 1.5 * 2.0**52
ROUND_32 = np.float32(1.5 * 2.0**23)
# Powers of two below these are zero for every purpose here, and would overflow the exponent bits.
LOWEST_64 = -1000.0
LOWEST_32 = np.float32(-120.0)
# Taylor coefficients of 2^f, |f| <= 1/2.
C = [0.6931471805599453**k for k in range(13)]
FACTORIAL = [1.0, 1.0, 2.0, 6.0, 24.0, 120.0, 720.0, 5040.0, 40320.0, 362880.0, 3628800.0, 39916800.0, 479001600.0]
C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (C[k] / FACTORIAL[k] for k in range(1, 13))
S1, S2, S3, S4, S5, S6, S7 = (np.float32(c) for c in (C1, C2, C3, C4, C5, C6, C7))
ZERO, ONE = np.float32(0), np.float32(1)


@fused_loop
def _gaussian_row_double(products, row_norm, column_norm, scale, power, power_bits, value, value_bits):
    """value = 2^(scale (products - norms)). The arrays ``*_bits`` are the same memory seen as integers."""
    n = len(value)
    for j in range(n):
        # Never above zero, whatever rounding did to the squared distance.
        t = max(min(scale * (products[j] - (row_norm + column_norm[j])), 0.0), LOWEST_64)
        shifted = t + ROUND_64
        f = t - (shifted - ROUND_64)
        p = C8 + f * (C9 + f * (C10 + f * (C11 + f * C12)))
        value[j] = 1.0 + f * (C1 + f * (C2 + f * (C3 + f * (C4 + f * (C5 + f * (C6 + f * (C7 + f * p)))))))
        power[j] = shifted
    for j in range(n):
        value_bits[j] += power_bits[j] << 52


@fused_loop
def _gaussian_row_single(products, row_norm, column_norm, scale, power, power_bits, value, value_bits):
    n = len(value)
    for j in range(n):
        t = max(min(scale * (products[j] - (row_norm + column_norm[j])), ZERO), LOWEST_32)
        shifted = t + ROUND_32
        f = t - (shifted - ROUND_32)
        value[j] = ONE + f * (S1 + f * (S2 + f * (S3 + f * (S4 + f * (S5 + f * (S6 + f * S7))))))
        power[j] = shifted
    for j in range(n):
        value_bits[j] += power_bits[j] << 23


@loop
def _add(value, factor, total):
    for j in range(len(total)):
        total[j] += factor * value[j]


@loop
def _add_segments(total, weight, edges, out):
    for s in range(len(edges) - 1):
        for j in range(edges[s], edges[s + 1]):
            out[s] += total[j] * weight[j]


@loop
def add_block_double(products, row_norm, column_norm, gamma, row_weight, column_weight, row_bag, edges, out):
    """out[bag of row, segment of columns] += Σ weight · weight · exp(-γ ‖x - y‖²).

    products : (r, c) inner products; ``*_norm`` : half the squared norms; row_bag : (r,) row of ``out`` of each row,
    ascending; edges : (n_segments + 1,) where the bags of the columns begin
    """
    r, n = products.shape
    scale = 2.0 * gamma * LOG2_E
    total, power, value = np.zeros(n), np.empty(n), np.empty(n)
    power_bits, value_bits = power.view(np.int64), value.view(np.int64)
    for i in range(r):
        _gaussian_row_double(products[i], row_norm[i], column_norm, scale, power, power_bits, value, value_bits)
        _add(value, row_weight[i], total)
        if i + 1 == r or row_bag[i + 1] != row_bag[i]:
            _add_segments(total, column_weight, edges, out[row_bag[i]])
            total[:] = 0


@loop
def add_block_single(products, row_norm, column_norm, gamma, row_weight, column_weight, row_bag, edges, out):
    """The same in single precision; what a block adds up to is summed in double."""
    r, n = products.shape
    scale = np.float32(2.0 * gamma * LOG2_E)
    total, power, value = np.zeros(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    power_bits, value_bits = power.view(np.int32), value.view(np.int32)
    for i in range(r):
        _gaussian_row_single(products[i], row_norm[i], column_norm, scale, power, power_bits, value, value_bits)
        _add(value, row_weight[i], total)
        if i + 1 == r or row_bag[i + 1] != row_bag[i]:
            _add_segments(total, column_weight, edges, out[row_bag[i]])
            total[:] = 0
