"""Compiled part of `masks`: a sparse linear system on a grid, solved by successive over-relaxation."""

import numpy as np

from bagwise._utils.compiled import fused_loop


@fused_loop
def relax(x, values, across, down, restart, overshoot, sweeps):
    """Solve for ``x`` in place; see `walk`. ``across`` and ``down`` are the conductances between neighbours.

    A sweep does the black squares of a chess board, then the white ones: those of one colour do not wait for each
    other. The board lies in a frame of nothing, so that no square asks whether it has a neighbour.
    """
    rows, columns = x.shape
    framed = np.zeros((rows + 2, columns + 2))
    left, right = np.zeros((rows, columns)), np.zeros((rows, columns))
    up, below = np.zeros((rows, columns)), np.zeros((rows, columns))
    left[:, 1:], right[:, :-1], up[1:], below[:-1] = across, across, down, down
    share = np.empty((rows, columns))
    for r in range(rows):
        for c in range(columns):
            framed[r + 1, c + 1] = x[r, c]
            share[r, c] = overshoot / (restart + left[r, c] + right[r, c] + up[r, c] + below[r, c])
    for sweep in range(2 * sweeps):
        for r in range(rows):
            for c in range((r + sweep) % 2, columns, 2):
                total = restart * values[r, c]
                total += left[r, c] * framed[r + 1, c] + right[r, c] * framed[r + 1, c + 2]
                total += up[r, c] * framed[r, c + 1] + below[r, c] * framed[r + 2, c + 1]
                framed[r + 1, c + 1] = (1 - overshoot) * framed[r + 1, c + 1] + share[r, c] * total
    x[:] = framed[1:-1, 1:-1]
