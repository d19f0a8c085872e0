"""What RMI-SVM's solvers work on: bags ready to learn from, targets, weights, and where a solver stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.mapped import bag_blocks, bag_ranges
from bagwise.bags import Bags
from bagwise.pooling import size_prior
from bagwise.rmi.objective import Loss, instance_coefficients, value_and_gradient

FloatArray = NDArray[np.float64]

# Arrays with a few numbers per instance are made for this many instances at a time.
ROWS_AT_ONCE = 1 << 20
# Instances are scaled and mapped so many values at a time, so that what lies between stays in the cache.
VALUES_AT_ONCE = 1 << 17


@dataclass
class Problem:
    """Bags with one column of targets and weights for each binary problem."""

    bags: Bags  # dense or CSR, in memory or in a file
    targets: NDArray[np.bool_]  # (n_bags, n_problems)
    weight: FloatArray  # (n_bags, n_problems), each column with mean 1
    loss: Loss
    intercept: bool
    # How to make what is learned from out of the bags, a block at a time; None when they are that already.
    mapping: Callable[[Bags], Bags] | None = None

    def blocks(self) -> Iterator[tuple[slice, Bags]]:
        """Ranges of bags, and those bags ready to learn from: one range, unless they lie in a large file."""
        for part, bags in bag_blocks(self.bags):
            yield part, bags if self.mapping is None else self.mapping(bags)

    def objective(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """(n_problems,) value of the objective."""
        joined = np.column_stack([coef, intercept])
        return np.array([self.value_and_gradient(k, w)[0] for k, w in enumerate(joined)])

    def value_and_gradient(self, k: int, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective of binary problem k and its gradient at w, whose last entry is the intercept."""
        free = w if self.intercept else w[:-1]
        value, gradient = 0.5 * self.loss.lam * float(free @ free), self.loss.lam * free
        unregularised = replace(self.loss, lam=0.0)
        for part, bags in self.blocks():
            losses, slope = value_and_gradient(
                free,
                bags.instances,
                bags.offsets,
                self.targets[part, k],
                unregularised,
                prior=bags.prior,
                bag_weight=self.weight[part, k] * (len(bags) / len(self.bags)),
                intercept=self.intercept,
            )
            value += losses
            gradient += slope
        return value, gradient if self.intercept else np.append(gradient, 0.0)

    def radius(self, kind: str | None) -> FloatArray:
        """(n_problems,) bound on the norm of w: Pegasos' own, one that surely holds the minimiser, or none."""
        if kind is None:
            return np.full(self.targets.shape[1], np.inf)
        if kind == "pegasos":
            return np.full(self.targets.shape[1], 1 / np.sqrt(self.loss.lam))
        return np.sqrt(2 * self.at_zero() / self.loss.lam)

    def at_zero(self) -> FloatArray:
        """(n_problems,) the objective at w = 0."""
        at_zero = np.zeros(self.targets.shape[1])
        for part in bag_ranges(self.bags.offsets, ROWS_AT_ONCE):
            offsets = self.bags.offsets[part.start : part.stop + 1]
            rows = slice(offsets[0], offsets[-1])
            z = np.zeros(rows.stop - rows.start) if self.bags.prior is None else self.bags.prior[rows]
            for k in range(len(at_zero)):
                losses, _ = instance_coefficients(z, offsets - offsets[0], self.targets[part, k], self.loss)
                at_zero[k] += np.sum(self.weight[part, k] * losses)
        return at_zero / len(self.bags)


@dataclass
class Iterate:
    """Where the stochastic solver stands."""

    coef: FloatArray  # (n_problems, d)
    intercept: FloatArray  # (n_problems,)
    steps: int = 0

    @classmethod
    def zero(cls, n_problems: int, n_features: int) -> Iterate:
        return cls(np.zeros((n_problems, n_features)), np.zeros(n_problems))


def orders(n_bags: int, steps: int, sampling: str, rng: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
    """The bags to visit, one pass at a time: a fresh permutation each pass, or independent draws."""
    while steps > 0:
        order = rng.permutation(n_bags) if sampling == "shuffle" else rng.randint(n_bags, size=n_bags)
        yield order[:steps].astype(np.int64)
        steps -= n_bags


def in_single_precision(bags: Bags, mapping: Callable[[Bags], Bags], n_features: int) -> Bags:
    """The mapped bags with float32 instances: half the memory to read, and steps are as fast as memory is read.

    Dense instances are mapped a few at a time, so that no temporary of their size is made; those that are in single
    precision already, and that the mapping leaves where they are, are not copied.
    """
    if sparse.issparse(bags.instances):
        mapped = mapping(bags)
        return mapped.with_instances(mapped.instances.astype(np.float32))
    if bags.dtype == np.float32 and np.may_share_memory(mapping(bags[:1]).instances, bags.instances):
        return bags
    instances = np.empty((bags.n_instances, n_features), dtype=np.float32)
    for part in bag_ranges(bags.offsets, max(1, VALUES_AT_ONCE // bags.n_features)):
        rows = slice(bags.offsets[part.start], bags.offsets[part.stop])
        instances[rows] = mapping(bags[part]).instances
    return bags.with_instances(instances)


def lengths_differ(instances: sparse.csr_array) -> bool:
    """Whether the rows are not all of one length already, in which case scaling them to unit length changes nothing."""
    squares = np.add.reduceat(np.append(instances.data.astype(np.float64) ** 2, 0.0), instances.indptr[:-1])
    squares = squares[np.diff(instances.indptr) > 0]
    return bool(len(squares)) and bool(np.ptp(squares) > 1e-5 * squares.max())


def with_size_prior(bags: Bags) -> Bags:
    """The bags with -log m_i added to the prior of each instance: see `bagwise.pooling.size_prior`."""
    prior = np.repeat(size_prior(bags.offsets), bags.sizes)
    prior = prior if bags.prior is None else prior + bags.prior
    return bags.with_prior(prior)


def prior_or_none(bags: Bags) -> FloatArray:
    """The prior as compiled loops want it: an empty array stands for none."""
    return np.empty(0) if bags.prior is None else bags.prior
