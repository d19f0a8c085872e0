"""Compiled part of `masks`: a sparse linear system on a grid, solved by successive over-relaxation."""

from bagwise._utils.compiled import loop


@loop
def relax(x, values, across, down, restart, overshoot, sweeps):
    """Solve for ``x`` in place; see `walk`. ``across`` and ``down`` are the conductances between neighbours."""
    rows, columns = x.shape
    for _ in range(sweeps):
        for r in range(rows):
            for c in range(columns):
                total, weight = restart * values[r, c], restart
                if c > 0:
                    total += across[r, c - 1] * x[r, c - 1]
                    weight += across[r, c - 1]
                if c < columns - 1:
                    total += across[r, c] * x[r, c + 1]
                    weight += across[r, c]
                if r > 0:
                    total += down[r - 1, c] * x[r - 1, c]
                    weight += down[r - 1, c]
                if r < rows - 1:
                    total += down[r, c] * x[r + 1, c]
                    weight += down[r, c]
                x[r, c] += overshoot * (total / weight - x[r, c])
