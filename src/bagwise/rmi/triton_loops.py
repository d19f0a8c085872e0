# mypy: disable-error-code="no-untyped-def"
"""The step of RMI-SVM's stochastic solver as three kernels for NVIDIA cards: scores, coefficients, update.

All binary problems step at once, each on a bag of its own (or all on the same one). A step reads its bags twice and
hardly anything else, so its time is that of the card's memory. The norm of the new iterate is known only when the last
block of columns is written; hence the projection, and the average, are carried out at the beginning of the next step:
``V`` is the iterate before its projection. Run in Triton's interpreter, the same code is tested without a card.
"""

import triton
import triton.language as tl

# Where the numbers that change between steps lie in the vector ``clock``.
FIRST_STEP = tl.constexpr(0)  # steps of this pass made before the first step of the graph
N_STEPS = tl.constexpr(1)  # steps of this pass
STEPS_BEFORE = tl.constexpr(2)  # steps made before this pass
STARTED_AT = tl.constexpr(3)  # steps made before the solver was started: the starting point is no iterate of ours
AVERAGE_FROM = tl.constexpr(4)  # iterates after more steps than this are summed
FAR_BELOW = tl.constexpr(-30.0)


@triton.jit
def _log1p(e):
    """log(1 + e) for e >= 0, exact to twelve digits also where 1 + e rounds to 1."""
    return tl.where(e < 1e-4, e * (1.0 - e * (0.5 - e / 3.0)), tl.log(1.0 + e))


@triton.jit
def _one_minus_exp(s):
    """1 - exp(-s) for s >= 0, to twelve digits also where s is small."""
    series = s * (1.0 - s / 2.0 * (1.0 - s / 3.0 * (1.0 - s / 4.0)))
    return tl.where(s < 1e-3, series, 1.0 - tl.exp(-s))


