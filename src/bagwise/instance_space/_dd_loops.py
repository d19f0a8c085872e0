"""The inner loops of diverse density, compiled: the objective, its gradient, L-BFGS and the EM loop around it.

Instances come as one tuple ``(dense, data, indices, indptr)`` of which either the first or the last three are filled,
so that dense and CSR data share everything but the two functions that touch rows. Imported on first use, because
importing numba takes longer than most fits.
"""

import math

import numpy as np

from bagwise._utils.compiled import fast_loop, loop

# Added to squared distances: an instance exactly at the concept point then has a finite log-odds.
NEAREST = 1e-6
MEMORY = 10


@fast_loop
def squared_distances(instances, rows, theta, out):
    """out[j] = Σ_k s_k² (x_jk - t_k)² + NEAREST, for the named rows; theta holds t, then s."""
    dense, data, indices, indptr = instances
    d = len(theta) // 2
    t, s = theta[:d], theta[d:]
    if len(indptr) > 0:
        at_zero = NEAREST
        for k in range(d):
            at_zero += s[k] * s[k] * t[k] * t[k]
        for j in range(len(rows)):
            total = at_zero
            for i in range(indptr[rows[j]], indptr[rows[j] + 1]):
                k = indices[i]
                x = data[i]
                total += s[k] * s[k] * x * (x - 2.0 * t[k])
            out[j] = max(total, NEAREST)
    else:
        for j in range(len(rows)):
            x = dense[rows[j]]
            total = NEAREST
            for k in range(d):
                difference = s[k] * (x[k] - t[k])
                total += difference * difference
            out[j] = total


@fast_loop
def _weighted_moments(instances, rows, c, first, second):
    """first = Σ_j c_j x_j and second = Σ_j c_j x_j²."""
    dense, data, indices, indptr = instances
    first[:] = 0.0
    second[:] = 0.0
    for j in range(len(rows)):
        push = c[j]
        if push == 0.0:
            continue
        if len(indptr) > 0:
            for i in range(indptr[rows[j]], indptr[rows[j] + 1]):
                moved = push * data[i]
                first[indices[i]] += moved
                second[indices[i]] += moved * data[i]
        else:
            x = dense[rows[j]]
            for k in range(len(first)):
                moved = push * x[k]
                first[k] += moved
                second[k] += moved * x[k]


@loop
def bag_losses(distance, offsets, positive, weight, c):
    """Weighted mean of the bags' losses; c becomes its derivative by each squared distance."""
    loss = 0.0
    total_weight = 0.0
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        log_none = 0.0  # log Π (1 - p)
        nearest = distance[first]
        for j in range(first, last):
            # log(1 - exp(-D)), by the form that keeps its digits
            if distance[j] > 0.693:
                log_none += math.log1p(-math.exp(-distance[j]))
            else:
                log_none += math.log(-math.expm1(-distance[j]))
            nearest = min(nearest, distance[j])
        if positive[i]:
            if nearest > 30.0:  # 1 - Π (1 - p) is Σ p to the last bit, and may underflow
                shifted = 0.0
                for j in range(first, last):
                    shifted += math.exp(nearest - distance[j])
                loss += weight[i] * (nearest - math.log(shifted))
                for j in range(first, last):
                    c[j] = weight[i] * math.exp(nearest - distance[j]) / shifted
            else:
                loss -= weight[i] * math.log(-math.expm1(log_none))
                odds_of_none = math.exp(log_none) / -math.expm1(log_none)
                for j in range(first, last):
                    c[j] = weight[i] * odds_of_none * _inverse_expm1(distance[j])
        else:
            loss -= weight[i] * log_none
            for j in range(first, last):
                c[j] = -weight[i] * _inverse_expm1(distance[j])
        total_weight += weight[i]
    for j in range(len(c)):
        c[j] /= total_weight
    return loss / total_weight


@loop
def _inverse_expm1(x):
    return 1.0 / math.expm1(x) if x < 700.0 else 0.0


@fast_loop
def value_and_gradient(instances, rows, offsets, positive, weight, theta, gradient):
    """Mean negative log diverse density of bags made of the named rows; its gradient is written into ``gradient``."""
    d = len(theta) // 2
    t, s = theta[:d], theta[d:]
    distance = np.empty(len(rows))
    c = np.empty(len(rows))
    squared_distances(instances, rows, theta, distance)
    value = bag_losses(distance, offsets, positive, weight, c)
    total = c.sum()
    first, second = gradient[:d], gradient[d:]
    _weighted_moments(instances, rows, c, first, second)
    for k in range(d):
        around = second[k] - 2.0 * t[k] * first[k] + total * t[k] * t[k]
        first[k] = -2.0 * s[k] * s[k] * (first[k] - total * t[k])
        second[k] = 2.0 * s[k] * around
    return value


