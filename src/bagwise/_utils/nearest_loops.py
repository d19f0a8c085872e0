"""The instance of each bag that lies nearest to a row, compiled. Imported on first use."""

import numpy as np

from bagwise._utils.compiled import loop
from bagwise._utils.row_loops import row_distance


@loop
def nearest_of_bags(products, norm2, offsets, out):
    """Write the position of each bag's instance nearest to each row into out (n_rows, n_bags).

    ``products`` holds the inner products of rows with instances, ``norm2`` half the squared norms of the instances.
    """
    for row in range(len(products)):
        line = products[row]
        for bag in range(len(offsets) - 1):
            best = offsets[bag]
            lowest = norm2[best] - line[best]
            for j in range(best + 1, offsets[bag + 1]):
                value = norm2[j] - line[j]
                if value < lowest:
                    lowest = value
                    best = j
            out[row, bag] = best


@loop
def lowest_of_bags(products, row_norm2, norm2, offsets, out):
    """Write the squared distance of each row to each bag's nearest instance into out (n_rows, n_bags).

    As exact as the products allow; both norms are halves of squared norms.
    """
    zero = products[0, 0] - products[0, 0]
    for row in range(len(products)):
        line = products[row]
        for bag in range(len(offsets) - 1):
            first = offsets[bag]
            lowest = norm2[first] - line[first]
            for j in range(first + 1, offsets[bag + 1]):
                lowest = min(lowest, norm2[j] - line[j])
            out[row, bag] = 2 * max(lowest + row_norm2[row], zero)


@loop
def exact_distances(store, first_row, other, nearest, out):
    """Write the squared distance of row first_row + r to instance nearest[r, b] of the other store into out[r, b].

    Unlike distances from inner products, these are exact for rows that are very near each other.
    """
    for r in range(len(nearest)):
        for b in range(nearest.shape[1]):
            out[r, b] = row_distance(store, first_row + r, other, nearest[r, b])


@loop
def weight_before(distance, weight, reference, tolerance):
    """For each column of reference, how much weight lies nearer than it, and how much as near.

    Row r of ``distance`` (n, n) holds the distances of training bag r to all of them, and column q of ``reference``
    (n, m) those to query q. Distances that differ by no more than the tolerance are equal. Bag r itself is left out
    but for the copies beyond the first that its weight stands for.
    Returns two (n, m) arrays.
    """
    n, m = reference.shape
    nearer, equal = np.zeros((n, m)), np.zeros((n, m))
    for r in range(n):
        for a in range(n):
            mass = max(weight[a] - 1.0, 0.0) if a == r else weight[a]
            if mass == 0.0:
                continue
            d = distance[r, a]
            for q in range(m):
                if d < reference[r, q] - tolerance:
                    nearer[r, q] += mass
                elif d <= reference[r, q] + tolerance:
                    equal[r, q] += mass
    return nearer, equal
