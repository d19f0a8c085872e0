"""Compiled part of `masks`: a sparse linear system on a grid, solved by successive over-relaxation."""

import numpy as np

from bagwise._utils.compiled import fused_loop, part_of_loop

LEFT, RIGHT, UP, DOWN, OWN, SHARE = range(6)


@fused_loop
def relax(x, values, across, down, restart, overshoot, sweeps):
    """Solve for ``x`` in place; see `walk`. ``across`` and ``down`` are the conductances between neighbours.

    A sweep does the black squares of a chess board, then the white ones: those of one colour do not wait for each
    other. Squares of one colour lie side by side in memory, so that several are done by one instruction, and in a
    frame of nothing, so that none asks whether it has a neighbour.
    """
    rows, columns = x.shape
    half = (columns + 1) // 2
    squares = np.zeros((2, rows + 2, half + 2))
    weights = np.zeros((2, rows, 6, half))
    for r in range(rows):
        for c in range(columns):
            colour, k = (r + c) % 2, c // 2
            squares[colour, r + 1, k + 1] = x[r, c]
            weight = weights[colour, r]
            if c > 0:
                weight[LEFT, k] = across[r, c - 1]
            if c + 1 < columns:
                weight[RIGHT, k] = across[r, c]
            if r > 0:
                weight[UP, k] = down[r - 1, c]
            if r + 1 < rows:
                weight[DOWN, k] = down[r, c]
            weight[OWN, k] = restart * values[r, c]
            weight[SHARE, k] = overshoot / (
                restart + weight[LEFT, k] + weight[RIGHT, k] + weight[UP, k] + weight[DOWN, k]
            )
    for _ in range(sweeps):
        _half_sweep(squares[0], squares[1], weights[0], 0, overshoot)
        _half_sweep(squares[1], squares[0], weights[1], 1, overshoot)
    for r in range(rows):
        for c in range(columns):
            x[r, c] = squares[(r + c) % 2, r + 1, c // 2 + 1]


@part_of_loop
def _half_sweep(squares, others, weights, colour, overshoot):
    """The squares of one colour, (rows + 2, half + 2), after those of the other."""
    for r in range(len(weights)):
        # Where a row begins with the other colour, the neighbours to the left and right are one place further on.
        shift = (r + colour) % 2
        own, above, below = squares[r + 1], others[r], others[r + 2]
        beside, weight = others[r + 1], weights[r]
        for k in range(weights.shape[2]):
            total = weight[OWN, k]
            total += weight[LEFT, k] * beside[k + shift] + weight[RIGHT, k] * beside[k + shift + 1]
            total += weight[UP, k] * above[k + 1] + weight[DOWN, k] * below[k + 1]
            own[k + 1] = (1 - overshoot) * own[k + 1] + weight[SHARE, k] * total
