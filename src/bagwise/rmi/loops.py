"""The inner loops of RMI-SVM's stochastic solver, compiled.

One call walks over a list of bags and makes one Pegasos step on each, for all binary problems at once, so that every
instance is read from memory twice per step (scores, then update) however many classes there are. Imported on first
use, because importing numba takes longer than most fits.
"""

import math

import numpy as np

from bagwise._utils.compiled import fast_loop

FAR_BELOW = -30.0
LOW = -6.0


@fast_loop
def _bag_coefficients(z, positive, beta, margin, z_threshold, c):
    """Write minus the derivative of one bag's loss by each score z into c: the twin of objective.py."""
    m = len(z)
    total = 0.0
    # Σ log(1 + e) as the logarithm of a product: one call per bag (or per 512 instances, before it overflows).
    # Where all scores are so low that 1 + e loses the digits of e, the sum is taken again term by term.
    product = 1.0
    highest = z[0]
    for j in range(m):
        zj = z[j]
        highest = max(highest, zj)
        e = math.exp(-abs(zj))
        product *= 1.0 + e
        total += max(zj, 0.0)
        c[j] = (1.0 if zj >= 0 else e) / (1.0 + e)
        if j % 512 == 511:
            total += math.log(product)
            product = 1.0
    total += math.log(product)
    if highest < LOW:
        total = 0.0
        for j in range(m):
            total += math.log1p(math.exp(z[j]))
    if positive:
        if highest < FAR_BELOW:
            shifted = 0.0
            for j in range(m):
                shifted += math.exp(z[j] - highest)
            for j in range(m):
                c[j] = math.exp(z[j] - highest) / shifted
        else:
            ratio = math.exp(-total) / -math.expm1(-total)
            for j in range(m):
                c[j] *= ratio
    else:
        for j in range(m):
            c[j] = -c[j]
    share = 1.0 / m
    for j in range(m):
        sign = 1.0 if z[j] >= z_threshold else -1.0
        c[j] = beta * c[j] + (sign * share if sign * z[j] < margin else 0.0)


@fast_loop
def _dense_scores(X, first, last, W, b, z):
    """z[k, j] = W[k]·x_j + b[k]; four rows at a time, so that W is read a quarter as often.

    The last block repeats the last row instead of treating the remainder apart; z has room for three more.
    """
    n_problems, d = W.shape
    for j in range(0, last - first, 4):
        row = first + j
        x0, x1, x2, x3 = X[row], X[min(row + 1, last - 1)], X[min(row + 2, last - 1)], X[min(row + 3, last - 1)]
        for k in range(n_problems):
            w = W[k]
            s0 = s1 = s2 = s3 = 0.0
            for i in range(d):
                s0 += w[i] * x0[i]
                s1 += w[i] * x1[i]
                s2 += w[i] * x2[i]
                s3 += w[i] * x3[i]
            z[k, j], z[k, j + 1], z[k, j + 2], z[k, j + 3] = s0 + b[k], s1 + b[k], s2 + b[k], s3 + b[k]


