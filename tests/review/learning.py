"""A run one can learn from: boxes on a grid, features in which an object looks like its class and a decoy nearly so."""

from dataclasses import astuple, replace
from pathlib import Path

import numpy as np

import bagwise
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.learn import learn_class
from bagwise.discovery.learning.localize import files_with, localize
from bagwise.discovery.learning.models import Objectness, Recipe
from bagwise.discovery.run.folder import BOXES, RunFolder
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.imageset import ImageSet

WIDTH, HEIGHT = 320, 240


def grid_boxes(count: int, random: np.random.Generator) -> np.ndarray:
    """Boxes of many sizes; the first is the object, the second, far from it, the decoy."""
    corner = random.uniform(0, 0.6, (count, 2)) * [WIDTH, HEIGHT]
    size = random.uniform(0.1, 0.4, (count, 2)) * [WIDTH, HEIGHT]
    boxes = np.hstack([corner, corner + size])
    boxes[0] = [20, 20, 120, 120]
    boxes[1] = [180, 100, 300, 220]
    return boxes.astype(np.float32)


def write_learnable_run(
    folder: Path, *, images: int = 24, boxes: int = 40, dimension: int = 16, steps: int = 2000
) -> RunFolder:
    """Half the images show "cat", half "dog". In cats' images a decoy (say, the sofa) goes with the cat and looks
    a little more striking: without boxes the model cannot know better, with a few decisions it can."""
    random = np.random.default_rng(0)
    directions = np.linalg.qr(random.standard_normal((dimension, dimension)))[0]
    cat, dog, decoy = directions[:3]
    files = [f"{'cat' if i % 2 == 0 else 'dog'}/{i:03d}.jpg" for i in range(images)]
    labels = [(file.split("/")[0],) for file in files]
    settings = Settings(recipe=Recipe(steps=steps, prior_weight=0.0))
    with FeatureStore(folder / "store", {"made": "for a test"}) as store:
        for file, (label,) in zip(files, labels):
            features = 0.12 * random.standard_normal((boxes, dimension))
            features[0] += cat if label == "cat" else dog
            if label == "cat":
                features[1] += 1.3 * decoy
            features /= np.linalg.norm(features, axis=1, keepdims=True)
            box = grid_boxes(boxes, random)
            store.write(file, (WIDTH, HEIGHT), box, np.full(boxes, 0.1), features.astype(np.float32))
    store = FeatureStore(folder / "store")
    source = ImageSet(folder, files, labels)
    prior = Objectness(float(np.log(0.1)), 0.0)
    first = replace(settings.recipe, steps=min(steps, 1000))  # good enough to start from
    models = [learn_class(source, store, label, first, prior) for label in ("cat", "dog")]
    answers = [answer for model in models for answer in localize(store, model, files_with(source, store, model.label))]
    number = {file: i for i, file in enumerate(files, start=1)}
    rows = [(number[a.file], a.label, a.rank, a.kind, *a.box, a.score, a.confidence, a.objectness) for a in answers]
    manifest = {
        "classes": ["cat", "dog"],
        "source": {"root": str(folder / "images")},
        "settings": settings.as_dict(),
        "learnt": {
            "prior_mean": prior.mean,
            "calibration": {model.label: list(astuple(model.calibration)) for model in models},
            "trust": {model.label: model.trust for model in models},
        },
    }
    table = {
        "image_id": list(number.values()),
        "file": files,
        "width": [WIDTH] * images,
        "height": [HEIGHT] * images,
        "labels": [list(names) for names in labels],
    }
    run = RunFolder.create(
        folder, manifest, table, {name: [row[i] for row in rows] for i, name in enumerate(BOXES.names[:-1])}
    )
    for model in models:
        run.model_path(model.label).parent.mkdir(exist_ok=True)
        bagwise.save(model.model, run.model_path(model.label))
    return run


def share_right(run: RunFolder, label: str, *, besides: set[int] = frozenset()) -> float:
    """Share of the class's images, besides those, whose answer is the object."""
    rows = [row for row in run.boxes.to_pylist() if row["label"] == label and row["rank"] == 0]
    judged = [row for row in rows if row["image_id"] not in besides]
    return float(np.mean([row["x1"] == 20 and row["y2"] == 120 for row in judged]))
