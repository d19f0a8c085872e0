"""The linear support vector machine over groups, without a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from bagwise.base import FloatArray
from bagwise.instance_space._dual import IntArray, Items

# A check costs about one pass. The first comes early: it sends most items to rest.
FIRST_PASSES, MOST_PASSES = 1, 10
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

    def scores(self, rows: IntArray) -> FloatArray:
        z = np.empty(len(rows))
        self._kernels.scores(self._store, rows, self.coef, self._bias, self._prior, z)
        return z

    def square(self) -> float:
        """‖w‖² + b²."""
        return float(self.coef @ self.coef + self._bias[0] ** 2)

    def solve(self, items: Items, tol: float, max_passes: int) -> tuple[float, FloatArray]:
        group, used, norm2 = items.group, items.used(), self._norm2[items.rows]
        z, slope = np.empty(len(items.rows)), np.empty(len(items.rows))
        active = np.empty(len(items.rows), dtype=np.int64)
        done, passes = 0, FIRST_PASSES
        while True:
            loss, linear, n_active = self._kernels.check(
                self._store, items.rows, items.offsets, items.sign, items.cap, FAR_FROM_MARGIN,
                items.alpha, self.coef, self._bias, self._prior, z, slope, active,
            )  # fmt: skip
            square = self.square()
            objective = 0.5 * square + loss
            if max(objective - linear + 0.5 * square, 0.0) <= tol * objective or done >= max_passes:
                return objective, z
            self._state = self._kernels.passes(
                self._store, items.rows, group, items.offsets, items.sign, items.cap, norm2,
                items.alpha, used, slope, active[:n_active], self.coef, self._bias, self._prior, passes,
                np.uint64(self._state),
            )  # fmt: skip
            done, passes = done + passes, min(2 * passes, MOST_PASSES)
