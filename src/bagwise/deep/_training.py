"""Training of several members at once, each stopped by bags that it has not seen, and their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bagwise.bags import Bags
from bagwise.deep._networks import Layout, Network, Parameters

# What goes through the network at a time when nothing is learned: little enough that the hidden units stay in the
# cache, and that pooling, whose work is rows times bags, costs little beside the layers.
ROWS_PER_BLOCK = 1 << 12
BAGS_PER_BLOCK = 1 << 8


@dataclass(frozen=True)
class Plan:
    """How to train."""

    epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    device: str
    seed: int


def train(
    network: Network, bags: Bags, target: NDArray[np.bool_], weight: NDArray, held_out: NDArray[np.bool_], plan: Plan
) -> tuple[dict[str, NDArray], NDArray, int]:
    """Train one member for each row of ``target``.

    Parameters
    ----------
    target : (members, n_bags)
    weight : (n_bags,) with mean 1
    held_out : (members, n_bags) the bags that a member does not learn from but is judged by after every pass. A
        member that holds out none is judged by all.

    Returns
    -------
    Parameters as arrays at each member's best pass, (members,) its loss on the held-out bags, and the passes made.
    """
    device = torch.device(plan.device)
    generator = torch.Generator().manual_seed(plan.seed)
    noise = torch.Generator(device=device).manual_seed(plan.seed)
    first = network.initial(bags.n_features, len(target), generator)
    shares, size = target @ weight / weight.sum(), bags.n_instances / len(bags)
    bias = torch.tensor([[network.first_bias(float(share), size)] for share in shares])
    outputs = {name: bias.clone() for name in first if name.startswith("output") and name.endswith("bias")}
    parameters = {name: value.to(device).requires_grad_() for name, value in {**first, **outputs}.items()}
    decayed = [value for name, value in parameters.items() if name.endswith("weight")]
    others = [value for name, value in parameters.items() if not name.endswith("weight")]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": plan.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=plan.learning_rate,
        fused=True,  # one pass over the numbers in place of a dozen
    )
    x = torch.as_tensor(np.asarray(bags.instances, dtype=np.float32), device=device)
    labels = torch.as_tensor(target, device=device)
    learned = torch.as_tensor((~held_out * weight).astype(np.float32), device=device)
    learnt_from = np.flatnonzero(~held_out.all(axis=0))
    judged = np.where(held_out.any(axis=1, keepdims=True), held_out, True)
    looked_at = np.flatnonzero(judged.any(axis=0))
    share = (judged * weight)[:, looked_at]
    judge = torch.as_tensor((share / share.sum(axis=1, keepdims=True)).astype(np.float32), device=device)
    blocks = list(_blocks(bags, looked_at, x))
    best = {name: value.detach().clone() for name, value in parameters.items()}
    best_loss = torch.full((len(target),), torch.inf, device=device)
    best_epoch = torch.zeros(len(target), dtype=torch.int64, device=device)
    epoch = 0
    while epoch < plan.epochs:
        epoch += 1
        order = learnt_from[torch.randperm(len(learnt_from), generator=generator).numpy()]
        for start in range(0, len(order), plan.batch_size):
            chosen = order[start : start + plan.batch_size]
            rows, layout = _batch(bags, chosen, x)
            index = torch.as_tensor(chosen, device=device)
            losses = network.losses(parameters, rows, layout, labels.index_select(1, index), noise)
            # A sum over members, whose parameters are their own: each follows its own gradient.
            ((losses * learned.index_select(1, index)).sum() / len(chosen)).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            loss = torch.zeros_like(best_loss)
            for part, rows, layout in blocks:
                of_bags = network.losses(parameters, rows, layout, labels[:, looked_at[part]], None)
                loss += (of_bags * judge[:, part]).sum(dim=1)
            better = loss < best_loss
            best_loss = torch.where(better, loss, best_loss)
            best_epoch = torch.where(better, epoch, best_epoch)
            for name, value in parameters.items():
                best[name][better] = value.detach()[better]
            if epoch - int(best_epoch.max()) >= plan.patience:
                break
    arrays = {name: value.cpu().numpy() for name, value in best.items()}
    return arrays, best_loss.cpu().numpy().astype(np.float64), epoch


def scores(network: Network, arrays: dict[str, NDArray], bags: Bags, device: str) -> NDArray[np.float64]:
    """(members, n_bags) log-odds, in double precision so that they do not depend on what else is scored."""
    parameters, x = _loaded(arrays, bags, device)
    with torch.no_grad():
        parts = [network.scores(parameters, rows, layout) for _, rows, layout in _blocks(bags, np.arange(len(bags)), x)]
        return torch.cat(parts, dim=1).cpu().numpy()


def attention(network: Network, arrays: dict[str, NDArray], bags: Bags, device: str) -> NDArray[np.float64]:
    """(members, n_instances) attention weights."""
    parameters, x = _loaded(arrays, bags, device)
    with torch.no_grad():
        parts = [
            network.attention(parameters, network.layers(parameters, rows, None)[-1], layout)  # type: ignore[attr-defined]
            for _, rows, layout in _blocks(bags, np.arange(len(bags)), x)
        ]
        return torch.cat(parts, dim=1).cpu().numpy()


def _loaded(arrays: dict[str, NDArray], bags: Bags, device: str) -> tuple[Parameters, torch.Tensor]:
    where = torch.device(device)
    parameters = {name: torch.as_tensor(value, dtype=torch.float64, device=where) for name, value in arrays.items()}
    return parameters, torch.as_tensor(np.asarray(bags.instances, dtype=np.float64), device=where)


def _batch(bags: Bags, chosen: NDArray[np.int64], x: torch.Tensor) -> tuple[torch.Tensor, Layout]:
    """The rows of the chosen bags, and which of them each belongs to."""
    sizes = bags.sizes[chosen]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1]) + np.repeat(bags.offsets[chosen] - (ends - sizes), sizes)
    bag_of_row = torch.as_tensor(np.repeat(np.arange(len(chosen)), sizes), device=x.device)
    return x.index_select(0, torch.as_tensor(rows, device=x.device)), Layout(bag_of_row, len(chosen), x.dtype)


def _blocks(bags: Bags, chosen: NDArray[np.int64], x: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor, Layout]]:
    """The chosen bags in their order, a few at a time: which of the chosen, their rows, and how these lie."""
    ends = np.cumsum(bags.sizes[chosen])
    first = 0
    while first < len(chosen):
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + ROWS_PER_BLOCK, side="right"))
        last = min(max(last, first + 1), first + BAGS_PER_BLOCK)
        yield slice(first, last), *_batch(bags, chosen[first:last], x)
        first = last
