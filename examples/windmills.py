"""Where in the images are the windmills?

Finds the boxes of some of the embedded images, learns from which of them show a windmill, and frames the answer.
Images are bright where the boxes lie that the model likes, and dark elsewhere. Needs the extra `vision`.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from figures import POSITIVE, output_folder, save
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import bagwise
from bagwise.datasets import load_demo_photos
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.models import Objectness, bags_of
from bagwise.discovery.run.pipeline import discover
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.images import read_image

CLASSES = {"windmill": 14, "fish": 10}
SHOWN = 6


def labels_table(root: Path, path: Path) -> None:
    """Name some images of some classes."""
    lines = ["file,label"]
    for name, count in CLASSES.items():
        lines += [f"{name}/{photo.name},{name}" for photo in sorted((root / name).iterdir())[:count]]
    path.write_text("\n".join(lines) + "\n")


def heat_map(shape: tuple[int, int], boxes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Each pixel's share of the weight of the boxes that cover it."""
    heat = np.zeros(shape)
    for (x1, y1, x2, y2), w in zip(boxes.round().astype(int), weight):
        heat[y1:y2, x1:x2] += w / max((x2 - x1) * (y2 - y1), 1)
    return np.sqrt(heat / heat.max())  # so that the less liked can be seen too


def main() -> None:
    folder = output_folder(__doc__)
    root = load_demo_photos().root
    with tempfile.TemporaryDirectory() as scratch:
        labels_table(root, Path(scratch) / "labels.csv")
        settings = Settings(max_boxes=200)
        run = discover(root, Path(scratch) / "run", labels=Path(scratch) / "labels.csv", settings=settings, say=print)
        store, model = FeatureStore(run.store_path), bagwise.load(run.model_path("windmill"))
        prior = Objectness(run.manifest["learnt"]["prior_mean"], settings.recipe.prior_weight)
        answers = run.boxes.filter(pc.equal(run.boxes["kind"], "object"))
        frames = dict(zip(answers["image_id"].to_pylist(), run.corners(answers)))
        windmills = [row for row in run.images.to_pylist() if row["file"].startswith("windmill")][:SHOWN]
        figure = Figure(figsize=(9, 5), layout="constrained")
        for panel, row in zip(figure.subplots(2, SHOWN // 2).flat, windmills):
            image, boxes = read_image(root / row["file"]), store.boxes(row["file"])[0]
            scores = model.instance_scores(bags_of(store, [row["file"]], prior))
            liked = heat_map(image.shape[:2], boxes, np.exp(scores - scores.max()))
            x1, y1, x2, y2 = frames[row["image_id"]]
            panel.imshow((image * (0.3 + 0.7 * liked[..., None])).astype(np.uint8))
            panel.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=POSITIVE, linewidth=2.5))
            panel.set_axis_off()
        save(figure, folder / "windmills.png")


if __name__ == "__main__":
    main()
