"""Train one edge network on BSDS500.

    python train.py --data BSDS500 --imagenet LITE0.pth --out OUT --variant '{"name": "a"}' --seconds 240 [--all]

Without ``--all`` every sixth image of train + val is kept back, for evaluate.py to compare variants on.
The learning rate follows the clock, so a run always ends its schedule within ``--seconds``.
"""

import argparse
import copy
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from data import Example, held_out, load_split, soft_target
from network import EdgeNet, Shape, load_imagenet


@dataclass
class Variant:
    """One setting of everything that was compared."""

    name: str
    shape: dict = field(default_factory=dict)
    sigma: float = 1.5
    loss: str = "soft"
    positive_weight: float = 1.0
    rate: float = 1e-3
    encoder_rate: float = 0.3
    batch: int = 16
    crop: int = 320
    zoom: tuple[float, float] = (0.7, 1.5)
    decay: float = 1e-4
    seed: int = 0


class Pool:
    """All images on the device, from which randomly warped crops are drawn."""

    def __init__(self, examples: list[Example], sigma: float, device: torch.device):
        images, targets, turned = [], [], []
        for example in examples:
            image, target = example.image, soft_target(example.boundaries, sigma)
            # All lie on their side so that they stack; `turned` undoes it when drawing.
            upright = image.shape[0] > image.shape[1]
            images.append(np.rot90(image) if upright else image)
            targets.append(np.rot90(target) if upright else target)
            turned.append(upright)
        self.images = torch.tensor(np.stack(images)).permute(0, 3, 1, 2).contiguous().to(device)
        self.targets = torch.tensor(np.stack(targets) * 255).round().byte()[:, None].to(device)
        self.turned = torch.tensor(turned, device=device)

    def draw(self, count: int, crop: int, zoom: tuple[float, float]) -> tuple[torch.Tensor, torch.Tensor]:
        """Images in [0, 255] (count, 3, crop, crop) and targets in [0, 1] (count, 1, crop, crop)."""
        device = self.images.device
        uniform = lambda low, high: torch.rand(count, device=device) * (high - low) + low  # noqa: E731
        chosen = torch.randint(len(self.images), (count,), device=device)
        height, width = self.images.shape[-2:]
        scale = torch.exp(uniform(float(np.log(zoom[0])), float(np.log(zoom[1]))))
        angle = torch.where(uniform(0, 1) < 0.5, uniform(-0.2, 0.2), uniform(-np.pi, np.pi))
        angle = angle + self.turned[chosen] * (np.pi / 2)
        flip = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
        reach = crop / 2 / scale
        centre_x = uniform(-1, 1) * (1 - reach * 2 / width).clamp(min=0.0)
        centre_y = uniform(-1, 1) * (1 - reach * 2 / height).clamp(min=0.0)
        cos, sin = torch.cos(angle) * reach, torch.sin(angle) * reach
        affine = torch.stack(
            [
                torch.stack([cos * flip / (width / 2), -sin / (width / 2), centre_x], -1),
                torch.stack([sin * flip / (height / 2), cos / (height / 2), centre_y], -1),
            ],
            1,
        )
        grid = F.affine_grid(affine, [count, 3, crop, crop], align_corners=False)
        sample = lambda maps: F.grid_sample(  # noqa: E731
            maps[chosen].float(), grid, mode="bilinear", padding_mode="reflection", align_corners=False
        )
        return self._recolour(sample(self.images)), sample(self.targets) / 255

    @staticmethod
    def _recolour(images: torch.Tensor) -> torch.Tensor:
        count, device = len(images), images.device
        draw = lambda low, high, channels=1: (  # noqa: E731
            torch.rand(count, channels, 1, 1, device=device) * (high - low) + low
        )
        grey = images.mean(1, keepdim=True)
        saturation = draw(0.4, 1.4) * (draw(0, 1) > 0.1)
        images = grey + (images - grey) * saturation
        images = (images.clamp(0, 255) / 255) ** torch.exp(draw(-0.4, 0.4)) * 255
        images = (images - 127) * draw(0.7, 1.3) + 127 + draw(-25, 25) + draw(-12, 12, 3)
        images = images + torch.randn_like(images) * draw(-6, 6).clamp(min=0)
        return images.clamp(0, 255)


