"""How far the nearest neighbours of instances reach, compiled. Imported on first use."""

import numpy as np

from bagwise._utils.compiled import loop


@loop
def reach_of_rows(squared, own, mass, bag, n_neighbors, tolerance, out):
    """Write into out[r] the square within which row r has its n_neighbors nearest; infinity where it has fewer.

    ``squared`` (n_rows, n) holds squared distances to all instances, ``mass`` how many instances each of these stands
    for, ``bag`` to which bag it belongs. Of the row's own bag ``own[r]`` only copies beyond the first count. Squares
    that differ by no more than the tolerance are one step.
    """
    for r in range(len(squared)):
        line = squared[r]
        reach = -np.inf
        found = 0.0
        while found < n_neighbors:
            nearest = np.inf
            for j in range(len(line)):
                if line[j] > reach and line[j] < nearest and (bag[j] != own[r] or mass[j] > 1.0):
                    nearest = line[j]
            if nearest == np.inf:
                reach = np.inf
                break
            for j in range(len(line)):
                if line[j] > reach and line[j] <= nearest + tolerance:
                    found += mass[j] if bag[j] != own[r] else max(mass[j] - 1.0, 0.0)
            reach = nearest + tolerance
        out[r] = reach
