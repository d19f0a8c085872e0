"""Learning a class: its model from all its images, its calibration from models that had not seen the images."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bagwise.base import InstanceScorer
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import (
    Agreement,
    Calibration,
    agreement_curve,
    place_log_odds,
    same_place,
)
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
from bagwise.discovery.learning.scoring import presences, score_images
from bagwise.discovery.sources.imageset import ImageSet

FOLDS = 3
FEWEST = 3  # images of a class, and others, that calibration needs
LEAVE_ONE_OUT = 12  # below so many images of a class every one is held out by itself


@dataclass(frozen=True)
class Lesson:
    """What is to be learned of one class.

    Attributes
    ----------
    label : str
    files : list of str
        Images to learn from, those that show the class first.
    shown : bool array (n_files,)
    fold : int array (n_files,)
        Which part each image is held out with when the model is calibrated; all -1 where there are too few.
    recipe : Recipe
    """

    label: str
    files: list[str]
    shown: np.ndarray
    fold: np.ndarray
    recipe: Recipe

    @classmethod
    def of(cls, images: ImageSet, store: FeatureStore, label: str, recipe: Recipe) -> "Lesson":
        shown, absent = examples(images, store, label, recipe.seed)
        n_shown, count = len(shown), len(shown) + len(absent)
        if min(n_shown, len(absent)) < FEWEST:
            fold = np.full(count, -1)
        else:
            folds = n_shown if n_shown < LEAVE_ONE_OUT else FOLDS
            fold = np.concatenate([np.arange(n_shown) % folds, np.arange(len(absent)) % folds])
        return cls(label, shown + absent, np.arange(count) < n_shown, fold, recipe)

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to learn: no method that could, no image that shows the class, or no other."""
        return bool(self.recipe.method == OBJECTNESS_ALONE or self.shown.all() or not self.shown.any())

    def fits(self) -> list[tuple[np.ndarray, int]]:
        """Which images to fit a model to, bool (n_files,), and its steps: all of them, then all but each fold."""
        if self.nothing:
            return []
        quick = max(1, self.recipe.steps // 2)
        rest = [(self.fold != number, quick) for number in range(int(self.fold.max()) + 1)]
        return [(np.ones(len(self.files), bool), self.recipe.steps), *rest]


@dataclass(frozen=True)
class Said:
    """What a model says of the images of the fold that it was learned without, in the order of the lesson.

    Attributes
    ----------
    presence : float array (n,)
        `ScoredImage.presence`.
    odds : float array (n,), agreed : bool array (n,)
        As in `Agreement`; NaN and False for images that do not show the class.
    """

    presence: np.ndarray
    odds: np.ndarray
    agreed: np.ndarray


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
    lesson = Lesson.of(images, store, label, recipe)
    if lesson.nothing:
        return learned(lesson, [], prior, [])
    bags = bags_of(store, lesson.files, prior)
    models = [
        fit_model(replace(recipe, steps=steps), bags[rows], lesson.shown[rows], device) for rows, steps in lesson.fits()
    ]
    del bags  # large, and calibration reads a few images at a time
    said = [said_of_unseen(store, lesson, number, model, prior) for number, model in enumerate(models[1:])]
    return learned(lesson, models, prior, said)


def learned(lesson: Lesson, models: Sequence[InstanceScorer], prior: Objectness, said: Sequence[Said]) -> ClassModel:
    """A class from the models of its `Lesson.fits`: the first one, calibrated on what the others said of the unseen."""
    if lesson.nothing:
        alone = lesson.recipe.method == OBJECTNESS_ALONE
        ranking = Ranking.none() if alone else lesson.recipe.ranking
        return ClassModel(lesson.label, None, Calibration(), prior, ranking, trust=0.0)
    found = _uncalibrated(lesson, models[0], prior)
    if not said:
        return found
    presence = np.empty(len(lesson.files))
    odds, agreed = np.empty(len(lesson.files)), np.empty(len(lesson.files), bool)
    for number, each in enumerate(said):
        rows = lesson.fold == number
        presence[rows], odds[rows], agreed[rows] = each.presence, each.odds, each.agreed
    shown = lesson.shown
    one_by_one = dict(zip(lesson.files, models[1:])) if len(said) == shown.sum() else {}
    return replace(
        found,
        calibration=Calibration.fit(presence, shown),
        held_out=one_by_one,
        agreement=Agreement(odds[shown], agreed[shown]),
    )


def said_of_unseen(store: FeatureStore, lesson: Lesson, number: int, model: InstanceScorer, prior: Objectness) -> Said:
    """What the model that was learned without a fold says of its images."""
    of_class = _uncalibrated(lesson, model, prior)
    rows = np.flatnonzero(lesson.fold == number)
    shown = lesson.shown[rows]
    presence, odds, agreed = np.empty(len(rows)), np.full(len(rows), np.nan), np.zeros(len(rows), bool)
    presence[~shown] = presences(store, of_class, [lesson.files[row] for row in rows[~shown]])
    images = score_images(store, of_class, [lesson.files[row] for row in rows[shown]])
    for place, image in zip(np.flatnonzero(shown), images):
        chosen = int(image.scores.argmax())
        presence[place] = image.presence
        odds[place] = place_log_odds(image.boxes, image.scores, np.array([chosen]))[0]
        by_class, by_figure = image.boxes[image.alone.argmax()], image.boxes[image.figure.argmax()]
        agreed[place] = same_place(by_class, by_figure)
    return Said(presence, odds, agreed)


def _uncalibrated(lesson: Lesson, model: InstanceScorer, prior: Objectness) -> ClassModel:
    trust = trust_in(int(lesson.shown.sum()))
    return ClassModel(lesson.label, model, Calibration(), prior, lesson.recipe.ranking, trust)


def agreed_among(models: Sequence[ClassModel]) -> list[ClassModel]:
    """The classes of a run with the curve of confidence that they have in common: see `agreement_curve`."""
    curve = agreement_curve(model.agreement for model in models if model.agreement is not None)
    return [replace(model, calibration=model.calibration.agreeing(curve)) for model in models]
