"""RMI-SVM's stochastic solver on bags that lie in a file larger than memory.

Bags are visited in pieces of about BLOCK_BYTES: the bags of a piece are read in the order of the file, scaled, and
stepped on in the order of the solver, while a thread reads the next piece. So at any time two pieces and the
temporaries of scaling one are in memory, five times BLOCK_BYTES in all, whatever the size of the file. The steps, and
so the model, are those in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bagwise._utils import mapped
from bagwise.bags import Bags
from bagwise.rmi.problem import prior_or_none
from bagwise.rmi.sgd import DenseStepper

# A run of neighbouring bags of this size is long enough for a disk, and a piece holds enough of them for a good mixture
# where the file is sorted by label.
RUN_BYTES = 2 << 20


def orders_by_runs(bags: Bags, steps: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
    """The bags to visit, one pass at a time: runs of neighbours in random order, shuffled within each piece."""
    row_bytes = bags.n_features * bags.dtype.itemsize
    runs = [np.arange(run.start, run.stop) for run in mapped.bag_ranges(bags.offsets, RUN_BYTES // row_bytes)]
    while steps > 0:
        order = np.concatenate([runs[i] for i in rng.permutation(len(runs))])
        for piece in pieces(bags, order):
            rng.shuffle(piece)
        yield order[:steps]
        steps -= len(bags)


def pieces(bags: Bags, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut an order into views of consecutive bags that together take about BLOCK_BYTES."""
    offsets = np.concatenate([[0], np.cumsum(bags.sizes[order])])
    max_rows = mapped.BLOCK_BYTES // (bags.n_features * bags.dtype.itemsize)
    return [order[part] for part in mapped.bag_ranges(offsets, max_rows)]


class Piece(NamedTuple):
    """Bags of a piece in memory, each once and ready to learn from; the order among them; and their numbers."""

    bags: Bags
    order: NDArray[np.int64]
    numbers: NDArray[np.int64]


def read_pieces(bags: Bags, mapping: Callable[[Bags], Bags] | None, order: NDArray[np.int64]) -> Iterator[Piece]:
    """The pieces of an order, each read while the last one is worked on."""
    parts = pieces(bags, order)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(_read, bags, mapping, parts[0])
        for following in [*parts[1:], None]:
            piece = coming.result()
            if following is not None:
                coming = reader.submit(_read, bags, mapping, following)
            yield piece


def _read(bags: Bags, mapping: Callable[[Bags], Bags] | None, piece: NDArray[np.int64]) -> Piece:
    index, local = np.unique(piece, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(bags.sizes[index])]).astype(np.int64)
    instances = np.empty((int(offsets[-1]), bags.n_features), bags.dtype)
    prior = None if bags.prior is None else np.empty(len(instances))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(index) > 1) + 1, [len(index)]])
    for first, last in pairwise(starts):  # a run of neighbours at a time
        there = slice(bags.offsets[index[first]], bags.offsets[index[last - 1] + 1])
        here = slice(offsets[first], offsets[last])
        instances[here] = bags.instances[there]
        if prior is not None:
            prior[here] = prior_or_none(bags)[there]
        # At once, and not with the others: a cached file lies in pieces of up to 2 MB, and reading a single bag maps
        # the whole piece.
        mapped.forget(bags.instances[there])
    # All of it: the system maps small pages around those that were asked for, and single bags leave them behind.
    mapped.forget(bags.instances)
    block = Bags.from_arrays(instances, offsets, prior=prior, check_finite=False)
    return Piece(block if mapping is None else mapping(block), local.astype(np.int64), index)


class OutOfCoreStepper(DenseStepper):
    """Makes the steps of `DenseStepper` on bags that are read, and mapped, piece by piece."""

    def run(self, order: NDArray[np.int64], average_from: int) -> None:
        """Make one step on each bag of the order."""
        problem = self._problem
        for bags, local, index in read_pieces(problem.bags, problem.mapping, order):
            self.make_steps(bags, local, problem.targets[index], problem.weight[index], average_from)