@fast_loop
def _quasi_newton_direction(gradient, steps, changes, n_pairs, newest, direction):
    """Minus the gradient times L-BFGS's inverse Hessian: the two-loop recursion."""
    alpha = np.empty(MEMORY)
    direction[:] = -gradient
    for back in range(n_pairs):
        i = (newest - back) % MEMORY
        alpha[i] = np.dot(steps[i], direction) / np.dot(steps[i], changes[i])
        direction -= alpha[i] * changes[i]
    if n_pairs > 0:
        direction *= np.dot(steps[newest], changes[newest]) / np.dot(changes[newest], changes[newest])
    for back in range(n_pairs - 1, -1, -1):
        i = (newest - back) % MEMORY
        beta = np.dot(changes[i], direction) / np.dot(steps[i], changes[i])
        direction += (alpha[i] - beta) * steps[i]


@loop
def minimize(instances, rows, offsets, positive, weight, theta, max_iter, tol):
    """L-BFGS from theta, which is overwritten; returns the value reached and the number of steps.

    Stops when a step lowers the value by less than tol times its size, or after max_iter steps.
    """
    size = len(theta)
    steps, changes = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
    gradient, new_gradient = np.empty(size), np.empty(size)
    direction = np.empty(size)
    value = value_and_gradient(instances, rows, offsets, positive, weight, theta, gradient)
    n_pairs, newest, n_iter = 0, MEMORY - 1, 0
    while n_iter < max_iter:
        n_iter += 1
        _quasi_newton_direction(gradient, steps, changes, n_pairs, newest, direction)
        slope = np.dot(gradient, direction)
        if slope >= 0.0:
            break
        length = 1.0 if n_pairs > 0 else min(1.0, 1.0 / math.sqrt(np.dot(gradient, gradient)))
        new_value = value
        moved = False
        for _ in range(30):
            new_theta = theta + length * direction
            new_value = value_and_gradient(instances, rows, offsets, positive, weight, new_theta, new_gradient)
            if new_value <= value + 1e-4 * length * slope:
                moved = True
                break
            length *= 0.3
        if not moved:
            break
        newest = (newest + 1) % MEMORY
        steps[newest] = new_theta - theta
        changes[newest] = new_gradient - gradient
        theta[:] = new_theta
        gradient[:] = new_gradient
        if np.dot(steps[newest], changes[newest]) > 1e-12 * np.dot(changes[newest], changes[newest]):
            n_pairs = min(n_pairs + 1, MEMORY)
        else:  # the surface bends the wrong way here: forget what was learned about it
            n_pairs = 0
        gained = value - new_value
        value = new_value
        if gained <= tol * max(abs(value), 1e-8):
            break
    return value, n_iter


@loop
def expectation_maximization(instances, offsets, positive, weight, theta, max_iter, max_steps, tol):
    """EM-DD from theta, which is overwritten by the best model met; returns its value and the number of rounds.

    Each round names in every bag the instance nearest to the concept and minimises over those alone, with max_steps
    steps at most, until the same instances come back or the value no longer falls. Where neither happens, the number of
    rounds is max_iter.
    """
    n_bags = len(offsets) - 1
    everything = np.arange(offsets[n_bags])
    distance = np.empty(len(everything))
    chosen, last_chosen = np.full(n_bags, -1), np.full(n_bags, -1)
    singles = np.arange(n_bags + 1)
    best, n_iter = np.inf, 0
    current = theta.copy()
    while n_iter < max_iter:
        squared_distances(instances, everything, current, distance)
        same = True
        for i in range(n_bags):
            nearest = offsets[i]
            for j in range(offsets[i], offsets[i + 1]):
                if distance[j] < distance[nearest]:
                    nearest = j
            chosen[i] = nearest
            same = same and nearest == last_chosen[i]
        if same:
            break
        last_chosen[:] = chosen
        value, _ = minimize(instances, chosen, singles, positive, weight, current, max_steps, tol)
        if value >= best:
            break
        n_iter += 1
        best = value
        theta[:] = current
    return best, n_iter
