"""The linear support vector machine over groups, without a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from bagwise.base import FloatArray
from bagwise.instance_space._dual import IntArray, Items

# A check costs about one pass. The first comes early: it sends most items to rest.
FIRST_PASSES, MOST_PASSES = 1, 10
# All items are looked at again when those that take part are solved to this share of the accuracy asked for.
SHARE_OF_ACTIVE = 0.7
# Items whose dual variable is at its bound and that are further than this beyond the margin sit out until the next
# check, which looks at all of them again.
FAR_FROM_MARGIN = 0.3


class LinearMachine:
    """Dual coordinate descent that keeps w from one problem to the next.

    Parameters
    ----------
    X : (n_rows, d) array or CSR matrix
    seed : int
        Of the order in which rows are visited.
    prior : (n_rows,) array, optional
        Added to the scores.
    """

    def __init__(self, X: Any, seed: int, prior: FloatArray | None = None) -> None:
        from bagwise._utils.row_loops import row_store, squared_norms
        from bagwise.instance_space import _linear_loops as _linear_kernels

        self._kernels = _linear_kernels
        self._store = row_store(X)
        self._n_rows = X.shape[0]
        self.coef = np.zeros(X.shape[1])
        self._bias = np.zeros(1)
        self._state = np.uint64(seed)
        self._norm2 = squared_norms(self._store, self._n_rows) + 1
        self.prior = prior
        self._prior = np.zeros(self._n_rows) if prior is None else prior

    @property
    def intercept(self) -> float:
        return float(self._bias[0])

    def reset(self) -> None:
        """Go back to w = 0."""
        self.coef[:] = 0
        self._bias[0] = 0

    def move(self, rows: IntArray, steps: FloatArray) -> None:
        self._kernels.add_rows(self._store, rows, steps, self.coef)
        self._bias[0] += steps.sum()

    def scores(self, rows: IntArray | None = None) -> FloatArray:
        rows = np.arange(self._n_rows) if rows is None else rows
        z = np.empty(len(rows))
        self._kernels.scores(self._store, rows, self.coef, self._bias, self._prior, z)
        return z

    def square(self) -> float:
        """‖w‖² + b²."""
        return float(self.coef @ self.coef + self._bias[0] ** 2)

    def solve(self, items: Items, tol: float, max_passes: int) -> float:
        group, sign, used = items.group, items.item_sign, items.used()
        # The dual variable of an item alone in its group has a bound of its own.
        full = np.where(np.diff(items.offsets) == 1, items.cap, np.inf)[group]
        norm2, worst = self._norm2[items.rows], np.zeros(len(items.sign))
        done = 0
        while True:
            slope = sign * self.scores(items.rows) - 1
            losses = np.maximum(np.maximum.reduceat(-slope, items.offsets[:-1]), 0)
            total = float(items.cap @ losses)
            objective = 0.5 * self.square() + total
            if total + float(items.alpha @ slope) <= tol * objective or done >= max_passes:
                return objective
            active, few, gap = np.arange(len(items.rows)), FIRST_PASSES, np.inf
            while gap > SHARE_OF_ACTIVE * tol * objective and done < max_passes:
                at, far = items.alpha[active], slope[active]
                resting = (at <= 0) & (far > FAR_FROM_MARGIN)
                resting |= (at >= full[active]) & (far < -FAR_FROM_MARGIN)
                active = active[~resting]
                self._state = self._kernels.passes(
                    self._store, items.rows, group, items.offsets, items.sign, items.cap, norm2,
                    items.alpha, used, slope, active, self.coef, self._bias, self._prior, few,
                    np.uint64(self._state),
                )  # fmt: skip
                done, few = done + few, min(2 * few, MOST_PASSES)
                gap = self._kernels.gap_of(
                    self._store, items.rows, group, items.sign, items.cap,
                    items.alpha, slope, active, self.coef, self._bias, self._prior, worst,
                )  # fmt: skip
