"""Train the figure branch to repeat the teacher's maps; the edge network below it stays as it is.

    python distil.py --voc VOC2007 --bsds BSDS500 --teacher MAPS --edges edges.onnx --imagenet LITE0.pth --out branch.pt

Runs on two CPU cores: one computes the frozen maps of the next batch while the other trains. The learning rate follows
the clock, so a run always ends its schedule within ``--seconds``.
"""

import argparse
import contextlib
import copy
import queue
import threading
import time
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from branch import FigureBranch, load_branch, load_imagenet
from photos import find_images, read_image, read_target
from studio import studio_image
from trunk import Trunk

from bagwise.discovery.features.effnet_weights import read_torch_weights

# Height and width of the batches for images that lie; swapped for those that stand.
SIZES = ((256, 336), (288, 384), (320, 432), (384, 512))
# Share of the images that are made up.
STUDIO = 0.25
Batch = tuple[list[tuple[torch.Tensor, torch.Tensor]], torch.Tensor]


def recolour(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Another saturation, gamma, contrast, brightness and tint."""
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    saturation = rng.uniform(0.4, 1.4) * (rng.random() > 0.1)
    image = cv2.addWeighted(image, saturation, grey, 1 - saturation, 0)
    ramp = (np.arange(256) / 255) ** np.exp(rng.uniform(-0.4, 0.4)) * 255
    ramp = (ramp - 127) * rng.uniform(0.7, 1.2) + 127 + rng.uniform(-20, 20)
    tints = np.clip(ramp[:, None] + rng.uniform(-10, 10, 3), 0, 255)
    return cv2.LUT(image, tints.round().astype(np.uint8)[None])


def draw(path: Path, target: np.ndarray, size: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """One image, mirrored, cut and recoloured at random, and its target at a quarter of the size.

    Little is cut off: the teacher judged the whole image, and what stands out in a small part may be something else.
    """
    image = read_image(path)
    if rng.random() < STUDIO:
        image, target = studio_image(image, target, rng)
    if rng.random() < 0.5:
        image, target = image[:, ::-1], target[:, ::-1]
    (top, left), (bottom, right) = rng.uniform(0, 0.1, (2, 2)) * (rng.random() < 0.7)
    cut = []
    for array in (image, target):
        height, width = array.shape[:2]
        rows = slice(round(top * height), height - round(bottom * height))
        cut.append(np.ascontiguousarray(array[rows, round(left * width) : width - round(right * width)]))
    height, width = size
    image = cv2.resize(cut[0], (width, height), interpolation=cv2.INTER_AREA)
    if rng.random() < 0.7:
        image = recolour(image, rng)
    return image, cv2.resize(cut[1], (width // 4, height // 4), interpolation=cv2.INTER_AREA)


def _channels_last(maps: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(maps).contiguous(memory_format=torch.channels_last)


class Batches:
    """Endless batches, made ahead in a thread of their own."""

    def __init__(self, paths: list[Path], teacher: str, trunk: Trunk, batch: int, seed: int):
        self.targets = {path: read_target(teacher, path) for path in paths}
        standing = {path for path in paths if np.divide(*read_image(path).shape[:2]) > 1}
        self.groups = [[p for p in paths if p not in standing], [p for p in paths if p in standing]]
        self.trunk, self.batch, self.rng = trunk, batch, np.random.default_rng(seed)
        self.ready: queue.Queue[Batch | Exception] = queue.Queue(4)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._fill, daemon=True)
        self.thread.start()

    def _fill(self) -> None:
        try:
            waiting: list[list[Path]] = [[], []]
            share = len(self.groups[1]) / sum(map(len, self.groups))
            while not self.stopped.is_set():
                stands = int(self.rng.random() < share)
                if len(waiting[stands]) < self.batch:
                    group = self.groups[stands]
                    waiting[stands] += [group[i] for i in self.rng.permutation(len(group))]
                chosen, waiting[stands] = waiting[stands][: self.batch], waiting[stands][self.batch :]
                size = SIZES[self.rng.integers(len(SIZES))][:: -1 if stands else 1]
                drawn = [draw(path, self.targets[path], size, self.rng) for path in chosen]
                taps = self.trunk(np.stack([image for image, _ in drawn]))
                target = torch.tensor(np.stack([target for _, target in drawn])[:, None]) / 255
                self.ready.put(([(_channels_last(a), _channels_last(b)) for a, b in taps], target))
        except Exception as error:
            self.ready.put(error)

    def __call__(self) -> Batch:
        made = self.ready.get()
        if isinstance(made, Exception):
            raise made
        return made

    def close(self) -> None:
        """Stop making batches and wait for the one in hand."""
        self.stopped.set()
        while self.thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self.ready.get(timeout=0.1)


def figure_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per pixel plus one minus the soft intersection over union per image, averaged."""
    entropy = F.binary_cross_entropy_with_logits(logits, target)
    figure = torch.sigmoid(logits)
    both = (figure * target).sum((1, 2, 3)) + 1
    either = (figure + target - figure * target).sum((1, 2, 3)) + 1
    return entropy + 0.5 * (1 - both / either).mean()


def train(batches: Batches, branch: FigureBranch, seconds: float, rate: float) -> FigureBranch:
    """The trained branch: a running mean of its weights."""
    branch = branch.to(memory_format=torch.channels_last).train()
    mean = copy.deepcopy(branch).eval()
    known = [*branch.blocks.parameters()]
    new = [p for p in branch.parameters() if not any(p is other for other in known)]
    groups = [{"params": known, "lr": rate * 0.3}, {"params": new, "lr": rate}]
    optimizer = torch.optim.AdamW(groups, weight_decay=1e-3)
    peaks = [group["lr"] for group in groups]
    start, step, log_at, losses = time.monotonic(), 0, 0.0, []
    while (done := (time.monotonic() - start) / seconds) < 1:
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * min(1, (step + 1) / 100) * 0.5 * (1 + np.cos(np.pi * done))
        taps, target = batches()
        logits, sides = branch(taps)
        loss = figure_loss(logits, target)
        losses.append(loss.item())
        for side in sides:
            loss = loss + 0.2 * figure_loss(side, F.interpolate(target, size=side.shape[-2:], mode="area"))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(branch.parameters(), 1.0)
        optimizer.step()
        step += 1
        keep = min(0.995, (step + 1) / (step + 20))
        with torch.no_grad():
            averaged = [t for t in mean.state_dict().values() if t.is_floating_point()]
            current = [t for t in branch.state_dict().values() if t.is_floating_point()]
            torch._foreach_lerp_(averaged, current, 1 - keep)
        if done >= log_at:
            cpu = time.process_time()
            print(f"{done:4.0%} step {step} loss {np.mean(losses[-50:]):.4f} cpu {cpu:.0f} s", flush=True)
            log_at += 0.05
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", required=True, help="folder of VOC2007 train")
    parser.add_argument("--bsds", required=True, help="folder of BSDS500")
    parser.add_argument("--teacher", required=True, help="folder of the maps that teacher.py wrote")
    parser.add_argument("--edges", required=True, help="the edge network's ONNX file")
    parser.add_argument("--imagenet", required=True, help="EfficientNet-Lite0 checkpoint (.pth)")
    parser.add_argument("--start", type=Path, help="a branch of an earlier run to continue from")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.start:
        branch = load_branch(options.start)
    else:
        branch = FigureBranch()
        load_imagenet(branch, read_torch_weights(options.imagenet))
        torch.nn.init.constant_(branch.head.bias, -1.0)
    paths, _ = find_images(options.voc, options.bsds)
    batches = Batches(paths, options.teacher, Trunk(options.edges), options.batch, options.seed)
    branch = train(batches, branch, options.seconds, options.rate)
    batches.close()
    aside = options.out.with_suffix(".part")
    torch.save(branch.state_dict(), aside)
    aside.replace(options.out)


if __name__ == "__main__":
    main()
