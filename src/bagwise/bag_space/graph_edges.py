"""The graph of a bag, and the sum of a Gaussian kernel over all pairs of edges of two graphs.

A bag of a thousand instances has hundreds of thousands of edges, so pairs of edges cannot be visited. But an edge is
only four numbers between 0 and 1, and on that range a Gaussian kernel of moderate width is, to many digits, an inner
product of a few features of each number. The features of an edge are the products of those of its four numbers, and
the sum over all pairs of edges is the inner product of the sums over the edges of each bag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.base import FloatArray

N_LANDMARKS = 24
SMALLEST_EIGENVALUE = 1e-8
EDGES_PER_BLOCK = 1 << 14


@dataclass(frozen=True)
class EdgeMap:
    """Features φ of a number in [0, 1] with φ(s)·φ(t) = exp(-γ (s - t)²) to about seven digits."""

    gamma: float
    landmarks: FloatArray
    mix: FloatArray

    @classmethod
    def of_width(cls, gamma: float) -> EdgeMap:
        """Nyström's map with Chebyshev's points, which are dense at the ends, where interpolation errs most."""
        landmarks = 0.5 - 0.5 * np.cos(np.pi * (np.arange(N_LANDMARKS) + 0.5) / N_LANDMARKS)
        values, vectors = np.linalg.eigh(np.exp(-gamma * (landmarks[:, None] - landmarks) ** 2))
        strong = values > SMALLEST_EIGENVALUE * values[-1]
        return cls(gamma, landmarks, vectors[:, strong] / np.sqrt(values[strong]))

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """(..., r) features of numbers of any shape."""
        return np.exp(-self.gamma * (numbers[..., None] - self.landmarks) ** 2) @ self.mix


def bag_neighbours(bag: Any, threshold: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Distances between the instances of a bag, and which are below ``threshold`` times their mean.

    Returns
    -------
    distances : (m, m) array
    near : (m, m) boolean array, false on the diagonal
    """
    if sparse.issparse(bag):
        products = (bag @ bag.T).toarray().astype(np.float64)
    else:
        centred = bag - bag.mean(axis=0, dtype=np.float64)
        products = centred @ centred.T
    norm = np.diag(products)
    squared = norm[:, None] + norm - (products + products.T)
    # Rounding makes duplicates differ a little: what is that small is zero.
    squared[squared <= 1e-13 * (norm[:, None] + norm)] = 0
    distances = np.sqrt(squared)
    np.fill_diagonal(distances, 0)
    m = len(distances)
    mean = distances.sum() / max(m * (m - 1), 1)
    # A hair below the mean, so that rounding does not decide where all distances are equal, as between texts that
    # have no words in common.
    near = distances < threshold * mean * (1 - 1e-6)
    np.fill_diagonal(near, False)
    return distances, near


def bag_edges(bag: Any, threshold: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """What describes the edges of one bag, each edge in both directions; None for a bag without edges.

    Returns
    -------
    degree_u, share_u, degree_v, share_v : (n_edges,) arrays
        Degree of each end over the number of edges of the graph, and the weight of the edge over that of all edges
        of that end. The weight of an edge is one over its length.
    """
    if bag.shape[0] < 2:
        return None
    distances, joined = bag_neighbours(bag, threshold)
    u, v = np.nonzero(joined)
    if len(u) == 0:
        return None
    length = distances[u, v]
    if not length.any():  # copies of one instance: all edges alike
        length = np.ones(len(u))
    else:
        length = np.maximum(length, length[length > 0].min())
    weight = np.zeros(distances.shape)
    weight[u, v] = 1 / length
    total = weight.sum(axis=1)
    degree = joined.sum(axis=1) / (len(u) / 2)
    return degree[u], weight[u, v] / total[u], degree[v], weight[u, v] / total[v]


def edge_sums(bags: Bags, threshold: float, features: EdgeMap) -> FloatArray:
    """(n_bags, r⁴) features of the edges of each bag, summed; zeros for a bag without edges.

    Those of an edge are the mean of the features of its two directions.
    """
    rank = features.mix.shape[1]
    out = np.zeros((len(bags), rank**4))
    for i, bag in enumerate(bags):
        edges = bag_edges(bag, threshold)
        if edges is None:
            continue
        total = np.zeros((rank**2, rank**2))
        for start in range(0, len(edges[0]), EDGES_PER_BLOCK):
            degree_u, share_u, degree_v, share_v = (features(part[start : start + EDGES_PER_BLOCK]) for part in edges)
            at_u = (degree_u[:, :, None] * share_u[:, None, :]).reshape(len(degree_u), -1)
            at_v = (degree_v[:, :, None] * share_v[:, None, :]).reshape(len(degree_v), -1)
            total += at_u.T @ at_v
        out[i] = total.ravel() / 2  # every edge was met in both directions
    return out
