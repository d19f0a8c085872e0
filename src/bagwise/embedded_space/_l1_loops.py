"""Coordinate descent for the L1-regularised support vector machine with squared hinge loss, compiled.

Imported on first use.
"""

from bagwise._utils.compiled import fast_loop, loop


@fast_loop
def _slope_and_curvature(feature, y, cost, margin):
    """First and second derivative of Σ cost max(0, margin)² by the feature's weight; margin is 1 - y z."""
    slope, curvature = 0.0, 0.0
    for i in range(len(y)):
        if margin[i] > 0.0:
            slope -= 2.0 * cost[i] * y[i] * feature[i] * margin[i]
            curvature += 2.0 * cost[i] * feature[i] * feature[i]
    return slope, curvature


@fast_loop
def _move(feature, y, cost, margin, step):
    """Change the margins by a step of the feature's weight, and return how much the loss grew."""
    growth = 0.0
    for i in range(len(y)):
        before = max(margin[i], 0.0)
        margin[i] -= step * y[i] * feature[i]
        after = max(margin[i], 0.0)
        growth += cost[i] * (after - before) * (after + before)
    return growth


@loop
def descend(features, chosen, penalty, y, cost, weights, margin, max_passes, tol):
    """Minimise penalty · |w|₁ + Σ cost max(0, margin)² over the weights of the chosen features, one at a time.

    Row j of ``features`` holds feature j of all bags; ``penalty`` has one entry per feature, zero for the intercept's.
    Changes weights and margin. Nine passes of ten visit only features whose weight is not zero. Stops when the largest
    violation of the optimality conditions is at most tol.
    """
    for number in range(max_passes):
        worst = 0.0
        everyone = number % 10 == 0
        for j in chosen:
            if not everyone and weights[j] == 0.0:
                continue
            feature, w, p = features[j], weights[j], penalty[j]
            slope, curvature = _slope_and_curvature(feature, y, cost, margin)
            if w == 0.0:
                violation = max(abs(slope) - p, 0.0)
            elif w > 0.0:
                violation = abs(slope + p)
            else:
                violation = abs(slope - p)
            worst = max(worst, violation)
            if violation == 0.0:
                continue
            # Newton's step, with the curvature of the bags inside the margin now; others may enter it on the way.
            curvature = max(curvature, 1e-12)
            while True:
                wish = w - slope / curvature
                target = max(abs(wish) - p / curvature, 0.0) * (1.0 if wish > 0.0 else -1.0)
                step = target - w
                promised = slope * step + p * (abs(target) - abs(w))
                growth = _move(feature, y, cost, margin, step) + p * (abs(target) - abs(w))
                if growth <= 0.01 * promised + 1e-15 or abs(step) < 1e-14:
                    weights[j] = target
                    break
                _move(feature, y, cost, margin, -step)
                curvature *= 2.0
        if everyone and worst <= tol:
            break
