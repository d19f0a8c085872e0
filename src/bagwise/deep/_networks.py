"""The networks, written for several members at once: every parameter has a leading axis of members.

Members differ in their starting weights and in the bags they are trained on, but see the same batches, so one matrix
product does the work of all of them. Rows of a batch lie flat; `Layout` knows which bag each belongs to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Parameters = dict[str, Tensor]


class Layout:
    """Which of n_bags bags each row belongs to, and sums and maxima over the rows of each, which lie side by side."""

    def __init__(self, bag_of_row: Tensor, n_bags: int, dtype: torch.dtype) -> None:
        # A product with this matrix adds in a fixed order, where scattered additions on a GPU do not.
        self.member = (torch.arange(n_bags, device=bag_of_row.device)[:, None] == bag_of_row).to(dtype)
        self.sizes = self.member.sum(dim=1)

    def total(self, values: Tensor) -> Tensor:
        """(members, bags, ...) sums of (members, rows, ...)."""
        return values @ self.member.T if values.dim() == 2 else self.member @ values

    def highest(self, values: Tensor) -> Tensor:
        """(members, bags, ...) maxima of (members, rows, ...)."""
        lengths = self.sizes.long().expand(len(values), -1).contiguous()
        return torch.segment_reduce(values, "max", lengths=lengths, axis=1, unsafe=True)

    def mean(self, values: Tensor) -> Tensor:
        return self.total(values) / (self.sizes if values.dim() == 2 else self.sizes[:, None])

    def log_mean_exp(self, values: Tensor) -> Tensor:
        """Between the mean and the maximum of (members, rows)."""
        top = self.spread(self.highest(values.detach()))
        return self.highest(values.detach()) + torch.log(self.mean(torch.exp(values - top)))

    def spread(self, values: Tensor) -> Tensor:
        """(members, rows) the value of each row's bag."""
        return values @ self.member

    def softmax(self, values: Tensor) -> Tensor:
        """(members, rows) softmax over the rows of each bag."""
        shifted = torch.exp(values - self.spread(self.highest(values.detach())))
        return shifted / self.spread(self.total(shifted))


