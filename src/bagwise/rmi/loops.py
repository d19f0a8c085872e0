"""The inner loops of RMI-SVM's stochastic solver, compiled.

One call walks over a list of bags and makes one Pegasos step on each, for all binary problems at once, so that every
instance is read from memory once per step (for scores; the update finds it in the cache) however many classes there
are. Imported on first use, because importing numba takes longer than most fits.

w_k = scale[k] V[k], so that shrinking and projecting cost O(1). The sum of the iterates is mass[k] V[k] - U[k], where
mass is the sum of the scales so far and U collects every change of V times the mass before it.

Arrays are indexed without making views of their rows, because numba counts references to each view, and a step
on a small bag takes no longer than twenty such counts.
"""

import math

import numpy as np

from bagwise._utils.compiled import fast_loop, part_of_loop

# Scores go in blocks of so many; a block that a bag does not fill holds scores that no sum can feel.
BLOCK = 8
NOTHING = -80.0
# Beyond this, exp(z) and 1 + exp(z) are the same to the last digit.
HIGH = 60.0
LOW = -6.0
FAR_BELOW = -30.0
# exp(z) = 2**n exp(r), where n is a whole number and |r| <= log(2) / 2, for which the series takes thirteen terms.
PER_DOUBLING = 1 / math.log(2)
# log(2) in two parts: n times the first is exact.
LOG2, LOG2_REST = 0.693147180369123816490, 1.90821492927058770002e-10
SHIFT = 120
POWERS = 2.0 ** np.arange(-SHIFT, SHIFT + 1)
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(n) for n in range(2, 14))
# V is written anew before w = scale * V leaves it too large for float32, in which it is multiplied.
SMALLEST_SCALE = 1e-9
SMALLEST_SPARSE_SCALE = 1e-100  # there it is not


@part_of_loop
def _exp(z):
    """exp(z) for NOTHING <= z <= HIGH, in operations that run on vector units."""
    n = math.floor(z * PER_DOUBLING + 0.5)
    r = (z - n * LOG2) - n * LOG2_REST
    r2 = r * r
    r4 = r2 * r2
    low = ((1.0 + r) + r2 * (C2 + r * C3)) + r4 * ((C4 + r * C5) + r2 * (C6 + r * C7))
    high = ((C8 + r * C9) + r2 * (C10 + r * C11)) + r4 * (C12 + r * C13)
    return (low + r4 * r4 * high) * POWERS[np.uint32(n + SHIFT)]


@part_of_loop
def _hopeless(z, k, m, beta, c):
    """What c, the probabilities, are multiplied by in a positive bag whose scores are all low.

    Where they are so low that the bag's own probability has no digits left, c is written anew.
    """
    highest = z[k, 0]
    for j in range(m):
        highest = max(highest, z[k, j])
    total = 0.0
    if highest < FAR_BELOW:
        for j in range(m):
            c[k, j] = math.exp(z[k, j] - highest)
            total += c[k, j]
        ratio = beta / total
    else:
        for j in range(m):
            total += math.log1p(math.exp(z[k, j]))
        ratio = beta / math.expm1(total)
    return ratio


