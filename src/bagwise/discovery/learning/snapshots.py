"""The answers in the course of learning, for figures of how they settle."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import scores_in_parts
from bagwise.discovery.learning.models import RMI, Objectness, Recipe, bags_of, examples, make_model
from bagwise.discovery.sources.imageset import ImageSet

STEPS = (0, 100, 500, 1000, 2000)

Row = tuple[int, str, np.ndarray]


def snapshots_of_class(
    images: ImageSet, store: FeatureStore, label: str, recipe: Recipe, prior: Objectness, steps: Sequence[int] = STEPS
) -> list[Row]:
    """The best box of each image after some steps: rows (steps, file, box (4,)).

    RMI-SVM continues from the same draws, so these are points of one path; before the first step there is only the
    prior. Other methods have no steps, and no snapshots.
    """
    shown, absent = examples(images, store, label, recipe.seed)
    if recipe.method != RMI or not shown or not absent:
        return []
    bags = bags_of(store, shown + absent, prior)
    y = np.arange(len(bags)) < len(shown)
    positive = bags[: len(shown)]
    rows: list[Row] = []
    for count in steps:
        if count == 0:
            scores = np.zeros(positive.n_instances) if positive.prior is None else positive.prior
        else:
            model = make_model(replace(recipe, steps=count, average=False)).fit(bags, y)
            scores = scores_in_parts(model, positive)
        for file, values in zip(shown, positive.split(scores)):
            rows.append((count, file, store.boxes(file)[0][int(np.argmax(values))]))
    return rows
