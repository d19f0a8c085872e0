"""The support vector machine that mi-SVM and MI-SVM solve again and again, as a dual problem over groups of rows.

    min_w  ½ ‖w‖² + ½ b² + Σ_g cap_g · max(0, max over the items k of group g of (1 - y_g (w · x_k + b + a_k)))

where a_k is the prior of the row, zero where there is none.

A group is one instance for mi-SVM. For MI-SVM it is a whole negative bag, all of whose instances share one slack, or
the witness of a positive bag. In the dual, the variables of a group are not negative and sum to cap_g at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bagwise.base import FloatArray

IntArray = NDArray[np.int64]


@dataclass
class Items:
    """Rows that take part in the problem, in groups, with their dual variables."""

    rows: IntArray  # (n_items,) into the matrix of instances
    offsets: IntArray  # (n_groups + 1,) into the items
    sign: FloatArray  # (n_groups,) +1 or -1
    cap: FloatArray  # (n_groups,)
    alpha: FloatArray  # (n_items,)
    prior: FloatArray | None = None  # (n_rows,) what is added to the scores, or nothing

    @classmethod
    def start(
        cls, rows: IntArray, offsets: IntArray, sign: FloatArray, cap: FloatArray, prior: FloatArray | None = None
    ) -> Items:
        return cls(rows, offsets, sign, cap, np.zeros(len(rows)), prior)

    @property
    def group(self) -> IntArray:
        """(n_items,) group of each item."""
        return np.repeat(np.arange(len(self.sign)), np.diff(self.offsets))

    @property
    def item_sign(self) -> FloatArray:
        return np.repeat(self.sign, np.diff(self.offsets))

    def used(self) -> FloatArray:
        """(n_groups,) sum of each group's dual variables."""
        return np.add.reduceat(self.alpha, self.offsets[:-1])

    def coefficients(self) -> FloatArray:
        """(n_items,) weight of each row in w."""
        return self.alpha * self.item_sign

    def hinge(self, z: FloatArray) -> FloatArray:
        """(n_groups,) loss of each group, from the scores of all rows."""
        worst = np.maximum.reduceat(1 - self.item_sign * z[self.rows], self.offsets[:-1])
        return np.maximum(worst, 0)

    def objective(self, z: FloatArray, square: float) -> float:
        """The primal objective, where ``square`` is ‖w‖² + b²."""
        return 0.5 * square + float(self.cap @ self.hinge(z))

    def gap(self, z: FloatArray, square: float) -> float:
        """Primal minus dual objective: how far from optimal these dual variables surely are at most."""
        margin = 1 if self.prior is None else 1 - self.item_sign * self.prior[self.rows]
        return max(self.objective(z, square) - float(np.sum(self.alpha * margin)) + 0.5 * square, 0.0)


class Machine(Protocol):
    """A solver of the problem above that keeps w between calls, so that a little change costs little."""

    prior: FloatArray | None  # (n_rows,) what is added to the scores

    def move(self, rows: IntArray, steps: FloatArray) -> None:
        """Add Σ steps[k] φ(x_rows[k]) to w."""

    def solve(self, items: Items, tol: float, max_passes: int) -> tuple[float, FloatArray]:
        """Bring the items' dual variables, and w, to a duality gap of tol times the objective.

        Returns
        -------
        objective : float
        z : (n_items,) array
            Scores of the items.
        """

    def scores(self, rows: IntArray) -> FloatArray:
        """w · φ(x) + b, and the prior, of some rows."""
