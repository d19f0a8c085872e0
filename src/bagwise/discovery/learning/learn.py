"""Learning a class: its model from all its images, its calibration from models that had not seen the images."""

from dataclasses import replace

import numpy as np

from bagwise.bags import Bags
from bagwise.base import InstanceScorer
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import Calibration, place_log_odds, same_place
from bagwise.discovery.learning.models import (
    OBJECTNESS_ALONE,
    ClassModel,
    Objectness,
    Recipe,
    bags_of,
    examples,
    fit_model,
    trust_in,
)
from bagwise.discovery.learning.ranking import Ranking
from bagwise.discovery.learning.scoring import score_images
from bagwise.discovery.sources.imageset import ImageSet

FOLDS = 3
FEWEST = 3  # images of a class, and others, that calibration needs
LEAVE_ONE_OUT = 12  # below so many images of a class every one is held out by itself


def learn_class(
    images: ImageSet, store: FeatureStore, label: str, recipe: Recipe, prior: Objectness, device: str = "cpu"
) -> ClassModel:
    """Learn one class and calibrate it.

    Parameters
    ----------
    images : ImageSet
    store : FeatureStore
    label : str
        The class.
    recipe : Recipe
    prior : Objectness
    device : {"cpu", "cuda"}, default="cpu"
        Where RMI-SVM learns.
    """
    shown, absent = examples(images, store, label, recipe.seed)
    if recipe.method == OBJECTNESS_ALONE or not absent or not shown:
        ranking = Ranking.none() if recipe.method == OBJECTNESS_ALONE else recipe.ranking
        return ClassModel(label, None, Calibration(), prior, ranking, trust=0.0)
    bags = bags_of(store, shown + absent, prior)
    y = np.arange(len(bags)) < len(shown)
    found = ClassModel(
        label, fit_model(recipe, bags, y, device), Calibration(), prior, recipe.ranking, trust_in(len(shown))
    )
    if min(len(shown), len(absent)) < FEWEST:
        return found
    quick = replace(recipe, steps=max(1, recipe.steps // 2))
    calibration, held_out = _calibrate(store, found, shown + absent, bags, y, quick, device)
    return replace(found, calibration=calibration, held_out=held_out)


def _calibrate(
    store: FeatureStore, model: ClassModel, files: list[str], bags: Bags, y: np.ndarray, recipe: Recipe, device: str
) -> tuple[Calibration, dict[str, InstanceScorer]]:
    """Ask models about images that they had not seen; those that show the class come first.

    Returns
    -------
    calibration : Calibration
    held_out : dict of str to InstanceScorer
        The models, by the image that each was learned without, where every image was left out by itself.
    """
    n_shown = int(y.sum())
    folds = n_shown if n_shown < LEAVE_ONE_OUT else FOLDS
    fold = np.concatenate([np.arange(n_shown) % folds, np.arange(len(y) - n_shown) % folds])
    presence = np.empty(len(y))
    odds, agreed = np.empty(n_shown), np.empty(n_shown, bool)
    models: dict[str, InstanceScorer] = {}
    for number in range(folds):
        rest = fold != number
        other = replace(model, model=fit_model(recipe, bags[rest], y[rest], device))
        if folds == n_shown and other.model is not None:
            models[files[number]] = other.model
        held_out = np.flatnonzero(~rest)
        for bag, image in zip(held_out, score_images(store, other, [files[bag] for bag in held_out])):
            chosen = int(image.scores.argmax())
            presence[bag] = image.presence
            if y[bag]:
                odds[bag] = place_log_odds(image.boxes, image.scores, np.array([chosen]))[0]
                by_class, by_figure = image.boxes[image.alone.argmax()], image.boxes[image.figure.argmax()]
                agreed[bag] = same_place(by_class, by_figure)
    return Calibration.fit(presence, y, odds, agreed), models
