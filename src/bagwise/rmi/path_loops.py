"""The inner loops of the path: the steps of loops.py for many candidates at once, compiled.

A candidate is a model with a λ, a pooling and a fold of bags of its own that it never visits. One walk over the bags
makes a step of every candidate, so that an instance is read once for all of them, and the candidates lie side by side
in memory (``W`` is n_features x n_candidates), so that vector units work on a dozen of them at a time. Arithmetic is
float32: to compare candidates a few digits are enough.

Imported on first use, because importing numba takes longer than most fits.
"""

import math

import numpy as np

from bagwise._utils.compiled import fast_loop

F = np.float32
ZERO, ONE, HALF, THIRD = F(0), F(1), F(1 / 2), F(1 / 3)
# exp(-a) is the 64th power of exp(-a / 64), for which eight terms of the series are exact to float32.
ROOT = F(1 / 64)
C2, C3, C4, C5, C6, C7, C8 = F(1 / 2), F(1 / 6), F(1 / 24), F(1 / 120), F(1 / 720), F(1 / 5040), F(1 / 40320)
LARGEST = F(80)
LOW, FAR_BELOW = F(-6), F(-30)
# Smaller pulls change no digit of w, and some processors take a hundred times longer for numbers near the smallest.
TINY = F(1e-25)
# A vector that is kept as scale * W is written anew before its scale gets so small that W would overflow.
SMALLEST_SCALE = F(1e-6)


@fast_loop
def _pulls(z, m, positive, beta, margin, z_threshold, c, product, total, small, highest):
    """Write minus the derivative of one bag's loss by each score z (m, n_candidates) into c: see objective.py.

    The other arrays have room for one number of each candidate.
    """
    n = len(total)
    for k in range(n):
        product[k] = ONE
        total[k] = ZERO
        small[k] = ZERO
        highest[k] = F(-1e30)
    for j in range(m):
        for k in range(n):
            v = z[j, k]
            a = min(abs(v), LARGEST) * ROOT
            e = ONE - a * (ONE - a * (C2 - a * (C3 - a * (C4 - a * (C5 - a * (C6 - a * (C7 - a * C8)))))))
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            product[k] *= ONE + e
            total[k] += max(v, ZERO)
            small[k] += e * (ONE - e * (HALF - e * THIRD))
            highest[k] = max(highest[k], v)
            c[j, k] = (ONE if v >= ZERO else e) / (ONE + e)
        if j % 64 == 63:
            for k in range(n):
                total[k] += F(math.log(product[k]))
                product[k] = ONE
    for k in range(n):
        # Where all scores are low, 1 + e has lost the digits of e, and the sum of the logarithms' series has not.
        s = np.float64(small[k]) if highest[k] < LOW else total[k] + math.log(np.float64(product[k]))
        total[k] = F(beta / math.expm1(min(max(s, 1e-34), 80.0))) if positive else F(-beta)
        if positive and highest[k] < FAR_BELOW:  # a hopeless bag: its pull, which does not vanish, on the log scale
            shifted = ZERO
            for j in range(m):
                c[j, k] = F(math.exp(z[j, k] - highest[k]))
                shifted += c[j, k]
            total[k] = beta / shifted
    share = ONE / F(m)
    for j in range(m):
        for k in range(n):
            v = z[j, k]
            away = v if v >= z_threshold else -v
            push = share if v >= z_threshold else -share
            pull = total[k] * c[j, k]
            c[j, k] = (pull if abs(pull) > TINY else ZERO) + (push if away < margin else ZERO)


@fast_loop
def _begin_step(visits, weight, c, m, step, average_from, lam, scale, b, b_sum, intercept, kept, eta):
    """Shrink every candidate that visits the bag, turn pulls c into changes of W = w / scale, and move b.

    ``kept`` becomes what W must be multiplied by to be the last iterate, where that counts for the average, else 0.
    """
    n = len(scale)
    for k in range(n):
        kept[k] = ZERO
        eta[k] = ZERO
        if visits[k]:
            step[k] += 1
            if step[k] - 1 > average_from[k]:
                kept[k] = scale[k]
                b_sum[k] += b[k]
            shrink = F(1.0 - 1.0 / step[k])
            scale[k] = scale[k] * shrink if step[k] > 1 else ONE  # the first step forgets the start, which is zero
            b[k] *= shrink
            eta[k] = F(weight / (lam[k] * step[k]))
    for j in range(m):
        for k in range(n):
            change = eta[k] * c[j, k]
            if intercept:
                b[k] += change
            c[j, k] = change / scale[k]