def linear(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    """(members, rows, out) from x of shape (rows, in) or (members, rows, in)."""
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return torch.baddbmm(bias[:, None, :], x.expand(len(weight), -1, -1), weight)


def add_linear(
    parameters: Parameters, name: str, n_members: int, n_in: int, n_out: int, generator: torch.Generator
) -> None:
    """Glorot's uniform weights and biases of zero."""
    bound = (6 / (n_in + n_out)) ** 0.5
    draw = torch.rand(n_members, n_in, n_out, generator=generator)
    parameters[f"{name}.weight"] = (2 * draw - 1) * bound
    parameters[f"{name}.bias"] = torch.zeros(n_members, n_out)


@dataclass(frozen=True)
class Network:
    """Hidden layers of rectified units; subclasses say how rows become the log-odds of a bag."""

    hidden: tuple[int, ...]
    dropout: float

    def initial(self, n_features: int, n_members: int, generator: torch.Generator) -> Parameters:
        """Random weights; every bias is zero."""
        parameters: Parameters = {}
        for i, (n_in, n_out) in enumerate(zip((n_features, *self.hidden), self.hidden)):
            add_linear(parameters, f"hidden{i}", n_members, n_in, n_out, generator)
        add_linear(parameters, "output", n_members, self.hidden[-1], 1, generator)
        return parameters

    def first_bias(self, share: float, size: float) -> float:
        """The output's bias at which bags of so many instances that tell nothing are positive with this probability.

        From zero, a network would have to find out first how rare positive bags are, and might be stopped before it
        has looked at anything else.
        """
        return math.log(share / (1 - share))

    def layers(self, parameters: Parameters, x: Tensor, generator: torch.Generator | None) -> list[Tensor]:
        """Activations of every hidden layer; with a generator some units are dropped, as in training."""
        activations = []
        for i in range(len(self.hidden)):
            x = functional.relu(linear(parameters, f"hidden{i}", x))
            if generator is not None and self.dropout > 0:
                kept = torch.rand(x.shape, generator=generator, device=x.device) >= self.dropout
                x = x * kept / (1 - self.dropout)
            activations.append(x)
        return activations

    def bag_logits(
        self, parameters: Parameters, x: Tensor, layout: Layout, generator: torch.Generator | None = None
    ) -> list[Tensor]:
        """(members, bags) log-odds; where there are several they are branches whose mean decides."""
        raise TypeError(f"{type(self).__name__} does not score bags")

    def losses(
        self, parameters: Parameters, x: Tensor, layout: Layout, target: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """(members, bags) loss of each bag: the cross-entropy, mean over the branches."""
        branches = self.bag_logits(parameters, x, layout, generator)
        return torch.stack([functional.softplus(torch.where(target, -z, z)) for z in branches]).mean(dim=0)

    def scores(self, parameters: Parameters, x: Tensor, layout: Layout) -> Tensor:
        """(members, bags) log-odds."""
        return torch.stack(self.bag_logits(parameters, x, layout)).mean(dim=0)


@dataclass(frozen=True)
class InstanceNetwork(Network):
    """mi-Net: log-odds of instances, pooled."""

    pooling: str

    def bag_logits(
        self, parameters: Parameters, x: Tensor, layout: Layout, generator: torch.Generator | None = None
    ) -> list[Tensor]:
        z = linear(parameters, "output", self.layers(parameters, x, generator)[-1]).squeeze(-1)
        return [{"max": layout.highest, "mean": layout.mean, "lse": layout.log_mean_exp}[self.pooling](z)]


@dataclass(frozen=True)
class EmbeddingNetwork(Network):
    """MI-Net: hidden units pooled over the bag, then classified; with deep supervision after every layer."""

    pooling: str
    deep_supervision: bool

    def initial(self, n_features: int, n_members: int, generator: torch.Generator) -> Parameters:
        parameters = super().initial(n_features, n_members, generator)
        if self.deep_supervision:
            for i, width in enumerate(self.hidden[:-1]):
                add_linear(parameters, f"output{i}", n_members, width, 1, generator)
        return parameters

    def bag_logits(
        self, parameters: Parameters, x: Tensor, layout: Layout, generator: torch.Generator | None = None
    ) -> list[Tensor]:
        pool = {"max": layout.highest, "mean": layout.mean}[self.pooling]
        layers = self.layers(parameters, x, generator)
        branches = [linear(parameters, "output", pool(layers[-1])).squeeze(-1)]
        if self.deep_supervision:
            branches += [linear(parameters, f"output{i}", pool(h)).squeeze(-1) for i, h in enumerate(layers[:-1])]
        return branches


@dataclass(frozen=True)
class AttentionNetwork(Network):
    """Attention MIL: hidden units averaged over the bag with weights that are learned."""

    attention_units: int
    gated: bool

    def initial(self, n_features: int, n_members: int, generator: torch.Generator) -> Parameters:
        parameters = super().initial(n_features, n_members, generator)
        for name in ("attend", "gate") if self.gated else ("attend",):
            add_linear(parameters, name, n_members, self.hidden[-1], self.attention_units, generator)
        add_linear(parameters, "attention", n_members, self.attention_units, 1, generator)
        return parameters

    def attention(self, parameters: Parameters, h: Tensor, layout: Layout) -> Tensor:
        """(members, rows) weights that sum to one in every bag."""
        units = torch.tanh(linear(parameters, "attend", h))
        if self.gated:
            units = units * torch.sigmoid(linear(parameters, "gate", h))
        return layout.softmax(linear(parameters, "attention", units).squeeze(-1))

    def bag_logits(
        self, parameters: Parameters, x: Tensor, layout: Layout, generator: torch.Generator | None = None
    ) -> list[Tensor]:
        h = self.layers(parameters, x, generator)[-1]
        weight = self.attention(parameters, h, layout)
        return [linear(parameters, "output", layout.total(weight[..., None] * h)).squeeze(-1)]


@dataclass(frozen=True)
class RelaxedNetwork(Network):
    """RMI-SVM's objective on top of hidden layers: noisy-OR of the bag, hinge on the instances."""

    beta: float
    margin: float

    def first_bias(self, share: float, size: float) -> float:
        # Each instance takes its part of the bag's -log(1 - p): from zero, all large bags would be nearly certain.
        return math.log(math.expm1(-math.log1p(-share) / size))

    def _instances(self, parameters: Parameters, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return linear(parameters, "output", self.layers(parameters, x, generator)[-1]).squeeze(-1)

    def bag_logits(
        self, parameters: Parameters, x: Tensor, layout: Layout, generator: torch.Generator | None = None
    ) -> list[Tensor]:
        return [noisy_or_log_odds(self._instances(parameters, x, generator), layout)]

    def losses(
        self, parameters: Parameters, x: Tensor, layout: Layout, target: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        z = self._instances(parameters, x, generator)
        log_odds = noisy_or_log_odds(z, layout)
        bag_loss = functional.softplus(torch.where(target, -log_odds, log_odds))
        # With the threshold at one half the label that an instance gets is the sign of its score.
        return self.beta * bag_loss + layout.mean(functional.relu(self.margin - z.abs()))


def noisy_or_log_odds(z: Tensor, layout: Layout) -> Tensor:
    """log(exp(S) - 1) with S = Σ softplus(z): the log-odds of 1 - Π (1 - p)."""
    total = layout.total(functional.softplus(z)).clamp_min(torch.finfo(z.dtype).tiny)
    return total + torch.log(-torch.expm1(-total))
