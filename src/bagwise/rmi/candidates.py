"""The candidates of the path: models of many λ, poolings and folds, fitted side by side in one walk over the bags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.mapped import bag_ranges, is_large_map
from bagwise.bags import Bags
from bagwise.pooling import noisy_or_log_odds, size_prior
from bagwise.rmi.problem import FloatArray, Problem, prior_or_none, with_size_prior

# Side by side lie as many candidates as fit into so many bytes, in multiples of what vector units take at once.
CANDIDATE_BYTES = 4 << 20
SPARSE_CANDIDATE_BYTES = 128 << 20
VECTOR = 16
SCORES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Grid:
    """Which candidates there are, and how they are fitted."""

    lams: Sequence[float]
    poolings: Sequence[str]
    passes: int
    average: bool
    radius: str | None
    orders: Callable[[int], Iterator[NDArray[np.int64]]]  # the bags to visit in so many passes, the same every time


@dataclass(frozen=True)
class OutOfFold:
    """What the models of one binary problem and one scaling say, for each pooling and λ."""

    scores: FloatArray  # (n_poolings, n_lams, n_bags) log-odds of each bag by the model that has not seen it
    coef: NDArray[np.float32]  # (n_poolings, n_lams, n_features) mean of the models of all folds
    intercept: FloatArray  # (n_poolings, n_lams)
    steps: int  # that each of them has made


def out_of_fold(grid: Grid, problem: Problem, k: int, fold: NDArray[np.int64], n_features: int) -> OutOfFold:
    """Fit all candidates for binary problem k without each fold in turn, and score that fold's bags."""
    n_folds = int(fold.max()) + 1
    shape = (len(grid.poolings), len(grid.lams))
    pooling, lam, left_out = np.indices((*shape, n_folds)).reshape(3, -1)
    normalized = np.array([name == "normalized" for name in grid.poolings])[pooling]
    budget = SPARSE_CANDIDATE_BYTES if sparse.issparse(problem.bags.instances) else CANDIDATE_BYTES
    at_once = max(VECTOR, budget // (8 * n_features) // VECTOR * VECTOR)
    scores, steps = np.empty((len(lam), len(fold))), np.iinfo(np.int64).max
    coef, intercept = np.zeros((*shape, n_features), dtype=np.float32), np.zeros(shape)
    for start in range(0, len(lam), at_once):
        part = slice(start, start + at_once)
        fitted = Candidates(problem, k, fold, np.array(grid.lams)[lam[part]], normalized[part], left_out[part])
        steps = min(steps, fitted.fit(grid, n_features))
        scores[part] = fitted.scores()
        for one, w, b in zip(np.arange(len(lam))[part], fitted.coef.T, fitted.intercept, strict=True):
            coef[pooling[one], lam[one]] += w / n_folds
            intercept[pooling[one], lam[one]] += b / n_folds
    # Of each bag, the score by the model that left out its fold.
    by_fold = scores.reshape(*shape, n_folds, len(fold))
    return OutOfFold(np.take_along_axis(by_fold, fold[None, None, None, :], axis=2)[:, :, 0], coef, intercept, steps)


class Candidates:
    """Models of one binary problem, fitted side by side."""

    def __init__(
        self,
        problem: Problem,
        k: int,
        fold: NDArray[np.int64],
        lam: FloatArray,
        normalized: NDArray[np.bool_],
        left_out: NDArray[np.int64],
    ) -> None:
        self._problem, self._fold, self._k = problem, fold, k
        self._n = len(lam)
        padded = np.minimum(np.arange(-(-self._n // VECTOR) * VECTOR), self._n - 1)
        self._lam, self._normalized, self._left_out = lam[padded], normalized[padded], left_out[padded]
        self._positive = np.ascontiguousarray(problem.targets[:, k])
        self._weight = problem.weight[:, k].astype(np.float32)
        self._size_prior = size_prior(problem.bags.offsets).astype(np.float32)

    def _radius(self, kind: str | None) -> NDArray[np.float32]:
        """The bound on the norm of each candidate's w; see `Problem.radius`."""
        if kind is None:
            return np.full(len(self._lam), np.finfo(np.float32).max ** 0.5, dtype=np.float32)
        at_zero = np.full(len(self._lam), 0.5)
        if kind == "safe":
            one = replace(
                self._problem, targets=self._positive[:, None], weight=self._problem.weight[:, [self._k]], mapping=None
            )
            plain = one.at_zero()[0]
            sized = replace(one, bags=with_size_prior(one.bags)).at_zero()[0] if self._normalized.any() else plain
            at_zero = np.where(self._normalized, sized, plain)
        return np.sqrt(2 * at_zero / self._lam).astype(np.float32)

    def fit(self, grid: Grid, n_features: int) -> int:
        """Make the steps of all candidates; keep the mean of the later half of their iterates, or the last ones.

        Sets ``coef`` (n_features, n_candidates) and ``intercept`` (n_candidates,); returns the fewest steps of any.
        """
        from bagwise.rmi import path_loops

        problem, loss, n = self._problem, self._problem.loss, len(self._lam)
        passes = list(grid.orders(grid.passes))
        visited = np.bincount(np.concatenate(passes), minlength=len(self._fold))
        steps = np.array([visited[self._fold != f].sum() for f in self._left_out])
        average_from = steps // 2 if grid.average else steps
        w, w_sum = (np.zeros((n_features, n), dtype=np.float32) for _ in range(2))
        b, scale = np.zeros(n, dtype=np.float32), np.ones(n, dtype=np.float32)
        b_sum, total, step = np.zeros(n), np.zeros((n_features, n)), np.zeros(n, dtype=np.int64)
        mass = np.zeros(n, dtype=np.float32)
        own = (
            self._lam.astype(np.float32), self._normalized.astype(np.float32), self._left_out,
            self._radius(grid.radius), np.float32(loss.beta), np.float32(loss.margin),
            np.float32(loss.z_threshold), problem.intercept,
        )  # fmt: skip
        for bags, order, index, pass_ends in self._parts(passes):
            given = (
                bags.offsets, prior_or_none(bags), order, self._fold[index], self._positive[index],
                self._weight[index], self._size_prior[index],
            )  # fmt: skip
            x = bags.instances
            if sparse.issparse(x):
                squares = np.einsum("dk,dk->k", w, w)
                path_loops.sparse_steps(
                    x.data, x.indices, x.indptr, *given, w, w_sum, mass, squares, b, b_sum, scale, step,
                    average_from, *own,
                )  # fmt: skip
            else:
                path_loops.dense_steps(x, *given, w, w_sum, b, b_sum, scale, step, average_from, *own)
                if pass_ends:
                    total += w_sum  # in double precision, before the sum of many loses the digits of one
                    w_sum[:] = 0
        last, last_b = scale * w.astype(np.float64), b.astype(np.float64)
        kept = np.maximum(1, steps - average_from)
        if not grid.average:
            coef, intercept = last, last_b
        elif sparse.issparse(problem.bags.instances):
            coef, intercept = (mass * w.astype(np.float64) - w_sum) / kept, b_sum / kept
        else:
            coef, intercept = (total + last) / kept, (b_sum + last_b) / kept
        self.coef, self.intercept = coef[:, : self._n], intercept[: self._n]
        return int(steps.min())

    def _parts(self, passes: list[NDArray[np.int64]]) -> Iterator[tuple[Bags, NDArray[np.int64], Any, bool]]:
        """Bags in memory, an order among them, their numbers, and whether a pass ends with them.

        All bags at once, or piece by piece from a file.
        """
        problem = self._problem
        if not is_large_map(problem.bags.instances):
            for order in passes:
                yield problem.bags, order, slice(None), True
            return
        from bagwise.rmi.outofcore import read_pieces

        for order in passes:
            left = len(order)
            for bags, local, index in read_pieces(problem.bags, problem.mapping, order):
                left -= len(local)
                yield bags.with_instances(bags.instances.astype(np.float32, copy=False)), local, index, left == 0

    def scores(self) -> FloatArray:
        """(n_candidates, n_bags) log-odds of all bags; of a bag that the candidate has seen, NaN."""
        scores = np.full((self._n, len(self._fold)), np.nan)
        coef, intercept = self.coef, self.intercept
        for part, bags in self._problem.blocks():
            for few in bag_ranges(bags.offsets, SCORES_AT_ONCE // self._n):
                block = bags[few]
                numbers = np.arange(part.start, part.stop)[few]
                for f in np.unique(self._fold[numbers]):
                    mine, here = np.flatnonzero(self._left_out[: self._n] == f), self._fold[numbers] == f
                    held_out = block[here]
                    z = held_out.instances @ coef[:, mine] + intercept[mine]
                    if held_out.prior is not None:
                        z += held_out.prior[:, None]
                    sized = np.repeat(size_prior(held_out.offsets), held_out.sizes)
                    z += sized[:, None] * self._normalized[mine]
                    scores[np.ix_(mine, numbers[here])] = noisy_or_log_odds(z, held_out.offsets).T
        return scores
