"""Run folders for tests: small pictures with known objects, and answers of known quality."""

from pathlib import Path

import numpy as np
from PIL import Image

from bagwise.discovery.run.folder import RunFolder
from bagwise.metrics.truth import TruthBox

FILES = (
    "cat/photo one.jpg",
    "cat/deep/photo one.jpg",  # the same basename in another folder
    "cat/Кошка №3.png",
    "dog/photo one.jpg",
    "dog/犬 & <b>'quoted'\".jpg",
    "dog/tall.webp",
    "both/a%20b#c.bmp",
    "both/photo one.jpg",
)
LABELS = (("cat",), ("cat",), ("cat",), ("dog",), ("dog",), ("dog",), ("cat", "dog"), ("cat", "dog"))


def paint_images(root: Path, files=FILES, seed: int = 0) -> list[tuple[int, int]]:
    """Write a picture for every name: noise with a bright patch; return (width, height) of each."""
    random = np.random.default_rng(seed)
    sizes = []
    for file in files:
        width, height = (
            (120, 200) if "tall" in file else (int(random.integers(140, 260)), int(random.integers(100, 180)))
        )
        pixels = random.integers(0, 90, (height, width, 3), dtype=np.uint8)
        pixels[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4] += np.uint8(120)
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        sizes.append((width, height))
    return sizes


def make_run(
    folder: Path,
    *,
    files=FILES,
    labels=LABELS,
    sizes: list[tuple[int, int]] | None = None,
    root: str | None = None,
    alternatives: int = 4,
    steps=(0, 100, 500, 1000, 2000),
    seed: int = 0,
    **manifest,
) -> tuple[RunFolder, dict[str, list[TruthBox]]]:
    """A run over painted pictures and its truth.

    Every image has one true object per label, in the middle; answers stray from it, the more the
    lower their confidence.
    """
    random = np.random.default_rng(seed)
    if sizes is None:
        sizes = paint_images(folder / "images", files, seed)
        root = "../images"
    truth: dict[str, list[TruthBox]] = {file: [] for file in files}
    rows: list[tuple] = []
    shots: list[tuple] = []
    for number, (file, names, (width, height)) in enumerate(zip(files, labels, sizes, strict=True), start=1):
        for shift, label in enumerate(names):
            true = np.array([width / 4, height / 4, 3 * width / 4, 3 * height / 4]).round() + 3 * shift
            truth[file].append(TruthBox(label, tuple(true)))
            confidence = float(random.uniform(0.05, 0.98))
            for rank in range(1 + alternatives):
                box = _stray(random, true, (1 - confidence) * 0.6 + rank * 0.15, width, height)
                kind = "object" if rank == 0 else "alternative"
                sure = confidence * 0.7**rank
                rows.append((number, label, rank, kind, *box, 4 * sure - 2, sure, random.uniform(0, 0.3)))
            for step in steps:
                shots.append((step, number, label, *_stray(random, true, 1 / (1 + step / 300), width, height)))
    names = ["image_id", "label", "rank", "kind", "x1", "y1", "x2", "y2", "score", "confidence", "objectness"]
    boxes = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns = ["steps", "image_id", "label", "x1", "y1", "x2", "y2"]
    snapshots = dict(zip(columns, map(list, zip(*shots, strict=True)), strict=True)) if steps else None
    images = {
        "image_id": list(range(1, len(files) + 1)),
        "file": list(files),
        "width": [width for width, _ in sizes],
        "height": [height for _, height in sizes],
        "labels": [list(names) for names in labels],
    }
    described = {
        "classes": sorted({label for names in labels for label in names}),
        "source": {"root": root, "kind": "folders"},
        "settings": {"lam": 0.003, "beta": 5, "margin": 1.2, "max_boxes": 400, "backbone": "EfficientNet-Lite0"},
        "timings": {"edges": 1.25, "proposals": 2.5, "features": 1.75, "learning": 0.5},
        "hashes": {"backbone": "ab" * 32, "images": "cd" * 32},
        "problems": [{"file": "cat/broken.jpg", "reason": "the file is empty"}],
        **manifest,
    }
    return RunFolder.create(folder / "run", described, images, boxes, snapshots), truth


def _stray(random, box, much, width, height):
    sides = np.tile(box[2:] - box[:2], 2)
    moved = np.clip(box + random.normal(size=4) * sides * 0.25 * much, 0, [width, height, width, height])
    x1, x2 = sorted(moved[[0, 2]])
    y1, y2 = sorted(moved[[1, 3]])
    x1, y1 = min(x1, width - 4), min(y1, height - 4)
    return float(x1), float(y1), float(max(x2, x1 + 4)), float(max(y2, y1 + 4))