@triton.jit(do_not_specialize=["ahead"])
def scores(
    X, offsets, order, V, raw, clock, ahead, width, longest, order_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """raw[k, j] = V[k] · x_j for a block of rows j of the bag of problem k."""
    k = tl.program_id(1)
    t = tl.load(clock + FIRST_STEP) + ahead
    if t < tl.load(clock + N_STEPS):
        bag = tl.load(order + k * order_stride + t)
        first = tl.load(offsets + bag)
        size = tl.load(offsets + bag + 1) - first
        if tl.program_id(0) * ROWS < size:
            rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
            columns = tl.arange(0, COLUMNS)
            inside = rows < size
            at = X + (first + rows)[:, None] * width + columns[None, :]
            weights = V + k * width + columns
            total = tl.zeros((ROWS, COLUMNS), tl.float64)
            for i in range(0, width, COLUMNS):
                known = columns < width - i
                x = tl.load(at + i, mask=inside[:, None] & known[None, :], other=0.0).to(tl.float64)
                total += x * tl.load(weights + i, mask=known, other=0.0)[None, :]
            tl.store(raw + k * longest + rows, tl.sum(total, axis=1), mask=inside)


@triton.jit(do_not_specialize=["ahead"])
def coefficients(
    raw, prior, offsets, order, targets, weight, radius, b, b_sum, squares, scale, c, clock, ahead,
    n_problems, n_blocks, longest, order_stride, loss,
    HAS_PRIOR: tl.constexpr, INTERCEPT: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Minus the derivative of the bag's loss by each score: the twin of objective.py; and the step of b."""
    k = tl.program_id(0)
    t = tl.load(clock + FIRST_STEP) + ahead
    if t < tl.load(clock + N_STEPS):
        bag = tl.load(order + k * order_stride + t)
        first = tl.load(offsets + bag)
        size = tl.load(offsets + bag + 1) - first
        step = tl.load(clock + STEPS_BEFORE) + t + 1
        # From memory, because numbers passed as arguments are cut to float32.
        lam, beta = tl.load(loss), tl.load(loss + 1)
        margin, z_threshold = tl.load(loss + 2), tl.load(loss + 3)
        share = 1.0 / size.to(tl.float64)

        parts = tl.arange(0, BLOCKS)
        square = tl.sum(tl.load(squares + k * n_blocks + parts, mask=parts < n_blocks, other=0.0))
        bias = tl.load(b + k)
        square += bias * bias
        bound = tl.load(radius + k)
        shrunk = tl.where(square > bound * bound, bound / tl.sqrt(tl.maximum(square, 1e-300)), 1.0)
        bias *= shrunk
        tl.store(scale + k, shrunk)
        if (step - 1 > tl.load(clock + AVERAGE_FROM)) & (step - 1 > tl.load(clock + STARTED_AT)):
            tl.store(b_sum + k, tl.load(b_sum + k) + bias)

        total = tl.zeros((ROWS,), tl.float64)
        top = tl.full((ROWS,), -float("inf"), tl.float64)
        for j in range(0, size, ROWS):
            rows = j + tl.arange(0, ROWS)
            inside = rows < size
            z = shrunk * tl.load(raw + k * longest + rows, mask=inside, other=0.0) + bias
            if HAS_PRIOR:
                z += tl.load(prior + first + rows, mask=inside, other=0.0)
            tl.store(raw + k * longest + rows, z, mask=inside)
            total += tl.where(inside, tl.maximum(z, 0.0) + _log1p(tl.exp(-tl.abs(z))), 0.0)
            top = tl.maximum(top, tl.where(inside, z, -float("inf")))
        total_softplus = tl.sum(total)
        highest = tl.max(top)
        shifted = tl.zeros((ROWS,), tl.float64)
        for j in range(0, size, ROWS):
            rows = j + tl.arange(0, ROWS)
            inside = rows < size
            z = tl.load(raw + k * longest + rows, mask=inside, other=0.0)
            shifted += tl.where(inside, tl.exp(tl.minimum(z - highest, 0.0)), 0.0)
        shifted_sum = tl.sum(shifted)
        ratio = tl.exp(-total_softplus) / tl.maximum(_one_minus_exp(total_softplus), 1e-300)

        positive = tl.load(targets + bag * n_problems + k) != 0
        eta = tl.load(weight + bag * n_problems + k) / (lam * step.to(tl.float64))
        pulled = tl.zeros((ROWS,), tl.float64)
        for j in range(0, size, ROWS):
            rows = j + tl.arange(0, ROWS)
            inside = rows < size
            z = tl.load(raw + k * longest + rows, mask=inside, other=0.0)
            e = tl.exp(-tl.abs(z))
            p = tl.where(z >= 0, 1.0 / (1.0 + e), e / (1.0 + e))
            far = tl.exp(tl.minimum(z - highest, 0.0)) / shifted_sum
            bag_term = tl.where(positive, tl.where(highest < FAR_BELOW, far, p * ratio), -p)
            sign = tl.where(z >= z_threshold, 1.0, -1.0)
            hinge = tl.where(sign * z < margin, sign * share, 0.0)
            pull = tl.where(inside, eta * (beta * bag_term + hinge), 0.0)
            tl.store(c + k * longest + rows, pull, mask=inside)
            pulled += pull
        if INTERCEPT:
            bias = (1.0 - 1.0 / step.to(tl.float64)) * bias + tl.sum(pulled)
        tl.store(b + k, bias)


@triton.jit(do_not_specialize=["ahead"])
def update(
    X, offsets, order, c, scale, V, V_sum, squares, clock, ahead,
    n_blocks, width, longest, order_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """V[k] = (1 - 1/step) V[k] + Σ_j c[k, j] x_j for a block of columns, after adding the iterate to the sum."""
    # The bags that were read last are still in the cache: begin with them.
    k = tl.num_programs(1) - 1 - tl.program_id(1)
    t = tl.load(clock + FIRST_STEP) + ahead
    if t < tl.load(clock + N_STEPS):
        bag = tl.load(order + k * order_stride + t)
        first = tl.load(offsets + bag)
        size = tl.load(offsets + bag + 1) - first
        step = tl.load(clock + STEPS_BEFORE) + t + 1
        columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        known = columns < width
        rows = tl.arange(0, ROWS)
        at = X + (first + rows)[:, None] * width + columns[None, :]
        total = tl.zeros((ROWS, COLUMNS), tl.float64)
        for j in range(0, size, ROWS):
            inside = rows < size - j
            x = tl.load(at + j * width, mask=inside[:, None] & known[None, :], other=0.0)
            pull = tl.load(c + k * longest + j + rows, mask=inside, other=0.0)
            total += x.to(tl.float64) * pull[:, None]
        here = k * width + columns
        v = tl.load(V + here, mask=known, other=0.0) * tl.load(scale + k)
        if (step - 1 > tl.load(clock + AVERAGE_FROM)) & (step - 1 > tl.load(clock + STARTED_AT)):
            tl.store(V_sum + here, tl.load(V_sum + here, mask=known, other=0.0) + v, mask=known)
        v = (1.0 - 1.0 / step.to(tl.float64)) * v + tl.sum(total, axis=0)
        tl.store(V + here, v, mask=known)
        tl.store(squares + k * n_blocks + tl.program_id(0), tl.sum(tl.where(known, v * v, 0.0)))
