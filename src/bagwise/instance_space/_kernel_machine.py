"""The support vector machine over groups with a Gaussian or polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from bagwise.base import FloatArray
from bagwise.instance_space._dual import IntArray, Items

VALUES_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class InstanceKernel:
    """k(x, x') = exp(-γ ‖x - x'‖²), or (γ x·x' + coef0)^degree."""

    kind: str  # "rbf" or "poly"
    gamma: float
    coef0: float
    degree: int

    def matrix(self, a: Any, b: Any) -> FloatArray:
        """(len(a), len(b)) kernel values."""
        if self.kind == "rbf":
            return rbf_kernel(a, b, gamma=self.gamma)
        return polynomial_kernel(a, b, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def weighted_sum(self, x: Any, landmarks: Any, weights: FloatArray) -> FloatArray:
        """(len(x), n_problems) Σ_l weights[k, l] k(x, landmarks[l]), a block of rows at a time."""
        out = np.zeros((x.shape[0], len(weights)))
        block = max(VALUES_PER_BLOCK // max(landmarks.shape[0], 1), 1)
        for start in range(0, x.shape[0], block) if landmarks.shape[0] else ():
            out[start : start + block] = self.matrix(x[start : start + block], landmarks) @ weights.T
        return out


class KernelMachine:
    """Greedy dual ascent that keeps the scores, and rows of the kernel matrix, from one problem to the next.

    Parameters
    ----------
    X : (n_rows, d) array or CSR matrix
    kernel : InstanceKernel
    cache_size : float
        Megabytes for rows of the kernel matrix. When all fit, they are computed at once.
    prior : (n_rows,) array, optional
        Added to the scores.
    """

    def __init__(self, X: Any, kernel: InstanceKernel, cache_size: float, prior: FloatArray | None = None) -> None:
        from bagwise._utils.row_loops import row_store, squared_norms
        from bagwise.instance_space import _kernel_loops as _kernel_steps

        self._kernels = _kernel_steps
        n = X.shape[0]
        store = row_store(X)
        norm2 = squared_norms(store, n)
        kind = _kernel_steps.RBF if kernel.kind == "rbf" else _kernel_steps.POLY
        spec = (kind, float(kernel.gamma), float(kernel.coef0), float(kernel.degree))
        slots = min(n, max(int(cache_size * 1e6 / (8 * n)), 2))
        cache, slot_of_row, row_of_slot = np.empty((slots, n)), np.full(n, -1), np.full(slots, -1)
        if slots == n:
            block = max(VALUES_PER_BLOCK // n, 1)
            for start in range(0, n, block):
                cache[start : start + block] = kernel.matrix(X[start : start + block], X) + 1
            slot_of_row[:] = row_of_slot[:] = np.arange(n)
        self._rows = (store, norm2, spec, cache, slot_of_row, row_of_slot, np.zeros(slots + 1, dtype=np.int64))
        self._diagonal = (
            np.full(n, 2.0)
            if kind == _kernel_steps.RBF
            else ((kernel.gamma * norm2 + kernel.coef0) ** kernel.degree + 1)
        )
        self.prior = prior
        self._prior = np.zeros(n) if prior is None else prior
        self._z = self._prior.copy()

    def reset(self) -> None:
        """Go back to w = 0."""
        self._z[:] = self._prior

    def move(self, rows: IntArray, steps: FloatArray) -> None:
        self._kernels.add_rows(*self._rows, rows, steps, self._z)

    def scores(self, rows: IntArray) -> FloatArray:
        return self._z[rows]

    def solve(self, items: Items, tol: float, max_passes: int) -> tuple[float, FloatArray]:
        used, diagonal = items.used(), self._diagonal[items.rows]
        batch = max(len(items.rows) // 4, 100)
        accuracy = 0.1
        for _ in range(4 * max_passes):
            made = self._kernels.steps(
                *self._rows, items.rows, items.offsets, items.sign, items.cap, diagonal,
                items.alpha, used, self._z, batch, accuracy,
            )  # fmt: skip
            square = float(items.coefficients() @ (self._z - self._prior)[items.rows])
            objective = items.objective(self._z, square)
            if items.gap(self._z, square) <= tol * objective:
                break
            if made < batch:
                accuracy /= 4
        return objective, self._z[items.rows]