@fast_loop
def _project(squares, scale, b, radius):
    """Shrink what lies outside its ball; squares are those of W."""
    for k in range(len(scale)):
        norm2 = scale[k] * scale[k] * squares[k] + b[k] * b[k]
        if norm2 > radius[k] * radius[k]:
            inside = radius[k] / F(math.sqrt(norm2))
            scale[k] *= inside
            b[k] *= inside


@fast_loop
def dense_steps(
    X, offsets, prior, order, fold, positive, weight, size_prior,
    W, W_sum, b, b_sum, scale, step, average_from,
    lam, normalized, left_out, radius, beta, margin, z_threshold, intercept,
):  # fmt: skip
    """One step on each bag of ``order`` for every candidate that does not leave out the bag's fold.

    Iterates after more than ``average_from`` steps of their candidate are added to W_sum and b_sum, but for the last
    one. ``prior`` may be empty. ``size_prior`` (one for each bag) is added times ``normalized``.
    """
    d, n = W.shape
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    z, c = np.empty((longest + 3, n), F), np.empty((longest + 3, n), F)
    product, total, small, highest = np.empty(n, F), np.empty(n, F), np.empty(n, F), np.empty(n, F)
    kept, eta, squares = np.empty(n, F), np.empty(n, F), np.empty(n, F)
    visits = np.empty(n, np.bool_)
    for i in order:
        first, last = offsets[i], offsets[i + 1]
        m = last - first
        for j in range(0, m, 4):  # four rows at a time, so that W is read a quarter as often
            x0, x1 = X[first + j], X[min(first + j + 1, last - 1)]
            x2, x3 = X[min(first + j + 2, last - 1)], X[min(first + j + 3, last - 1)]
            z0, z1, z2, z3 = z[j], z[j + 1], z[j + 2], z[j + 3]
            for k in range(n):
                z0[k] = ZERO
                z1[k] = ZERO
                z2[k] = ZERO
                z3[k] = ZERO
            whole = d - d % 4
            for f in range(0, whole, 4):
                w0, w1, w2, w3 = W[f], W[f + 1], W[f + 2], W[f + 3]
                p0, p1, p2, p3 = x0[f], x0[f + 1], x0[f + 2], x0[f + 3]
                q0, q1, q2, q3 = x1[f], x1[f + 1], x1[f + 2], x1[f + 3]
                r0, r1, r2, r3 = x2[f], x2[f + 1], x2[f + 2], x2[f + 3]
                s0, s1, s2, s3 = x3[f], x3[f + 1], x3[f + 2], x3[f + 3]
                for k in range(n):
                    z0[k] += p0 * w0[k] + p1 * w1[k] + p2 * w2[k] + p3 * w3[k]
                    z1[k] += q0 * w0[k] + q1 * w1[k] + q2 * w2[k] + q3 * w3[k]
                    z2[k] += r0 * w0[k] + r1 * w1[k] + r2 * w2[k] + r3 * w3[k]
                    z3[k] += s0 * w0[k] + s1 * w1[k] + s2 * w2[k] + s3 * w3[k]
            for f in range(whole, d):
                w0, p0, q0, r0, s0 = W[f], x0[f], x1[f], x2[f], x3[f]
                for k in range(n):
                    z0[k] += p0 * w0[k]
                    z1[k] += q0 * w0[k]
                    z2[k] += r0 * w0[k]
                    z3[k] += s0 * w0[k]
        for j in range(m):
            known = F(prior[first + j]) if len(prior) > 0 else ZERO
            for k in range(n):
                z[j, k] = scale[k] * z[j, k] + b[k] + known + normalized[k] * size_prior[i]
        _pulls(z, m, positive[i], beta, margin, z_threshold, c, product, total, small, highest)
        for k in range(n):
            visits[k] = left_out[k] != fold[i]
            if scale[k] < SMALLEST_SCALE:
                for f in range(d):
                    W[f, k] *= scale[k]
                scale[k] = ONE
        _begin_step(visits, weight[i], c, m, step, average_from, lam, scale, b, b_sum, intercept, kept, eta)
        for j in range(m, m + 3):  # rows beyond the bag, to make four at a time
            for k in range(n):
                c[j, k] = ZERO
        for j in range(0, m, 4):
            x0, x1 = X[first + j], X[min(first + j + 1, last - 1)]
            x2, x3 = X[min(first + j + 2, last - 1)], X[min(first + j + 3, last - 1)]
            c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
            if j == 0:
                for f in range(d):
                    w, w_sum = W[f], W_sum[f]
                    p0, p1, p2, p3 = x0[f], x1[f], x2[f], x3[f]
                    for k in range(n):
                        old = w[k]
                        w_sum[k] += kept[k] * old
                        w[k] = old + p0 * c0[k] + p1 * c1[k] + p2 * c2[k] + p3 * c3[k]
            else:
                for f in range(d):
                    w = W[f]
                    p0, p1, p2, p3 = x0[f], x1[f], x2[f], x3[f]
                    for k in range(n):
                        w[k] += p0 * c0[k] + p1 * c1[k] + p2 * c2[k] + p3 * c3[k]
        for k in range(n):
            squares[k] = ZERO
        for f in range(d):
            w = W[f]
            for k in range(n):
                squares[k] += w[k] * w[k]
        _project(squares, scale, b, radius)