@part_of_loop
def _bag_coefficients(z, k, m, positive, beta, margin, z_threshold, c):
    """Write minus the derivative of one bag's loss by each score z[k] into c[k], and return their sum.

    The twin of objective.py. With t = exp(z), 1 - P = 1 / prod(1 + t), so that no logarithm is needed. Both arrays have
    room for a whole number of blocks; c is zero beyond the bag.
    """
    blocks = (m + BLOCK - 1) // BLOCK
    for j in range(m, BLOCK * blocks):
        z[k, j] = NOTHING
    product = 1.0
    near = 0.0
    for block in range(blocks):
        for j in range(BLOCK * block, BLOCK * block + BLOCK):
            v = min(max(z[k, j], NOTHING), HIGH)
            t = _exp(v)
            product *= 1.0 + t
            near += 1.0 if v >= LOW else 0.0
            c[k, j] = t / (1.0 + t)
    ratio = -beta
    if positive:
        # Where all scores are low, 1 + t has lost the digits of t.
        ratio = beta / (product - 1.0) if near > 0.0 else _hopeless(z, k, m, beta, c)
    share = 1.0 / m
    total = 0.0
    for block in range(blocks):
        for j in range(BLOCK * block, BLOCK * block + BLOCK):
            v = z[k, j]
            away = v if v >= z_threshold else -v
            push = share if v >= z_threshold else -share
            c[k, j] = ratio * c[k, j] + (push if away < margin else 0.0)
    for j in range(m, BLOCK * blocks):
        c[k, j] = 0.0
    for block in range(blocks):
        for j in range(BLOCK * block, BLOCK * block + BLOCK):
            total += c[k, j]
    return total


@part_of_loop
def _longest(offsets, order):
    """The most instances of any bag of the order, filled up to whole blocks."""
    longest = 0
    for i in order:
        longest = max(longest, offsets[i + 1] - offsets[i])
    return (longest + BLOCK - 1) // BLOCK * BLOCK


@fast_loop
def dense_steps(
    X, offsets, prior, order, targets, weight,
    V, scale, b, U, mass, b_sum, step, average_from,
    lam, beta, margin, z_threshold, radius, intercept,
):  # fmt: skip
    """Make one step on each bag of ``order``; change w = scale V (n_problems, d) and b in place.

    ``step`` is the number of steps made before; iterates after more than ``average_from`` steps are added to the sums.
    ``prior`` may be empty (no prior). ``radius`` holds the bound on the norm for each problem. Sums over columns, and
    over the instances of a bag, are in the precision of X; what is carried from step to step is in double precision.
    """
    n_problems, d = V.shape
    zero = X.dtype.type(0)
    longest = _longest(offsets, order)
    z, c = np.empty((n_problems, longest)), np.empty((n_problems, longest))
    g, rounded = np.empty((n_problems, d), X.dtype), np.empty((n_problems, d), X.dtype)
    for k in range(n_problems):
        for f in range(d):
            rounded[k, f] = V[k, f]
    for i in order:
        step += 1
        first, last = offsets[i], offsets[i + 1] - 1
        m = last + 1 - first
        # Four rows at a time, so that w is read a quarter as often. The last block repeats the last row instead of
        # treating the remainder apart.
        for j in range(0, m, 4):
            r0, r1, r2, r3 = first + j, min(first + j + 1, last), min(first + j + 2, last), min(first + j + 3, last)
            for k in range(n_problems):
                s0 = s1 = s2 = s3 = zero
                for f in range(d):
                    w = rounded[k, f]
                    s0 += w * X[r0, f]
                    s1 += w * X[r1, f]
                    s2 += w * X[r2, f]
                    s3 += w * X[r3, f]
                times, add = scale[k], b[k]
                z[k, j], z[k, j + 1] = times * s0 + add, times * s1 + add
                z[k, j + 2], z[k, j + 3] = times * s2 + add, times * s3 + add
        shrink = 1.0 - 1.0 / step
        averaging = step > average_from
        for k in range(n_problems):
            if len(prior) > 0:
                for j in range(m):
                    z[k, j] += prior[first + j]
            total = _bag_coefficients(z, k, m, targets[i, k], beta, margin, z_threshold, c)
            if intercept:
                b[k] = shrink * b[k] + weight[i, k] / (lam * step) * total
            factor = shrink * scale[k]
            if factor < SMALLEST_SCALE:
                # The sum stays what it was; dividing the mass by the factor instead would let it grow without bound.
                for f in range(d):
                    U[k, f] -= mass[k] * V[k, f]
                    V[k, f] *= factor
                mass[k] = 0.0
                factor = 1.0
            scale[k] = factor
        for j in range(0, m, 4):
            r0, r1, r2, r3 = first + j, min(first + j + 1, last), min(first + j + 2, last), min(first + j + 3, last)
            for k in range(n_problems):
                c0, c1 = X.dtype.type(c[k, j]), X.dtype.type(c[k, j + 1])
                c2, c3 = X.dtype.type(c[k, j + 2]), X.dtype.type(c[k, j + 3])
                if j == 0:
                    for f in range(d):
                        g[k, f] = c0 * X[r0, f] + c1 * X[r1, f] + c2 * X[r2, f] + c3 * X[r3, f]
                else:
                    for f in range(d):
                        g[k, f] += c0 * X[r0, f] + c1 * X[r1, f] + c2 * X[r2, f] + c3 * X[r3, f]
        for k in range(n_problems):
            push = weight[i, k] / (lam * step) / scale[k]
            square = 0.0
            if averaging:
                weighed = push * mass[k]
                for f in range(d):
                    value = V[k, f] + push * g[k, f]
                    U[k, f] += weighed * g[k, f]
                    V[k, f] = value
                    rounded[k, f] = value
                    square += value * value
            else:
                for f in range(d):
                    value = V[k, f] + push * g[k, f]
                    V[k, f] = value
                    rounded[k, f] = value
                    square += value * value
            norm2 = scale[k] * scale[k] * square + b[k] * b[k]
            if norm2 > radius[k] * radius[k]:
                fit = radius[k] / math.sqrt(norm2)
                scale[k] *= fit
                b[k] *= fit
            if averaging:
                mass[k] += scale[k]
                b_sum[k] += b[k]