def boundary_loss(logits: torch.Tensor, target: torch.Tensor, variant: Variant) -> torch.Tensor:
    """Cross-entropy against the consensus, per pixel, averaged."""
    logits = logits.float()
    if variant.loss == "soft":
        weight = 1 + (variant.positive_weight - 1) * target
        return F.binary_cross_entropy_with_logits(logits, target, weight)
    # "balanced": sure boundaries against sure background, each half of the loss; what few annotators drew is ignored.
    positive, negative = target > 0.3, target < 0.05
    share = positive.sum() / (positive.sum() + negative.sum()).clamp(min=1)
    weight = positive * (1 - share) + negative * (1.1 * share)
    return F.binary_cross_entropy_with_logits(logits, positive.float(), weight) * 4


def train(variant: Variant, pool: Pool, imagenet: str, seconds: float, device: torch.device) -> tuple[EdgeNet, int]:
    """The trained network (a running mean of its weights), and the steps taken."""
    torch.manual_seed(variant.seed)
    net = EdgeNet(Shape(**variant.shape))
    load_imagenet(net, imagenet)
    torch.nn.init.constant_(net.head.bias, -3.0)
    net = net.to(device, memory_format=torch.channels_last).train()
    mean = copy.deepcopy(net).eval()
    encoder = [*net.stem.parameters(), *net.blocks.parameters()]
    known = {id(p) for p in encoder}
    groups = [
        {"params": encoder, "lr": variant.rate * variant.encoder_rate},
        {"params": [p for p in net.parameters() if id(p) not in known], "lr": variant.rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=variant.decay, fused=device.type == "cuda")
    peaks = [group["lr"] for group in groups]
    start, step, log_at = time.monotonic(), 0, 0.0
    while (done := (time.monotonic() - start) / seconds) < 1:
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * min(1, (step + 1) / 200) * 0.5 * (1 + np.cos(np.pi * done))
        images, target = pool.draw(variant.batch, variant.crop, variant.zoom)
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits, sides = net(images, sides=True)
        loss = boundary_loss(logits, target, variant)
        for side in sides:
            loss = loss + 0.2 * boundary_loss(side, target, variant)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        step += 1
        keep = min(0.999, (step + 1) / (step + 20))
        with torch.no_grad():
            averaged = [t for t in mean.state_dict().values() if t.is_floating_point()]
            current = [t for t in net.state_dict().values() if t.is_floating_point()]
            torch._foreach_lerp_(averaged, current, 1 - keep)
        if done >= log_at:
            print(f"{variant.name} {done:4.0%} step {step} loss {loss.item():.4f}", flush=True)
            log_at += 0.1
    return mean, step


def save(net: EdgeNet, variant: Variant, steps: int, path: Path) -> None:
    """Write weights in float16 with the shape to rebuild them."""
    state = {k: v.cpu().half() if v.is_floating_point() else v.cpu() for k, v in net.state_dict().items()}
    torch.save({"shape": net.shape.as_dict(), "state": state, "variant": asdict(variant), "steps": steps}, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of BSDS500")
    parser.add_argument("--imagenet", required=True, help="EfficientNet-Lite0 checkpoint (.pth)")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--variant", required=True, help="JSON of the fields of Variant")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--all", action="store_true", help="train on all of train + val")
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    variant = Variant(**json.loads(options.variant))
    examples = load_split(options.data, "train", "val")
    if not options.all:
        examples, _ = held_out(examples)
    net, steps = train(variant, Pool(examples, variant.sigma, device), options.imagenet, options.seconds, device)
    options.out.mkdir(parents=True, exist_ok=True)
    save(net, variant, steps, options.out / f"{variant.name}.pt")


if __name__ == "__main__":
    main()
