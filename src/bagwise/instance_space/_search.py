"""How mi-SVM and MI-SVM alternate between solving a support vector machine and guessing what is hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bagwise.base import FloatArray
from bagwise.instance_space._dual import IntArray, Items, Machine

# The first guesses need no more than a rough solution; only one that repeats itself is solved to the end.
ROUGH = 1e-2
MAX_PASSES = 1000


@dataclass
class Found:
    """Where a search ended: w = Σ_k coefficients[k] φ(x_rows[k]), and the same with ones for the intercept."""

    rows: IntArray
    coefficients: FloatArray
    objective: float
    n_iter: int
    converged: bool


class Search(ABC):
    """Solve, guess, and again until the guess stays the same.

    Parameters
    ----------
    machine : Machine
        At w = 0.
    offsets : (n_bags + 1,) array
    positive : (n_bags,) bool array
    cap : (n_bags,) array
        C times the weight of each bag.
    """

    items: Items

    def __init__(self, machine: Machine, offsets: IntArray, positive: NDArray[np.bool_], cap: FloatArray) -> None:
        self.machine = machine
        sizes = np.diff(offsets)
        in_positive = np.repeat(positive, sizes)
        self.positive_rows = np.flatnonzero(in_positive)
        self.negative_rows = np.flatnonzero(~in_positive)
        self.positive_offsets = np.concatenate([[0], np.cumsum(sizes[positive])])
        self.negative_offsets = np.concatenate([[0], np.cumsum(sizes[~positive])])
        self.positive_cap, self.negative_cap = cap[positive], cap[~positive]

    def run(self, max_iter: int, tol: float) -> Found:
        accuracy, n_iter, converged = max(ROUGH, tol), 0, False
        while not converged:
            n_iter += 1
            if n_iter == max_iter:
                accuracy = tol
            objective, z = self.machine.solve(self.items, accuracy, MAX_PASSES)
            if n_iter == max_iter:
                break
            if not self.guess(z):
                converged = accuracy == tol
                accuracy = tol
        used = self.items.alpha > 0
        return Found(self.items.rows[used], self.items.coefficients()[used], objective, n_iter, converged)

    @abstractmethod
    def guess(self, z: FloatArray) -> bool:
        """Guess anew from the machine, of which z are the scores of the items; whether that changed anything."""

    def highest(self, z: FloatArray) -> IntArray:
        """(n_positive_bags,) position among the positive bags' instances of each one's highest score."""
        best = np.maximum.reduceat(z, self.positive_offsets[:-1])
        hits = np.flatnonzero(z == np.repeat(best, np.diff(self.positive_offsets)))
        return hits[np.searchsorted(hits, self.positive_offsets[:-1])]


class LabelSearch(Search):
    """mi-SVM: every instance of a positive bag has a label of its own, and at least one in each bag is positive.

    Starts with the labels that ``first_scores``, one for each instance, ask for.
    """

    def __init__(
        self,
        machine: Machine,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        first_scores: FloatArray,
    ) -> None:
        super().__init__(machine, offsets, positive, cap)
        n_negative, n_positive = len(self.negative_rows), len(self.positive_rows)
        cap_of_instance = np.repeat(cap, np.diff(offsets))
        rows = np.concatenate([self.negative_rows, self.positive_rows])
        self.items = Items.start(
            rows,
            np.arange(n_negative + n_positive + 1),
            np.concatenate([np.full(n_negative, -1.0), self.signs(first_scores[self.positive_rows])]),
            cap_of_instance[rows],
            machine.prior,
        )

    def signs(self, z: FloatArray) -> FloatArray:
        """(n,) labels of the positive bags' instances that these scores ask for."""
        sign = np.where(z > 0, 1.0, -1.0)
        sign[self.highest(z)] = 1.0
        return sign

    def guess(self, z: FloatArray) -> bool:
        items, first = self.items, len(self.negative_rows)
        sign = self.signs(z[first:])
        flipped = first + np.flatnonzero(sign != items.sign[first:])
        self.machine.move(items.rows[flipped], -items.alpha[flipped] * items.sign[flipped])
        items.alpha[flipped] = 0.0
        items.sign[first:] = sign
        return len(flipped) > 0


class WitnessSearch(Search):
    """MI-SVM: one witness speaks for each positive bag; all instances of a negative bag share one slack.

    Starts with the mean of each positive bag as its witness, which the machine must hold in one more row for each
    bag, after all instances; or with the instance of the highest score, when there are ``first_scores``.
    """

    def __init__(
        self,
        machine: Machine,
        offsets: IntArray,
        positive: NDArray[np.bool_],
        cap: FloatArray,
        first_scores: FloatArray | None = None,
    ) -> None:
        super().__init__(machine, offsets, positive, cap)
        if first_scores is None:
            witness = offsets[-1] + np.flatnonzero(positive)
        else:
            witness = self.positive_rows[self.highest(first_scores[self.positive_rows])]
        n_negative, n_positive = len(self.negative_offsets) - 1, len(witness)
        self.items = Items.start(
            np.concatenate([self.negative_rows, witness]),
            np.concatenate([self.negative_offsets, len(self.negative_rows) + 1 + np.arange(n_positive)]),
            np.concatenate([np.full(n_negative, -1.0), np.ones(n_positive)]),
            np.concatenate([self.negative_cap, self.positive_cap]),
            machine.prior,
        )

    def guess(self, z: FloatArray) -> bool:
        items, first = self.items, len(self.negative_rows)
        before = items.rows[first:]
        witness = self.positive_rows[self.highest(self.machine.scores(self.positive_rows))]
        changed = np.flatnonzero(witness != before)
        alpha = items.alpha[first + changed]
        self.machine.move(before[changed], -alpha)
        self.machine.move(witness[changed], alpha)
        items.rows[first:] = witness
        return len(changed) > 0