@fast_loop
def _dense_gradient(X, first, last, c, g):
    """g[k] = Σ_j c[k, j] x_j, four rows at a time; c is set to zero beyond the bag, where rows repeat."""
    n_problems, d = g.shape
    m = last - first
    for k in range(n_problems):
        for j in range(m, (m + 3) // 4 * 4):
            c[k, j] = 0.0
    for j in range(0, m, 4):
        row = first + j
        x0, x1, x2, x3 = X[row], X[min(row + 1, last - 1)], X[min(row + 2, last - 1)], X[min(row + 3, last - 1)]
        for k in range(n_problems):
            gk = g[k]
            c0, c1, c2, c3 = c[k, j], c[k, j + 1], c[k, j + 2], c[k, j + 3]
            if j == 0:
                for i in range(d):
                    gk[i] = c0 * x0[i] + c1 * x1[i] + c2 * x2[i] + c3 * x3[i]
            else:
                for i in range(d):
                    gk[i] += c0 * x0[i] + c1 * x1[i] + c2 * x2[i] + c3 * x3[i]


@fast_loop
def dense_steps(
    X, offsets, prior, order, targets, weight,
    W, b, W_sum, b_sum, step, average_from,
    lam, beta, margin, z_threshold, radius, intercept,
):  # fmt: skip
    """Make one step on each bag of ``order``; change W (n_problems, d) and b in place.

    ``step`` is the number of steps made before; iterates after more than ``average_from`` steps are added to W_sum
    and b_sum. ``prior`` may be empty (no prior). ``radius`` holds the bound on the norm for each problem.
    """
    n_problems, d = W.shape
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    z = np.empty((n_problems, longest + 3))
    c = np.empty((n_problems, longest + 3))
    g = np.empty((n_problems, d))
    for i in order:
        step += 1
        first, last = offsets[i], offsets[i + 1]
        m = last - first
        _dense_scores(X, first, last, W, b, z)
        for k in range(n_problems):
            if len(prior) > 0:
                for j in range(m):
                    z[k, j] += prior[first + j]
            _bag_coefficients(z[k, :m], targets[i, k], beta, margin, z_threshold, c[k, :m])
        _dense_gradient(X, first, last, c, g)
        shrink = 1.0 - 1.0 / step
        for k in range(n_problems):
            eta = weight[i, k] / (lam * step)
            wk, gk = W[k], g[k]
            square = 0.0
            for i_ in range(d):
                value = shrink * wk[i_] + eta * gk[i_]
                wk[i_] = value
                square += value * value
            if intercept:
                b[k] = shrink * b[k] + eta * c[k, :m].sum()
                square += b[k] * b[k]
            if square > radius[k] * radius[k]:
                scale = radius[k] / math.sqrt(square)
                for i_ in range(d):
                    wk[i_] *= scale
                b[k] *= scale
            if step > average_from:
                for i_ in range(d):
                    W_sum[k, i_] += wk[i_]
                b_sum[k] += b[k]


@fast_loop
def sparse_steps(
    data, indices, indptr, offsets, prior, order, targets, weight,
    V, scale, square, b, U, mass, b_sum, step, average_from,
    lam, beta, margin, z_threshold, radius, intercept,
):  # fmt: skip
    """The same on CSR rows, at a cost of O(nonzeros of the bag) per step, whatever the number of columns.

    w_k = scale[k] V[k], so that shrinking and projecting cost O(1); square[k] = ‖V[k]‖² is carried along.
    The sum of the iterates is mass[k] V[k] - U[k], where mass is the sum of the scales so far and U collects every
    change of V times the mass before it.
    """
    n_problems = V.shape[0]
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    z = np.empty(longest)
    c = np.empty(longest)
    for i in order:
        step += 1
        first, last = offsets[i], offsets[i + 1]
        m = last - first
        averaging = step > average_from
        for k in range(n_problems):
            v, u = V[k], U[k]
            for j in range(m):
                s = 0.0
                for t in range(indptr[first + j], indptr[first + j + 1]):
                    s += v[indices[t]] * data[t]
                z[j] = scale[k] * s + b[k]
                if len(prior) > 0:
                    z[j] += prior[first + j]
            _bag_coefficients(z[:m], targets[i, k], beta, margin, z_threshold, c[:m])
            shrink = 1.0 - 1.0 / step
            eta = weight[i, k] / (lam * step)
            if shrink == 0.0 or scale[k] < 1e-100:
                factor = shrink * scale[k]
                for i_ in range(len(v)):
                    v[i_] *= factor
                square[k] *= factor * factor
                # Nothing is averaged in the first step; later the sum stays what it was.
                mass[k] = 0.0 if factor == 0.0 else mass[k] / factor
                scale[k] = 1.0
            else:
                scale[k] *= shrink
            growth = 0.0
            for j in range(m):
                push = eta * c[j] / scale[k]
                if push != 0.0:
                    for t in range(indptr[first + j], indptr[first + j + 1]):
                        column = indices[t]
                        change = push * data[t]
                        growth += change * (2.0 * v[column] + change)
                        v[column] += change
                        u[column] += mass[k] * change
            square[k] += growth
            if intercept:
                b[k] = shrink * b[k] + eta * c[:m].sum()
            norm2 = scale[k] * scale[k] * square[k] + b[k] * b[k]
            if norm2 > radius[k] * radius[k]:
                fit = radius[k] / math.sqrt(norm2)
                scale[k] *= fit
                b[k] *= fit
            if averaging:
                mass[k] += scale[k]
                b_sum[k] += b[k]