@fast_loop
def sparse_steps(
    data, indices, indptr, offsets, prior, order, targets, weight,
    V, scale, square, b, U, mass, b_sum, step, average_from,
    lam, beta, margin, z_threshold, radius, intercept,
):  # fmt: skip
    """The same on CSR rows, at a cost of O(nonzeros of the bag) per step, whatever the number of columns.

    square[k] = ‖V[k]‖² is carried along.
    """
    n_problems, d = V.shape
    longest = _longest(offsets, order)
    z, c = np.empty((1, longest)), np.empty((1, longest))
    for i in order:
        step += 1
        first, last = offsets[i], offsets[i + 1]
        m = last - first
        averaging = step > average_from
        shrink = 1.0 - 1.0 / step
        for k in range(n_problems):
            for j in range(m):
                s = 0.0
                for t in range(indptr[first + j], indptr[first + j + 1]):
                    s += V[k, indices[t]] * data[t]
                z[0, j] = scale[k] * s + b[k]
                if len(prior) > 0:
                    z[0, j] += prior[first + j]
            total = _bag_coefficients(z, 0, m, targets[i, k], beta, margin, z_threshold, c)
            eta = weight[i, k] / (lam * step)
            factor = shrink * scale[k]
            if factor < SMALLEST_SPARSE_SCALE:
                for f in range(d):
                    U[k, f] -= mass[k] * V[k, f]
                    V[k, f] *= factor
                square[k] *= factor * factor
                mass[k] = 0.0
                factor = 1.0
            scale[k] = factor
            growth = 0.0
            for j in range(m):
                push = eta * c[0, j] / scale[k]
                if push != 0.0:
                    for t in range(indptr[first + j], indptr[first + j + 1]):
                        column = indices[t]
                        change = push * data[t]
                        growth += change * (2.0 * V[k, column] + change)
                        V[k, column] += change
                        U[k, column] += mass[k] * change
            square[k] += growth
            if intercept:
                b[k] = shrink * b[k] + eta * total
            norm2 = scale[k] * scale[k] * square[k] + b[k] * b[k]
            if norm2 > radius[k] * radius[k]:
                fit = radius[k] / math.sqrt(norm2)
                scale[k] *= fit
                b[k] *= fit
            if averaging:
                mass[k] += scale[k]
                b_sum[k] += b[k]
