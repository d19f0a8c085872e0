"""RMI-SVM's stochastic solver: Pegasos steps on one bag at a time, averaged or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.mapped import is_large_map
from bagwise.bags import Bags
from bagwise.rmi.problem import FloatArray, Iterate, Problem, prior_or_none

# So many steps are made before Python can hear of Ctrl-C.
STEPS_AT_ONCE = 5000


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
    """Join short passes: a call of a compiled loop costs as much as some twenty steps on small bags."""
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


class _Stepper:
    """Where the steps stand: w is scale * V, and the sum of the iterates mass * V - U (see loops.py)."""

    def __init__(self, problem: Problem, start: Iterate, radius: FloatArray) -> None:
        n_problems = len(start.intercept)
        self._v, self._scale = start.coef.copy(), np.ones(n_problems)
        self._u, self._mass = np.zeros_like(start.coef), np.zeros(n_problems)
        self._intercept, self._intercept_sum = start.intercept.copy(), np.zeros(n_problems)
        self._steps = start.steps
        self._problem, loss = problem, problem.loss
        self._loss = (loss.lam, loss.beta, loss.margin, loss.z_threshold, radius, problem.intercept)

    def last(self) -> Iterate:
        return Iterate(self._scale[:, None] * self._v, self._intercept.copy(), self._steps)

    def sums(self) -> tuple[FloatArray, FloatArray]:
        return self._mass[:, None] * self._v - self._u, self._intercept_sum


class DenseStepper(_Stepper):
    """Makes steps on dense bags in memory."""

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
        from bagwise.rmi import loops

        loops.dense_steps(
            bags.instances, bags.offsets, prior_or_none(bags), order, targets, weight,
            self._v, self._scale, self._intercept, self._u, self._mass, self._intercept_sum,
            self._steps, average_from,
            *self._loss,
        )  # fmt: skip
        self._steps += len(order)


class SparseStepper(_Stepper):
    """Makes steps on CSR bags."""

    def run(self, order: NDArray[np.int64], average_from: int) -> None:
        from bagwise.rmi import loops

        problem, bags = self._problem, self._problem.bags
        x = bags.instances
        square = np.einsum("kd,kd->k", self._v, self._v)  # anew each pass, so that rounding cannot pile up
        loops.sparse_steps(
            x.data, x.indices, x.indptr, bags.offsets, prior_or_none(bags), order, problem.targets, problem.weight,
            self._v, self._scale, square, self._intercept, self._u, self._mass, self._intercept_sum,
            self._steps, average_from,
            *self._loss,
        )  # fmt: skip
        self._steps += len(order)
