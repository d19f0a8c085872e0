"""Solvers of RMI-SVM's objective: stochastic Pegasos steps, averaged or not, and L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise.bags import Bags
from bagwise.mapped import bag_blocks, bag_ranges, is_large_map
from bagwise.rmi.objective import Loss, instance_coefficients, value_and_gradient

FloatArray = NDArray[np.float64]

# Arrays with a few numbers per instance are made for this many instances at a time.
ROWS_AT_ONCE = 1 << 20

# So many steps are made before Python can hear of Ctrl-C.
STEPS_AT_ONCE = 5000


@dataclass
class Problem:
    """Bags with one column of targets and weights for each binary problem."""

    bags: Bags  # dense or CSR, in memory or in a file
    targets: NDArray[np.bool_]  # (n_bags, n_problems)
    weight: FloatArray  # (n_bags, n_problems), each column with mean 1
    loss: Loss
    intercept: bool
    # How to make what is learnt from out of the bags, a block at a time; None when they are that already.
    mapping: Callable[[Bags], Bags] | None = None

    def blocks(self) -> Iterator[tuple[slice, Bags]]:
        """Ranges of bags, and those bags ready to learn from: one range, unless they lie in a large file."""
        for part, bags in bag_blocks(self.bags):
            yield part, bags if self.mapping is None else self.mapping(bags)

    def objective(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """(n_problems,) value of the objective."""
        return np.array([self._value_and_gradient(k, _join(coef[k], intercept[k]))[0] for k in range(len(coef))])

    def _value_and_gradient(self, k: int, w: FloatArray) -> tuple[float, FloatArray]:
        w = w if self.intercept else w[:-1]
        value, gradient = 0.5 * self.loss.lam * float(w @ w), self.loss.lam * w
        unregularised = replace(self.loss, lam=0.0)
        for part, bags in self.blocks():
            losses, slope = value_and_gradient(
                w,
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
        return value, gradient

    def radius(self, kind: str | None) -> FloatArray:
        """(n_problems,) bound on the norm of w: Pegasos' own, one that surely holds the minimiser, or none."""
        if kind is None:
            return np.full(self.targets.shape[1], np.inf)
        if kind == "pegasos":
            return np.full(self.targets.shape[1], 1 / np.sqrt(self.loss.lam))
        at_zero = np.zeros(self.targets.shape[1])
        for part in bag_ranges(self.bags.offsets, ROWS_AT_ONCE):
            offsets = self.bags.offsets[part.start : part.stop + 1]
            rows = slice(offsets[0], offsets[-1])
            z = np.zeros(rows.stop - rows.start) if self.bags.prior is None else self.bags.prior[rows]
            for k in range(len(at_zero)):
                losses, _ = instance_coefficients(z, offsets - offsets[0], self.targets[part, k], self.loss)
                at_zero[k] += np.sum(self.weight[part, k] * losses)
        return np.sqrt(2 * at_zero / len(self.bags) / self.loss.lam)


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


def sgd(
    problem: Problem,
    start: Iterate,
    passes: Iterator[NDArray[np.int64]],
    *,
    average_from: int | None,
    radius: FloatArray,
    after_pass: Callable[[Iterate], Any] | None = None,
    device: str = "cpu",
) -> tuple[Iterate, Iterate]:
    """Make one Pegasos step on each bag of each pass.

    Returns
    -------
    The last iterate, and the mean of all iterates later than step ``average_from`` (the last one when it is None).
    ``after_pass`` is called with the current iterate at the end of every pass.
    """
    stepper = _stepper_for(problem, device)(problem, start, radius)
    if after_pass is None and isinstance(stepper, DenseStepper | SparseStepper):
        passes = _merged(passes)
    for order in passes:
        stepper.run(order, np.iinfo(np.int64).max if average_from is None else average_from)
        if after_pass is not None:
            after_pass(stepper.last())
    last = stepper.last()
    averaged = last.steps - max(average_from, start.steps) if average_from is not None else 0
    if averaged <= 0:
        return last, last
    coef_sum, intercept_sum = stepper.sums()
    return last, Iterate(coef_sum / averaged, intercept_sum / averaged, last.steps)


def _merged(passes: Iterator[NDArray[np.int64]], steps: int = STEPS_AT_ONCE) -> Iterator[NDArray[np.int64]]:
    """Join short passes: a call of a compiled kernel costs as much as some twenty steps on small bags."""
    waiting: list[NDArray[np.int64]] = []
    for order in passes:
        waiting.append(order)
        if sum(map(len, waiting)) >= steps:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _stepper_for(problem: Problem, device: str) -> Any:
    if device == "cuda":
        from bagwise.rmi.torch_solver import stepper_for

        return stepper_for
    if is_large_map(problem.bags.instances):
        from bagwise.rmi.outofcore import OutOfCoreStepper

        return OutOfCoreStepper
    return SparseStepper if sparse.issparse(problem.bags.instances) else DenseStepper


