"""What discovery does with a feature store, cut into tasks that any executor can run: learning and finding classes.

A task is small and holds names, not features, so that it can travel to where the features are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise.base import InstanceScorer
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.learn import Lesson, Said, learn_class, said_of_unseen
from bagwise.discovery.learning.localize import Answer, files_with, localize, rivals_of
from bagwise.discovery.learning.models import RMI, ClassModel, Objectness, Recipe, example_rows
from bagwise.discovery.learning.scoring import FILES_AT_ONCE, Rivals
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.imageset import ImageSet


@dataclass(frozen=True)
class LearnTask:
    """A class to be learned from some images."""

    label: str
    examples: ImageSet
    recipe: Recipe
    prior: Objectness
    device: str

    def lesson(self, store: FeatureStore) -> Lesson:
        """What exactly is to be learned."""
        return Lesson.of(self.examples, store, self.label, self.recipe)

    @property
    def on_card(self) -> bool:
        """Whether a card can learn the class beside others."""
        return self.device != "cpu" and self.recipe.method == RMI


@dataclass(frozen=True)
class UnseenTask:
    """A model that was learned without a fold of its lesson, and is to be asked about that; see `said_of_unseen`."""

    lesson: Lesson
    fold: int
    model: InstanceScorer
    prior: Objectness


@dataclass(frozen=True)
class FindTask:
    """Images in which a class is to be found; see `localize`."""

    model: ClassModel
    files: tuple[str, ...]
    rivals: Rivals | None
    max_objects: int
    at_least: float


def learn(store: FeatureStore, task: LearnTask) -> ClassModel:
    """Learn one class."""
    return learn_class(task.examples, store, task.label, task.recipe, task.prior, task.device)


def ask_about_unseen(store: FeatureStore, task: UnseenTask) -> Said:
    """Ask one model of a class."""
    return said_of_unseen(store, task.lesson, task.fold, task.model, task.prior)


def find(store: FeatureStore, task: FindTask) -> list[Answer]:
    """Find one class in some images."""
    return list(
        localize(
            store,
            task.model,
            task.files,
            rivals=task.rivals,
            max_objects=task.max_objects,
            at_least=task.at_least,
        )
    )


def learn_tasks(
    images: ImageSet, store: FeatureStore, classes: Iterable[str], settings: Settings, prior: Objectness
) -> list[LearnTask]:
    """One task per class."""
    recipe = settings.recipe
    return [
        LearnTask(label, _examples_of(images, store, label, recipe.seed), recipe, prior, settings.device)
        for label in classes
    ]


def find_tasks(
    images: ImageSet, store: FeatureStore, models: Sequence[ClassModel], settings: Settings
) -> list[FindTask]:
    """Every class where it is known to be."""
    tasks = []
    for model in models:
        rivals = rivals_of(images, models, model.label) if settings.rivalry else None
        for part in _parts(files_with(images, store, model.label)):
            near = None if rivals is None else {file: rivals[file] for file in part if file in rivals}
            tasks.append(FindTask(model, part, near, settings.max_objects, 0.0))
    return tasks


def search_tasks(
    files: Sequence[str], models: Sequence[ClassModel], settings: Settings, at_least: float
) -> list[FindTask]:
    """Every class in images that nobody labelled."""
    return [FindTask(model, part, None, settings.max_objects, at_least) for model in models for part in _parts(files)]


def _parts(files: Sequence[str]) -> list[tuple[str, ...]]:
    """Images in parts, cut where `localize` cuts: sums are then taken over the same blocks whoever takes them."""
    return [tuple(files[i : i + FILES_AT_ONCE]) for i in range(0, len(files), FILES_AT_ONCE)]


def _examples_of(images: ImageSet, store: FeatureStore, label: str, seed: int) -> ImageSet:
    """The images that a class is learned from: what travels must not grow with the collection."""
    return images.take(np.sort(np.concatenate(example_rows(images, store, label, seed))))
