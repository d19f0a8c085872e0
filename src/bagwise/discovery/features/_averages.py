"""Compiled part of `regions`: averages of a map over rectangles, cell by cell."""

from bagwise._utils.compiled import fused_loop


@fused_loop
def rectangle_averages(grid, rows, columns, averages):
    """Average a map over rectangles, each given by how much of every row and every column lies in it.

    Parameters
    ----------
    grid : float32 array (rows, columns, k), C-contiguous
    rows : float array (n, rows), columns : float array (n, columns)
        Shares, none negative; those above zero lie side by side.
    averages : float32 array (n, k)
        Filled with the sum of cells weighted by the product of their row's and their column's share.
    """
    width = grid.shape[2]
    for i in range(len(rows)):
        for k in range(width):
            averages[i, k] = 0
        for r in range(grid.shape[0]):
            if rows[i, r] > 0:
                for c in range(grid.shape[1]):
                    if columns[i, c] > 0:
                        weight = grid.dtype.type(rows[i, r] * columns[i, c])
                        for k in range(width):
                            averages[i, k] += weight * grid[r, c, k]