class DenseStepper:
    """Makes steps on dense bags in memory."""

    def __init__(self, problem: Problem, start: Iterate, radius: FloatArray) -> None:
        from bagwise.rmi import kernels

        self._kernel = kernels.dense_steps
        self._at = Iterate(start.coef.copy(), start.intercept.copy(), start.steps)
        self._coef_sum, self._intercept_sum = np.zeros_like(start.coef), np.zeros_like(start.intercept)
        self._problem, loss = problem, problem.loss
        self._loss = (loss.lam, loss.beta, loss.margin, loss.z_threshold, radius, problem.intercept)

    def run(self, order: NDArray[np.int64], average_from: int) -> None:
        problem = self._problem
        self.make_steps(problem.bags, order, problem.targets, problem.weight, average_from)

    def make_steps(
        self,
        bags: Bags,
        order: NDArray[np.int64],
        targets: NDArray[np.bool_],
        weight: FloatArray,
        average_from: int,
    ) -> None:
        """Step on each bag of the order; targets and weight belong to the bags given."""
        at = self._at
        self._kernel(
            bags.instances, bags.offsets, prior_or_none(bags), order, targets, weight,
            at.coef, at.intercept, self._coef_sum, self._intercept_sum, at.steps, average_from,
            *self._loss,
        )  # fmt: skip
        at.steps += len(order)

    def last(self) -> Iterate:
        return self._at

    def sums(self) -> tuple[FloatArray, FloatArray]:
        return self._coef_sum, self._intercept_sum


class SparseStepper:
    """Makes steps on CSR bags.

    Keeps w as scale * V and the sum of iterates as mass * V - U (see kernels.sparse_steps).
    """

    def __init__(self, problem: Problem, start: Iterate, radius: FloatArray) -> None:
        from bagwise.rmi import kernels

        self._kernel = kernels.sparse_steps
        n_problems = len(start.intercept)
        self._v, self._scale = start.coef.copy(), np.ones(n_problems)
        self._u, self._mass = np.zeros_like(start.coef), np.zeros(n_problems)
        self._intercept, self._intercept_sum = start.intercept.copy(), np.zeros(n_problems)
        self._steps = start.steps
        x, bags, loss = problem.bags.instances, problem.bags, problem.loss
        self._data = (x.data, x.indices, x.indptr, bags.offsets, prior_or_none(bags))
        self._targets = (problem.targets, problem.weight)
        self._loss = (loss.lam, loss.beta, loss.margin, loss.z_threshold, radius, problem.intercept)

    def run(self, order: NDArray[np.int64], average_from: int) -> None:
        square = np.einsum("kd,kd->k", self._v, self._v)  # anew each pass, so that rounding cannot pile up
        self._kernel(
            *self._data, order, *self._targets,
            self._v, self._scale, square, self._intercept, self._u, self._mass, self._intercept_sum,
            self._steps, average_from,
            *self._loss,
        )  # fmt: skip
        self._steps += len(order)

    def last(self) -> Iterate:
        return Iterate(self._scale[:, None] * self._v, self._intercept, self._steps)

    def sums(self) -> tuple[FloatArray, FloatArray]:
        return self._mass[:, None] * self._v - self._u, self._intercept_sum


def lbfgs(problem: Problem, start: Iterate, *, max_iter: int, tol: float) -> tuple[Iterate, int]:
    """Minimise with L-BFGS from the given point, each binary problem on its own; also tell the most iterations."""
    from scipy.optimize import minimize

    end = Iterate(np.empty_like(start.coef), np.zeros_like(start.intercept), start.steps)
    iterations = 1
    for k in range(len(start.coef)):
        w = _join(start.coef[k], start.intercept[k])

        def padded(w: FloatArray, k: int = k) -> tuple[float, FloatArray]:
            value, gradient = problem._value_and_gradient(k, w)
            return value, gradient if problem.intercept else np.append(gradient, 0.0)

        result = minimize(padded, w, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "gtol": tol})
        end.coef[k], end.intercept[k] = result.x[:-1], result.x[-1]
        iterations = max(iterations, result.nit)
    return end, iterations


def _join(coef: FloatArray, intercept: float) -> FloatArray:
    return np.append(coef, intercept)


def prior_or_none(bags: Bags) -> FloatArray:
    """The prior as the kernels want it: an empty array stands for none."""
    return np.empty(0) if bags.prior is None else bags.prior
