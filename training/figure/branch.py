"""The figure branch: a second decoder on the feature maps that the edge network already computes.

Two further blocks of EfficientNet-Lite0 and a coarse stage see the whole image; a narrow decoder then brings the map
back to a quarter of the image's size. Like `EdgeNet` it is wired once, in `FigureBranch.wire`: PyTorch trains that
wiring and attach.py writes it into the file of the edge network, whose own layers are never touched.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from network import Block, TorchOps, Unit
from torch import nn

# Channels of the edge network's maps that the branch reads: (encoder, decoder) at strides 4, 8 and 16.
TAPS = ((24, 32), (40, 48), (112, 64))
WIDTHS = (24, 40, 64)
TOP = 96
# Blocks 11 and 12 of EfficientNet-Lite0 continue where the edge network's encoder ends.
FIRST_BLOCK = 11


def _halve(unit: Unit) -> Unit:
    """Let a unit of stride 2 keep the last row and column of odd maps; even maps see the same pixels as before."""
    before, after = unit.pads
    unit.pads = (before, after + 1)
    return unit


class Fusion(nn.Module):
    """One step of the decoder: the coarser map and both maps of the edge network, projected and added; smoothing."""

    def __init__(self, coarse: int, taps: tuple[int, int], width: int, kernel: int):
        super().__init__()
        self.from_coarse = Unit(coarse, width, 1, active=False)
        self.from_taps = nn.ModuleList(Unit(channels, width, 1, active=False) for channels in taps)
        self.smooth = nn.ModuleList()
        for _ in range(2):
            self.smooth += [Unit(width, width, kernel, groups=width), Unit(width, width, 1)]


class FigureOps(TorchOps):
    """Two operations more than the edge network needs."""

    @staticmethod
    def resize_like(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=like.shape[-2:], mode="bilinear", align_corners=False)

    @staticmethod
    def mean(x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3), keepdim=True)


class FigureBranch(nn.Module):
    """Feature maps of the edge network, fine to coarse, to figure logits (n, 1, h / 4, w / 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(TAPS[-1][0], 192, 5, 2, 6), Block(192, 192, 5, 1, 6)])
        _halve(self.blocks[0].units[1])
        self.top = Unit(192, TOP, 1, active=False)
        self.down = _halve(Unit(TOP, TOP, 5, 2, groups=TOP, active=False))
        self.coarse = nn.ModuleList(Block(TOP, TOP, 5, 1, 4) for _ in range(2))
        self.context = nn.Conv2d(TOP, TOP, 1)
        self.fusions = nn.ModuleList(
            Fusion(coarse, taps, width, kernel)
            for coarse, taps, width, kernel in zip((TOP, *WIDTHS[:0:-1]), TAPS[::-1], WIDTHS[::-1], (5, 3, 3))
        )
        self.head = nn.Conv2d(WIDTHS[0], 1, 1)
        # Side outputs serve training alone.
        self.sides = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in (TOP, *WIDTHS[:0:-1]))

    def wire(self, taps: Any, ops: Any) -> tuple[Any, list[Any]]:
        """Logits at stride 4 and the maps of strides 32, 16 and 8, from ``taps`` ((encoder, decoder), ...)."""
        x = taps[-1][0]
        for block in self.blocks:
            x = _block(block, x, ops)
        x = ops.unit(self.top, x)
        deep = ops.unit(self.down, x)
        for block in self.coarse:
            deep = _block(block, deep, ops)
        deep = ops.add(deep, ops.head(self.context, ops.mean(deep)))
        x = ops.add(x, ops.resize_like(deep, x))
        decoded = []
        for fusion, maps in zip(self.fusions, reversed(taps)):
            decoded.append(x)
            x = ops.resize_like(ops.unit(fusion.from_coarse, x), maps[0])
            for unit, tap in zip(fusion.from_taps, maps):
                x = ops.add(x, ops.unit(unit, tap))
            for unit in fusion.smooth:
                x = ops.unit(unit, x)
        return ops.head(self.head, x), decoded

    def forward(self, taps: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Logits at stride 4, and those of the side outputs at strides 32, 16 and 8."""
        logits, decoded = self.wire(taps, FigureOps)
        return logits, [side(x) for side, x in zip(self.sides, decoded)]


def _block(block: Block, x: Any, ops: Any) -> Any:
    inside = x
    for unit in block.units:
        inside = ops.unit(unit, inside)
    return ops.add(inside, x) if block.residual else inside


def load_imagenet(branch: FigureBranch, weights: dict[str, Any]) -> None:
    """Start the blocks from EfficientNet-Lite0's ImageNet weights (`read_torch_weights`)."""
    names = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
    with torch.no_grad():
        for number, block in enumerate(branch.blocks, FIRST_BLOCK):
            for unit, (conv, norm) in zip(block.units, names, strict=True):
                unit.conv.weight.copy_(torch.tensor(weights[f"_blocks.{number}.{conv}.weight"]))
                for target, part in (
                    (unit.norm.weight, "weight"),
                    (unit.norm.bias, "bias"),
                    (unit.norm.running_mean, "running_mean"),
                    (unit.norm.running_var, "running_var"),
                ):
                    target.copy_(torch.tensor(weights[f"_blocks.{number}.{norm}.{part}"]))


def load_branch(path: str | Path) -> FigureBranch:
    """The branch that distil.py saved."""
    branch = FigureBranch()
    branch.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return branch.eval()
