"""Dual coordinate descent for linear support vector machines with shared slacks, compiled. Imported on first use."""

import numpy as np

from bagwise._utils.compiled import fast_loop, loop
from bagwise._utils.row_loops import fetch, row_add, row_dot, row_fetch, row_pair

# Rows lie anywhere in memory: each is asked for while so many before it are worked on.
AHEAD = 8


@loop
def _shuffle(order, state):
    """Fisher and Yates, with a 64-bit linear congruential generator whose state is carried on."""
    for last in range(len(order) - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = np.int64((state >> np.uint64(33)) % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]
    return state


@loop
def _hold(k, g, offsets, held, place_of, n_held):
    """Put item k on the list of its group, unless it is there: held[offsets[g]:offsets[g] + n_held[g]]."""
    if place_of[k] < 0:
        place_of[k] = offsets[g] + n_held[g]
        held[place_of[k]] = k
        n_held[g] += 1


@loop
def _least_deserving(k, g, offsets, alpha, slope, held, place_of, n_held):
    """The item of the group other than k with the largest slope whose dual variable is above zero, or -1.

    The first of equals; items whose variable has become zero leave the list.
    """
    partner, place = -1, offsets[g]
    while place < offsets[g] + n_held[g]:
        j = held[place]
        if alpha[j] <= 0.0:
            n_held[g] -= 1
            last = held[offsets[g] + n_held[g]]
            held[place], place_of[last] = last, place
            place_of[j] = -1
            continue
        better = partner < 0 or slope[j] > slope[partner] or (slope[j] == slope[partner] and j < partner)
        if j != k and better:
            partner = j
        place += 1
    return partner


@fast_loop
def passes(store, rows, group, offsets, sign, cap, norm2, alpha, used, slope, active, w, bias, prior, n_passes, state):
    """Walk n_passes times over the active items in random order and move each one's dual variable to its best value.

    Item k is the row rows[k] and belongs to group[k]; the items of group g are offsets[g]:offsets[g + 1], have the
    label sign[g], and their dual variables alpha, none negative, may sum to cap[g] at most (used[g] is the sum).
    norm2 holds ‖x‖² + 1 of each item (1 for the intercept's constant feature), slope its derivative y z - 1 when last
    seen, and prior what is added to the score of each row. w and bias, an array of one, are changed along.
    """
    # Of each group of several items, those whose dual variable is above zero: few of many.
    several = len(rows) if len(rows) > len(sign) else 0
    held, place_of, n_held = (
        np.empty(several, np.int64),
        np.full(several, -1),
        np.zeros(len(sign) if several else 0, np.int64),
    )
    if several:
        for k in active:
            if alpha[k] > 0.0:
                _hold(k, group[k], offsets, held, place_of, n_held)
    for _ in range(n_passes):
        state = _shuffle(active, state)
        last = len(active) - 1
        for place in range(len(active)):
            later, soon = active[min(place + 2 * AHEAD, last)], active[min(place + AHEAD, last)]
            fetch(rows, later)
            fetch(group, later)
            fetch(alpha, later)
            fetch(norm2, later)
            fetch(slope, later)
            row_fetch(store, rows[soon])
            fetch(used, group[soon])
            fetch(cap, group[soon])
            fetch(sign, group[soon])
            fetch(offsets, group[soon])
            k = active[place]
            g, row = group[k], rows[k]
            y = sign[g]
            slope_k = y * (row_dot(store, row, w) + bias[0] + prior[row]) - 1.0
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
            if offsets[g + 1] - offsets[g] == 1:
                continue
            if alpha[k] > 0.0:
                _hold(k, g, offsets, held, place_of, n_held)
            if not full or slope_k >= 0.0:
                continue
            # The group has used up its cap: take from the item that deserves its share least, and give it to k.
            partner = _least_deserving(k, g, offsets, alpha, slope, held, place_of, n_held)
            if partner < 0:
                continue
            other = rows[partner]
            slope_j = y * (row_dot(store, other, w) + bias[0] + prior[other]) - 1.0
            product = row_pair(store, row, store, other) + 1.0
            curvature = max(norm2[k] + norm2[partner] - 2.0 * product, 1e-12 * norm2[k])
            move = max(min((slope_j - slope_k) / curvature, alpha[partner]), -alpha[k])
            if move != 0.0:
                alpha[k] += move
                alpha[partner] -= move
                _hold(k, g, offsets, held, place_of, n_held)
                row_add(store, row, move * y, w)
                row_add(store, other, -move * y, w)
            slope[k] = slope_k + move * (norm2[k] - product)
            slope[partner] = slope_j + move * (product - norm2[partner])
    return state


@loop
def check(store, rows, offsets, sign, cap, far, alpha, w, bias, prior, z, slope, active):
    """Scores of all items, and what follows from them, in one pass over their rows.

    Fills z with the score of each item, slope with its derivative y z - 1, and the first entries of active with the
    items that should take part in the next passes: not those further than far beyond the margin whose dual
    variable is at the bound that they would cross.

    Returns
    -------
    loss : float
        Σ cap[g] · (largest loss of an item of g)
    linear : float
        Σ alpha · (1 - y · prior), the part of the dual objective that is linear.
    n_active : int
    """
    loss, linear, n_active = 0.0, 0.0, 0
    for g in range(len(sign)):
        y, worst = sign[g], 0.0
        alone = offsets[g + 1] - offsets[g] == 1
        for k in range(offsets[g], offsets[g + 1]):
            row = rows[k]
            z[k] = row_dot(store, row, w) + bias[0] + prior[row]
            slope[k] = y * z[k] - 1.0
            worst = max(worst, -slope[k])
            linear += alpha[k] * (1.0 - y * prior[row])
            rests = alpha[k] <= 0.0 and slope[k] > far
            rests |= alone and alpha[k] >= cap[g] and slope[k] < -far
            if not rests:
                active[n_active] = k
                n_active += 1
        loss += cap[g] * worst
    return loss, linear, n_active


@loop
def scores(store, rows, w, bias, prior, z):
    """z = X w + intercept + prior, for some rows."""
    for k in range(len(rows)):
        z[k] = row_dot(store, rows[k], w) + bias[0] + prior[rows[k]]


@loop
def add_rows(store, rows, steps, w):
    """Add Σ_k steps[k] · x_rows[k] to w."""
    for k in range(len(rows)):
        row_add(store, rows[k], steps[k], w)
