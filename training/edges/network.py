"""The edge network: the first stages of EfficientNet-Lite0 and a narrow top-down decoder.

The layers are wired once, in `EdgeNet.wire`, against a small set of operations; PyTorch runs it through `TorchOps` and
export.py writes the same wiring as ONNX, so the shipped graph cannot drift from the trained one.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from bagwise.discovery.features.effnet_graph import BLOCKS


@dataclass(frozen=True)
class Shape:
    """What distinguishes one variant of the network from another.

    Attributes
    ----------
    blocks : int
        Inverted-residual blocks kept of EfficientNet-Lite0, of 16: 8 ends stage 4, 11 stage 5, 16 all.
    widths : tuple of int
        Channels of the decoder at strides 2, 4, 8, 16 (and 32).
    repeats : int
        Separable convolutions at each stride of the decoder.
    """

    blocks: int = 8
    widths: tuple[int, ...] = (16, 24, 32, 48)
    repeats: int = 1

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Unit(nn.Module):
    """Convolution, batch norm and, when ``active``, ReLU6; padded as TensorFlow pads even sizes."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True):
        super().__init__()
        before, after = (kernel - stride) // 2, (kernel - stride + 1) // 2
        self.pads = (before, after)
        self.active = active
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before, after = self.pads
        if before == after:
            x = F.conv2d(x, self.conv.weight, None, self.conv.stride, before, 1, self.conv.groups)
        else:
            x = self.conv(F.pad(x, (before, after, before, after)))
        x = self.norm(x)
        return F.relu6(x) if self.active else x

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight and bias of the one convolution that equals convolution and batch norm."""
        gain = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        return self.conv.weight * gain[:, None, None, None], self.norm.bias - self.norm.running_mean * gain


class Block(nn.Module):
    """Inverted residual: expand, filter each channel, project; added to its input where shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        middle = inputs * expansion
        expand = [Unit(inputs, middle, 1)] if expansion > 1 else []
        self.units = nn.ModuleList(
            [*expand, Unit(middle, middle, kernel, stride, groups=middle), Unit(middle, outputs, 1, active=False)]
        )
        self.residual = stride == 1 and inputs == outputs


class Fusion(nn.Module):
    """One step of the decoder: the coarser map, projected and doubled, plus the encoder's map; then smoothing."""

    def __init__(self, coarse: int, skip: int, width: int, repeats: int):
        super().__init__()
        self.from_coarse = Unit(coarse, width, 1, active=False)
        self.from_skip = Unit(skip, width, 1, active=False)
        self.smooth = nn.ModuleList()
        for _ in range(repeats):
            self.smooth += [Unit(width, width, 3, groups=width), Unit(width, width, 1)]


class TorchOps:
    """The operations of the wiring, run by PyTorch."""

    @staticmethod
    def unit(unit: Unit, x: torch.Tensor) -> torch.Tensor:
        return unit(x)

    @staticmethod
    def head(conv: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        return conv(x)

    @staticmethod
    def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b

    @staticmethod
    def double(x: torch.Tensor, *, smooth: bool) -> torch.Tensor:
        if smooth:
            return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return F.interpolate(x, scale_factor=2, mode="nearest")


class EdgeNet(nn.Module):
    """RGB in [0, 255], (n, 3, h, w) with h and w multiples of the stride, to boundary logits (n, 1, h, w)."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.stem = Unit(3, 32, 3, 2)
        self.blocks = nn.ModuleList()
        # The decoder takes what leaves the encoder just before each halving, and its end.
        self.taps: list[int] = []
        tap_channels: list[int] = []
        channels = 32
        plan = [
            (kernel, stride if repeat == 0 else 1, expansion, outputs)
            for repeats, kernel, stride, expansion, outputs in BLOCKS
            for repeat in range(repeats)
        ][: shape.blocks]
        for number, (kernel, stride, expansion, outputs) in enumerate(plan):
            if stride == 2:
                self.taps.append(number - 1)
                tap_channels.append(channels)
            self.blocks.append(Block(channels, outputs, kernel, stride, expansion))
            channels = outputs
        self.taps.append(len(plan) - 1)
        tap_channels.append(channels)
        self.stride = 2 ** len(self.taps)
        widths = shape.widths[: len(self.taps)]
        self.top = nn.ModuleList([Unit(channels, widths[-1], 1), Unit(widths[-1], widths[-1], 5, groups=widths[-1])])
        self.fusions = nn.ModuleList(
            Fusion(widths[level + 1], tap_channels[level], widths[level], shape.repeats)
            for level in reversed(range(len(widths) - 1))
        )
        self.last = Unit(widths[0], 16, 3)
        self.head = nn.Conv2d(16, 1, 1)
        # Side outputs serve training alone: they make every level of the decoder see boundaries.
        self.sides = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in reversed(widths))

    def wire(self, x: Any, ops: Any) -> tuple[Any, list[Any]]:
        """Logits at full size, and the decoder's maps from coarse to fine, through ``ops``."""
        x = ops.unit(self.stem, x)
        maps = []
        for number, block in enumerate(self.blocks):
            inside = x
            for unit in block.units:
                inside = ops.unit(unit, inside)
            x = ops.add(inside, x) if block.residual else inside
            if number in self.taps:
                maps.append(x)
        x = maps.pop()
        for unit in self.top:
            x = ops.unit(unit, x)
        decoded = [x]
        for fusion in self.fusions:
            coarse = ops.double(ops.unit(fusion.from_coarse, x), smooth=False)
            x = ops.add(ops.unit(fusion.from_skip, maps.pop()), coarse)
            for unit in fusion.smooth:
                x = ops.unit(unit, x)
            decoded.append(x)
        x = ops.head(self.head, ops.unit(self.last, x))
        return ops.double(x, smooth=True), decoded

    def forward(self, image: torch.Tensor, sides: bool = False) -> Any:
        size = image.shape[-2:]
        logits, decoded = self.wire((image - 127) / 128, TorchOps)
        if not sides:
            return logits
        extra = [
            F.interpolate(side(x).float(), size=size, mode="bilinear", align_corners=False)
            for side, x in zip(self.sides, decoded)
        ]
        return logits, extra


def load_imagenet(net: EdgeNet, checkpoint: str) -> None:
    """Start the encoder from EfficientNet-Lite0's ImageNet weights.

    The checkpoint lists convolution and batch norm of every layer in network order, as the encoder's units do.
    """
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    values = [value for key, value in state.items() if not key.startswith("_fc") and "tracked" not in key]
    units = [net.stem, *(unit for block in net.blocks for unit in block.units)]
    with torch.no_grad():
        for number, unit in enumerate(units):
            weight, gain, bias, mean, variance = values[5 * number : 5 * number + 5]
            for target, value in (
                (unit.conv.weight, weight),
                (unit.norm.weight, gain),
                (unit.norm.bias, bias),
                (unit.norm.running_mean, mean),
                (unit.norm.running_var, variance),
            ):
                if target.shape != value.shape:
                    shapes = f"{tuple(value.shape)}, the network {tuple(target.shape)}"
                    raise ValueError(f"{checkpoint}: layer {number} has shape {shapes}")
                target.copy_(value)


def load_checkpoint(path: str | Path) -> EdgeNet:
    """The network that train.py saved."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    net = EdgeNet(Shape(**{**saved["shape"], "widths": tuple(saved["shape"]["widths"])}))
    net.load_state_dict({key: value.float() for key, value in saved["state"].items()})
    return net.eval()
