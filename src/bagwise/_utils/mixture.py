"""Mixtures of Gaussians with diagonal covariance, and the projection that makes instances small enough for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

FloatArray = NDArray[np.float64]

ROWS_PER_BLOCK = 1 << 14
# Variances below this share of the data's own would let a component shrink onto a single instance.
SMALLEST_VARIANCE = 1e-3
# Beyond this width the covariance matrix is not formed: at most so many directions are sought instead.
WIDEST_COVARIANCE = 4096
MOST_DIRECTIONS = 256


@dataclass(frozen=True)
class Projection:
    """The leading principal directions: (x - mean) @ directions."""

    mean: FloatArray
    directions: FloatArray

    @classmethod
    def fit(cls, x: Any, energy: float, weight: FloatArray | None = None) -> Projection:
        """Keep as few directions as hold this share of the variance.

        Parameters
        ----------
        x : (n, d) array or CSR matrix
        energy : float in (0, 1]
        weight : (n,) array, optional
            A row of weight two counts as the row twice.
        """
        d = x.shape[1]
        share = np.full(x.shape[0], 1 / x.shape[0]) if weight is None else weight / weight.sum()
        mean = np.asarray(share @ x, dtype=np.float64).ravel()
        if d > WIDEST_COVARIANCE:
            squares = x.multiply(x).sum(axis=1) if sparse.issparse(x) else np.einsum("ij,ij->i", x, x)
            values, directions = _leading_directions(x, mean, np.sqrt(share))
            total = float(share @ np.asarray(squares).ravel()) - mean @ mean
        else:
            product = (sparse.diags_array(share) @ x).T @ x if sparse.issparse(x) else (share[:, None] * x).T @ x
            product = product.toarray() if sparse.issparse(product) else product
            values, directions = np.linalg.eigh(product.astype(np.float64) - np.outer(mean, mean))
            values, directions = values[::-1], directions[:, ::-1]
            total = values.sum()
        values = np.where(values > 1e-10 * max(values[0], 0), values, 0)
        enough = int(np.searchsorted(np.cumsum(values), energy * total * (1 - 1e-9))) + 1
        kept = max(min(enough, int(np.count_nonzero(values))), 1)
        directions = directions[:, :kept]
        # The sign of a direction is arbitrary; fix it, so that results do not depend on the linear algebra library.
        largest = directions[np.abs(directions).argmax(axis=0), np.arange(kept)]
        return cls(mean, directions * np.where(largest < 0, -1.0, 1.0))

    def __call__(self, x: Any) -> FloatArray:
        """(n, n_directions) projected rows."""
        return np.asarray(x @ self.directions, dtype=np.float64) - self.mean @ self.directions


def _leading_directions(x: Any, mean: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances and principal directions of wide data, most important first, without centring a copy.

    ``root`` (n,) holds the square roots of the rows' shares in the mean.
    """
    from scipy.sparse.linalg import LinearOperator, svds

    n, d = x.shape
    centred = LinearOperator(
        (n, d),
        matvec=lambda v: root * (x @ v.ravel() - mean @ v.ravel()),
        rmatvec=lambda u: x.T @ (root * u.ravel()) - mean * (root @ u.ravel()),
        matmat=lambda v: root[:, None] * (x @ v - mean @ v),
        rmatmat=lambda u: x.T @ (root[:, None] * u) - np.outer(mean, root @ u),
        dtype=np.float64,
    )
    k = min(MOST_DIRECTIONS, min(n, d) - 1)
    _, singular, rows = svds(centred, k=k, v0=np.ones(min(n, d)), return_singular_vectors="vh")
    order = np.argsort(-singular)
    return singular[order] ** 2, rows[order].T


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians with diagonal covariance.

    weights : (k,); means, variances : (k, d)
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def fit(
        cls,
        x: FloatArray,
        n_components: int,
        rng: np.random.RandomState,
        *,
        weight: FloatArray | None = None,
        tied: bool = False,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> Mixture:
        """Expectation-maximisation from the clusters of k-means, until the mean log-likelihood rises by less than tol.

        ``weight`` (n,) counts a row of weight two as the row twice, ``tied`` gives all components and columns one
        common variance. Components that lose all their instances are left out.
        """
        weight = np.ones(len(x)) if weight is None else weight
        mean = np.average(x, axis=0, weights=weight)
        floor = SMALLEST_VARIANCE * np.average((x - mean) ** 2, axis=0, weights=weight) + 1e-12
        centres = cluster_centres(x, n_components, rng, weight)
        mixture = cls._maximise(
            x, weight, floor, tied, lambda block, _: _one_hot(nearest(block, centres), len(centres))
        )
        before = -np.inf
        for _ in range(max_iter):
            seen: list[float] = []
            mixture = cls._maximise(
                x, weight, floor, tied, lambda block, w, now=mixture, seen=seen: now._expect(block, w, seen)
            )
            likelihood = sum(seen) / weight.sum()
            if likelihood - before < tol:
                break
            before = likelihood
        return mixture

    @classmethod
    def _maximise(cls, x: FloatArray, weight: FloatArray, floor: FloatArray, tied: bool, posteriors_of: Any) -> Mixture:
        """The mixture of greatest likelihood for given posteriors, which are asked for a block of rows at a time."""
        mass: Any = 0.0
        first: Any = 0.0
        second: Any = 0.0
        for start in range(0, len(x), ROWS_PER_BLOCK):
            block, w = x[start : start + ROWS_PER_BLOCK], weight[start : start + ROWS_PER_BLOCK]
            posteriors = w[:, None] * posteriors_of(block, w)
            mass = mass + posteriors.sum(axis=0)
            first = first + posteriors.T @ block
            second = second + posteriors.T @ block**2
        alive = mass > 1e-8
        mass, first, second = mass[alive], first[alive], second[alive]
        means = first / mass[:, None]
        variances = np.maximum(second / mass[:, None] - means**2, floor)
        if tied:
            variances = np.full_like(variances, mass @ variances.mean(axis=1) / mass.sum())
        return cls(mass / mass.sum(), means, variances)

    def _expect(self, block: FloatArray, weight: FloatArray, seen: list[float]) -> FloatArray:
        joint = self.log_joint(block)
        evidence = logsumexp(joint, axis=1)
        seen.append(float(weight @ evidence))
        return np.exp(joint - evidence[:, None])

    def log_joint(self, x: FloatArray) -> FloatArray:
        """(n, k) log of the weight times the density of each component."""
        precision = 1 / self.variances
        square = x**2 @ precision.T - 2 * x @ (self.means * precision).T + (self.means**2 * precision).sum(axis=1)
        constant = np.log(self.weights) - 0.5 * np.log(2 * np.pi * self.variances).sum(axis=1)
        return constant - 0.5 * square

    def posteriors(self, x: FloatArray) -> FloatArray:
        """(n, k) probability of each component given the row."""
        joint = self.log_joint(x)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def cluster_centres(
    x: FloatArray, n_clusters: int, rng: np.random.RandomState, weight: FloatArray | None = None
) -> FloatArray:
    """(k, d) centres of k-means; fewer where there are fewer different rows."""
    from sklearn.cluster import KMeans

    # The starts are drawn by row number: in an order of their own, rows give the same centres in whatever order
    # they come. Nothing hangs on the weights of the columns, as long as different rows get different sums.
    key = x @ np.cos(np.arange(x.shape[1]))
    order = np.argsort(key, kind="stable")
    x, weight = x[order], None if weight is None else weight[order]
    distinct = 1 + np.count_nonzero(np.any(x[1:] != x[:-1], axis=1))
    k = min(n_clusters, distinct)
    seed = rng.randint(np.iinfo(np.int32).max)
    if k == 1:
        return np.average(x, axis=0, weights=weight)[None]
    return KMeans(k, n_init=1, random_state=seed).fit(x, sample_weight=weight).cluster_centers_


def nearest(x: FloatArray, centres: FloatArray) -> np.ndarray:
    """(n,) index of the nearest centre of each row."""
    return ((centres**2).sum(axis=1) - 2 * x @ centres.T).argmin(axis=1)


def _one_hot(codes: np.ndarray, n: int) -> FloatArray:
    return (codes[:, None] == np.arange(n)).astype(np.float64)