@fast_loop
def sparse_steps(
    data, indices, indptr, offsets, prior, order, fold, positive, weight, size_prior,
    W, U, mass, squares, b, b_sum, scale, step, average_from,
    lam, normalized, left_out, radius, beta, margin, z_threshold, intercept,
):  # fmt: skip
    """The same on CSR rows, at a cost of O(nonzeros of the bag) per step.

    The sum of a candidate's iterates is mass * W - U, where mass is the sum of the scales so far and U collects every
    change of W times the mass before it; squares = ‖W‖² is carried along, and summed anew when W is written anew.
    """
    d, n = W.shape
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    z, c = np.empty((longest, n), F), np.empty((longest, n), F)
    product, total, small, highest = np.empty(n, F), np.empty(n, F), np.empty(n, F), np.empty(n, F)
    kept, eta, unused = np.empty(n, F), np.empty(n, F), np.zeros(n)
    visits = np.empty(n, np.bool_)
    for i in order:
        first, last = offsets[i], offsets[i + 1]
        m = last - first
        for j in range(m):
            zj = z[j]
            for k in range(n):
                zj[k] = ZERO
            for t in range(indptr[first + j], indptr[first + j + 1]):
                x, w = data[t], W[indices[t]]
                for k in range(n):
                    zj[k] += x * w[k]
            known = F(prior[first + j]) if len(prior) > 0 else ZERO
            for k in range(n):
                zj[k] = scale[k] * zj[k] + b[k] + known + normalized[k] * size_prior[i]
        _pulls(z, m, positive[i], beta, margin, z_threshold, c, product, total, small, highest)
        for k in range(n):
            visits[k] = left_out[k] != fold[i]
            if scale[k] < SMALLEST_SCALE:
                # The sum stays what it was; dividing the mass by the scale instead would let it grow without bound.
                squares[k] = ZERO
                for f in range(d):
                    U[f, k] -= mass[k] * W[f, k]
                    W[f, k] *= scale[k]
                    squares[k] += W[f, k] * W[f, k]
                mass[k] = ZERO
                scale[k] = ONE
        _begin_step(visits, weight[i], c, m, step, average_from, lam, scale, b, unused, intercept, kept, eta)
        for j in range(m):
            cj = c[j]
            for t in range(indptr[first + j], indptr[first + j + 1]):
                x, w, u = data[t], W[indices[t]], U[indices[t]]
                for k in range(n):
                    change = x * cj[k]
                    squares[k] += change * (w[k] + w[k] + change)
                    w[k] += change
                    u[k] += mass[k] * change
        _project(squares, scale, b, radius)
        for k in range(n):
            if visits[k] and step[k] > average_from[k]:
                mass[k] += scale[k]
                b_sum[k] += b[k]
