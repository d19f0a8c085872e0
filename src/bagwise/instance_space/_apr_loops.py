"""Growing a tight axis-parallel rectangle around one instance of every positive bag, compiled.

Imported on first use.
"""

import numpy as np

from bagwise._utils.compiled import loop

UNSET = -1


@loop
def _growth(x, features, low, high, limit):
    """How much wider the rectangle gets, summed over the features, when it takes in x; the limit or more if beyond."""
    total = 0.0
    for f in features:
        if x[f] < low[f]:
            total += low[f] - x[f]
        elif x[f] > high[f]:
            total += x[f] - high[f]
        if total >= limit:
            break
    return total


@loop
def _measure(X, chosen, features, low, low_of, next_low, high, high_of, next_high):
    """Bounds of the chosen instances, the bags that they come from, and what they would be without those."""
    for f in features:
        low[f] = next_low[f] = np.inf
        high[f] = next_high[f] = -np.inf
    for bag in range(len(chosen)):
        if chosen[bag] != UNSET:
            x = X[chosen[bag]]
            for f in features:
                if x[f] < low[f]:
                    next_low[f], low[f], low_of[f] = low[f], x[f], bag
                elif x[f] < next_low[f]:
                    next_low[f] = x[f]
                if x[f] > high[f]:
                    next_high[f], high[f], high_of[f] = high[f], x[f], bag
                elif x[f] > next_high[f]:
                    next_high[f] = x[f]


@loop
def _touches(x, features, low, high):
    """Whether x lies on a border of the rectangle, so that without it the rectangle may be smaller."""
    inside = True
    for f in features:
        inside &= low[f] < x[f] < high[f]
    return not inside


@loop
def grow(X, offsets, features, seed, seed_bag, max_sweeps):
    """Choose one instance of each bag, greedily and with second thoughts, so that their rectangle is small.

    Starts from instance ``seed``; then takes the instance, of any bag not yet covered, that widens the rectangle
    least; and after each, asks every bag covered so far again which of its instances suits the others best.

    Returns
    -------
    chosen : (n_bags,) array of rows
    """
    n_bags, d = len(offsets) - 1, X.shape[1]
    chosen = np.full(n_bags, UNSET)
    chosen[seed_bag] = seed
    sequence = np.empty(n_bags, dtype=np.int64)  # of the bags as they were covered: that does not depend on their order
    sequence[0] = seed_bag
    low, high, next_low, next_high = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    low_of, high_of = np.full(d, UNSET), np.full(d, UNSET)
    rest_low, rest_high = np.empty(d), np.empty(d)
    _measure(X, chosen, features, low, low_of, next_low, high, high_of, next_high)
    for covered in range(1, n_bags):
        best, best_bag, least = UNSET, UNSET, np.inf
        for bag in range(n_bags):
            if chosen[bag] == UNSET:
                for row in range(offsets[bag], offsets[bag + 1]):
                    growth = _growth(X[row], features, low, high, least)
                    if growth < least:
                        best, best_bag, least = row, bag, growth
        chosen[best_bag] = best
        sequence[covered] = best_bag
        _measure(X, chosen, features, low, low_of, next_low, high, high_of, next_high)
        if covered == 1:
            continue  # with two bags, each would follow the other
        for _ in range(max_sweeps):
            changed = False
            for bag in sequence[: covered + 1]:
                if not _touches(X[chosen[bag]], features, low, high):
                    continue  # a rectangle is no smaller without an instance from its inside
                for f in features:
                    rest_low[f] = next_low[f] if low_of[f] == bag else low[f]
                    rest_high[f] = next_high[f] if high_of[f] == bag else high[f]
                best = chosen[bag]
                least = _growth(X[best], features, rest_low, rest_high, np.inf) * (1.0 - 1e-12)
                for row in range(offsets[bag], offsets[bag + 1]):
                    growth = _growth(X[row], features, rest_low, rest_high, least)
                    if growth < least:
                        best, least = row, growth
                if best != chosen[bag]:
                    chosen[bag] = best
                    changed = True
                    _measure(X, chosen, features, low, low_of, next_low, high, high_of, next_high)
            if not changed:
                break
    return chosen


@loop
def best_windows(X, bag, n_bags, order, negatives, negative_weight, negative_order):
    """For each column on its own, the interval with an instance of every bag that lets in fewest negative instances.

    An interval that could be narrower is never better, so only those are tried that begin and end at an instance
    without which some bag would be left out. ``order`` and ``negative_order`` (n, d) sort the columns.

    Returns
    -------
    low, high : (d,) arrays
    let_in : (d,) weight of the negative instances inside
    """
    n, d = X.shape
    low, high, let_in = np.empty(d), np.empty(d), np.full(d, np.inf)
    count = np.empty(n_bags, dtype=np.int64)
    for f in range(d):
        count[:] = 0
        missing, first = n_bags, 0
        enters, leaves = 0, 0  # negatives below the window's end, and below its beginning
        weight_below_end, weight_below_begin = 0.0, 0.0
        for last in range(n):
            row = order[last, f]
            if count[bag[row]] == 0:
                missing -= 1
            count[bag[row]] += 1
            if missing > 0:
                continue
            while count[bag[order[first, f]]] > 1:
                count[bag[order[first, f]]] -= 1
                first += 1
            a, b = X[order[first, f], f], X[row, f]
            while enters < len(negatives) and negatives[negative_order[enters, f], f] <= b:
                weight_below_end += negative_weight[negative_order[enters, f]]
                enters += 1
            while leaves < len(negatives) and negatives[negative_order[leaves, f], f] < a:
                weight_below_begin += negative_weight[negative_order[leaves, f]]
                leaves += 1
            inside = weight_below_end - weight_below_begin
            better = inside < let_in[f] - 1e-9
            if better or (inside <= let_in[f] + 1e-9 and b - a < high[f] - low[f]):
                low[f], high[f], let_in[f] = a, b, inside
    return low, high, let_in
