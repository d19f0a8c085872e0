"""RMI-SVM's stochastic solver on a graphics card: the same steps as the CPU's, with the data kept on the card.

The instances keep their type (float32 or float64) on the card; all arithmetic is float64, and hides
behind the reading of the instances. The CPU sums within a bag in the type of the instances, and the answers differ by
the order and the rounding of those sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.optional import require
from bagwise.rmi.objective import Loss
from bagwise.rmi.problem import Iterate, Problem

# Rows of the data begin at multiples of 128 bytes, so that the card reads them in whole lines.
ALIGNED_BYTES = 128
# Steps that one launch of a recorded graph makes: launching each kernel from Python would take longer than running it.
STEPS_PER_GRAPH = 100


@dataclass
class CardData:
    """What the kernels read: tensors on one device."""

    instances: Any  # (n_instances, width) float; width >= n_features, and zero beyond
    n_features: int
    offsets: Any  # (n_bags + 1,) int64
    targets: Any  # (n_bags, n_problems) uint8
    weight: Any  # (n_bags, n_problems) float64
    prior: Any = None  # (n_instances,) float64, or none

    @classmethod
    def from_problem(cls, problem: Problem, n_features: int, device: Any = "cuda") -> CardData:
        """Copy a problem to a device, block by block; the instances keep their type."""
        torch, bags = torch_for(device), problem.bags
        if sparse.issparse(bags.instances):
            raise ValueError("device='cuda' takes dense instances: use device='cpu' for sparse ones")
        width = aligned_width(n_features, bags.dtype.itemsize)
        dtype = torch.float32 if bags.dtype == np.float32 else torch.float64
        instances = torch.zeros((bags.n_instances, width), dtype=dtype, device=device)
        for part, block in problem.blocks():
            rows = slice(int(bags.offsets[part.start]), int(bags.offsets[part.stop]))
            instances[rows, :n_features].copy_(torch.from_numpy(np.array(block.instances)))

        def put(array: NDArray) -> Any:
            return torch.from_numpy(np.array(array)).to(device)

        prior = None if bags.prior is None else put(bags.prior)
        targets, weight = put(problem.targets.astype(np.uint8)), put(problem.weight)
        return cls(instances, n_features, put(bags.offsets), targets, weight, prior)


def aligned_width(n_features: int, itemsize: int) -> int:
    """The number of columns, filled up so that each row begins with a line of the card's memory."""
    per_line = ALIGNED_BYTES // itemsize
    return -(-n_features // per_line) * per_line


def stepper_for(problem: Problem, start: Iterate, radius: NDArray[np.float64]) -> CudaStepper:
    """Copy a problem to the card and make ready to step on it."""
    data = CardData.from_problem(problem, start.coef.shape[1])
    return CudaStepper(data, problem.loss, problem.intercept, start, radius)


class CudaStepper:
    """Makes steps on a card; what `DenseStepper` is on the CPU.

    Data on the CPU works under Triton's interpreter, for tests.
    """

    # Rows and columns of the tiles that one program holds at a time, and warps per program.
    score_tile: tuple[int, int, int] = (4, 512, 4)
    update_tile: tuple[int, int, int] = (32, 128, 8)

    def __init__(
        self, data: CardData, loss: Loss, intercept: bool, start: Iterate, radius: NDArray[np.float64]
    ) -> None:
        self._device = data.instances.device
        self._torch = torch = torch_for(self._device)
        self._data, self._intercept = data, intercept
        n_problems, width = len(start.coef), data.instances.shape[1]
        self._longest = int(data.offsets.diff().max())
        self._prior = self._zeros(1) if data.prior is None else data.prior
        self._radius = self._put(radius)
        self._loss = self._put(np.array([loss.lam, loss.beta, loss.margin, loss.z_threshold]))
        padded = np.zeros((n_problems, width))
        padded[:, : data.n_features] = start.coef
        self._v, self._b = self._put(padded), self._put(start.intercept)
        self._v_sum, self._b_sum = torch.zeros_like(self._v), torch.zeros_like(self._b)
        self._n_blocks = -(-width // self.update_tile[1])
        self._squares = self._zeros(n_problems, self._n_blocks)
        self._squares[:, 0] = (self._v**2).sum(dim=1)
        self._scale = self._zeros(n_problems)
        self._raw, self._c = self._zeros(n_problems, self._longest), self._zeros(n_problems, self._longest)
        self._steps = self._started_at = start.steps
        self._average_from = np.iinfo(np.int64).max
        self._clock = torch.zeros(5, dtype=torch.int64, device=self._device)
        self._order: Any = None
        self._graph: Any = None

    def run(self, order: NDArray[np.int64], average_from: int) -> None:
        """Make one step for each bag of the order.

        Parameters
        ----------
        order : (n_steps,) bags for all problems together, or (n_problems, n_steps) for each its own
        """
        n_steps = order.shape[-1]
        self._set_order(np.ascontiguousarray(order, dtype=np.int64))
        self._average_from = average_from
        self._clock.copy_(self._torch.tensor([0, n_steps, self._steps, self._started_at, average_from]))
        if self._device.type == "cuda":
            graph = self._recorded()
            for _ in range(-(-n_steps // STEPS_PER_GRAPH)):
                graph.replay()
        else:
            for ahead in range(n_steps):
                self._step(ahead)
        self._steps += n_steps

    def last(self) -> Iterate:
        """The last iterate."""
        v, b = self._projected()
        return Iterate(v.cpu().numpy()[:, : self._data.n_features].copy(), b.cpu().numpy().copy(), self._steps)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of the iterates that count for the average: those of past steps, and the last one."""
        v_sum, b_sum = self._v_sum, self._b_sum
        if self._steps > max(self._average_from, self._started_at):
            v, b = self._projected()
            v_sum, b_sum = v_sum + v, b_sum + b
        return v_sum.cpu().numpy()[:, : self._data.n_features].copy(), b_sum.cpu().numpy()

    def _projected(self) -> tuple[Any, Any]:
        norm = (self._squares.sum(dim=1) + self._b**2).sqrt()
        scale = self._torch.where(norm > self._radius, self._radius / norm, 1.0)
        return self._v * scale[:, None], self._b * scale

    def _step(self, ahead: int) -> None:
        from bagwise.rmi import triton_loops

        data, (n_problems, width) = self._data, self._v.shape
        stride = self._order.stride(0) if self._order.ndim == 2 else 0
        where = (data.instances, data.offsets, self._order)
        rows, columns, warps = self.score_tile
        triton_loops.scores[(-(-self._longest // rows), n_problems)](
            *where, self._v, self._raw, self._clock, ahead, width, self._longest, stride,
            ROWS=rows, COLUMNS=columns, num_warps=warps,
        )  # fmt: skip
        triton_loops.coefficients[(n_problems,)](
            self._raw, self._prior, data.offsets, self._order, data.targets, data.weight, self._radius,
            self._b, self._b_sum, self._squares, self._scale, self._c, self._clock, ahead,
            n_problems, self._n_blocks, self._longest, stride, self._loss,
            HAS_PRIOR=data.prior is not None, INTERCEPT=self._intercept,
            BLOCKS=_power_of_two(self._n_blocks), ROWS=min(512, _power_of_two(self._longest)), num_warps=4,
        )  # fmt: skip
        rows, columns, warps = self.update_tile
        triton_loops.update[(self._n_blocks, n_problems)](
            *where, self._c, self._scale, self._v, self._v_sum, self._squares, self._clock, ahead,
            self._n_blocks, width, self._longest, stride,
            ROWS=rows, COLUMNS=columns, num_warps=warps,
        )  # fmt: skip

    def _recorded(self) -> Any:
        """The graph of many steps; steps beyond the end of the pass do nothing."""
        if self._graph is None:
            torch = self._torch
            n_steps = self._clock[1].clone()
            self._clock[1] = 0  # compile the kernels without making a step
            self._step(0)
            self._clock[1] = n_steps
            torch.cuda.synchronize(self._device)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.device(self._device), torch.cuda.graph(self._graph):
                for ahead in range(STEPS_PER_GRAPH):
                    self._step(ahead)
                self._clock[0].add_(STEPS_PER_GRAPH)
        return self._graph

    def _set_order(self, order: NDArray[np.int64]) -> None:
        """Put the order where the recorded graph looks for it; record anew when it does not fit there."""
        shape = self._order.shape if self._order is not None else None
        if shape is None or len(shape) != order.ndim or shape[-1] < order.shape[-1]:
            self._order, self._graph = self._put(order), None
        else:
            self._order[..., : order.shape[-1]].copy_(self._torch.from_numpy(order))

    def _put(self, array: NDArray) -> Any:
        return self._torch.from_numpy(np.array(array)).to(self._device)

    def _zeros(self, *shape: int) -> Any:
        return self._torch.zeros(shape, dtype=self._torch.float64, device=self._device)


def torch_for(device: Any) -> Any:
    """Torch, once it is sure that it can work on the device."""
    torch = require("torch", extra="gpu")
    require("triton", extra="gpu")
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' was asked for, but torch finds no CUDA card here: use device='cpu'")
    return torch


def _power_of_two(n: int) -> int:
    return 1 << max(0, int(n) - 1).bit_length()
