"""Where is the cloth spoiled? Only "good" and "bad" are known.

Makes pictures of woven cloth; half of them have a stain, a hole or pulled threads. Nobody says where, and no model of
everyday things has a word for it. `bagwise.discover` is told which pictures are bad, and that the good ones show
nothing of the kind. The boxes are compared with where the defects really are. Needs the extra `vision`.
"""

import tempfile
from pathlib import Path

import numpy as np
from figures import NEGATIVE, POSITIVE, command_line, save
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from scipy.ndimage import gaussian_filter

import bagwise
from bagwise.metrics import iou

SIDE = 320
KINDS = ("stain", "hole", "pulled threads")


def cloth(rng: np.random.RandomState) -> np.ndarray:
    """A plain weave in [0, 1], a little askew, unevenly lit, with the noise of a camera."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    angle, period = rng.uniform(-0.05, 0.05), rng.uniform(5.5, 7)
    across, along = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    weave = np.sin(2 * np.pi * across / period) * np.sin(2 * np.pi * along / period)
    light = gaussian_filter(rng.randn(SIDE, SIDE), 40)
    return 0.55 + 0.12 * weave + 0.1 * light / np.abs(light).max() + 0.03 * rng.randn(SIDE, SIDE)


def spoil(image: np.ndarray, kind: str, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The cloth with a defect, and the box around it."""
    y, x = np.mgrid[:SIDE, :SIDE] - rng.randint(60, SIDE - 60, size=2)[:, None, None]
    if kind == "stain":
        angle = np.arctan2(y, x)
        waves = sum(rng.uniform(-0.2, 0.2) * np.cos(k * angle + rng.uniform(0, 6)) for k in (1, 2, 3))
        shape = np.hypot(x, y) < rng.uniform(18, 34) * (1 + waves)
        spoiled, softness = image - 0.22, 3.0
    elif kind == "hole":
        shape = (x / rng.uniform(12, 26)) ** 2 + (y / rng.uniform(10, 20)) ** 2 < 1
        spoiled, softness = np.full_like(image, 0.12), 1.5
    else:
        shape = (np.abs(x) < rng.uniform(25, 50)) & (np.abs(y) < rng.uniform(7, 13))
        spoiled, softness = gaussian_filter(image, 6) + 0.08 * rng.randn(SIDE, 1), 2.0
    soft = gaussian_filter(shape.astype(float), softness)
    rows, columns = np.nonzero(shape)
    box = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], dtype=np.float32)
    return image * (1 - soft) + spoiled * soft, box


def weave_all(root: Path, each: int) -> dict[str, tuple[str, np.ndarray]]:
    """Write the pictures into root/bad and root/good; what and where the defects are."""
    rng = np.random.RandomState(0)
    truth = {}
    for i in range(2 * each):
        image, name = cloth(rng), f"{'good' if i % 2 else 'bad'}/{i:03d}.png"
        if name.startswith("bad"):
            kind = KINDS[rng.randint(len(KINDS))]
            image, box = spoil(image, kind, rng)
            truth[name] = (kind, box)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 * np.clip(image, 0, 1)).astype(np.uint8)).save(root / name)
    return truth


def main() -> None:
    options = command_line(__doc__, each=60)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "cloth"
        truth = weave_all(root, options.each)
        found = bagwise.discover(root, output=Path(scratch) / "run", negative=["good"])
        boxes = {box.file: np.array(box[2:6], dtype=np.float32) for box in found.boxes}
        hits = {name: bool(iou(boxes[name][None], box[None])[0, 0] > 0.5) for name, (_, box) in truth.items()}
        for kind in KINDS:
            right = [hits[name] for name in truth if truth[name][0] == kind]
            print(f"{kind}: {sum(right)} of {len(right)} boxes overlap the defect by more than half")
        print(f"all: {sum(hits.values())} of {len(hits)}, {np.mean(list(hits.values())):.0%}")
        figure = Figure(figsize=(8, 4.2), layout="constrained")
        for panel, name in zip(figure.subplots(2, 4).flat, truth):
            panel.imshow(Image.open(root / name), cmap="gray", vmin=0, vmax=255)
            for (x1, y1, x2, y2), colour in ((truth[name][1], NEGATIVE), (boxes[name], POSITIVE)):
                panel.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=colour, linewidth=2))
            panel.set_title(truth[name][0], fontsize=9)
            panel.set_axis_off()
        save(figure, options.output / "defects.png", colours=24)


if __name__ == "__main__":
    main()
