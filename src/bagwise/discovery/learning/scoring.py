"""Scores of an image's boxes for a class: appearance, objectness, rivals, and what speaks for the whole object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bagwise.bags import Bags
from bagwise.discovery.features.store import FeatureStore, Maps
from bagwise.discovery.learning.models import ClassModel, bags_of

FILES_AT_ONCE = 64  # images; few enough that many threads find work to the end, and little memory
BOXES_OF_AN_OBJECT = 0.05  # share of an image's boxes
RIVALRY = 0.4  # how much of the other classes' scores is taken off

Rivals = Mapping[str, Sequence[ClassModel]]


@dataclass(frozen=True)
class ScoredImage:
    """The boxes of an image as a class sees them.

    Attributes
    ----------
    file : str
    size : (width, height)
    boxes : float32 array (n, 4)
    objectness : float32 array (n,)
    maps : Maps
    appearance : array (n,)
        What the model says of the looks of each box.
    evidence : array (rows, columns)
        What it says of each cell of the map.
    alone : array (n,)
        Scores without the figure map.
    scores : array (n,)
        Scores that the answer is chosen by.
    figure : array (n,)
        Scores of the figure map and objectness, whatever the class.
    weight : float
        How much the figure map counts for the class in this image.
    shapes : float32 array (n, 4)
        The boxes as they are answered; see `Terms`.
    """

    file: str
    size: tuple[int, int]
    boxes: np.ndarray
    objectness: np.ndarray
    maps: Maps
    appearance: np.ndarray
    evidence: np.ndarray
    alone: np.ndarray
    scores: np.ndarray
    figure: np.ndarray
    weight: float
    shapes: np.ndarray

    @property
    def presence(self) -> float:
        """What speaks for the class being in the image at all: the mean of the highest appearance scores.

        One box may look like anything by chance; an object has many boxes around it.
        """
        return presence_in(self.appearance)


def presence_in(appearance: np.ndarray) -> float:
    """See `ScoredImage.presence`."""
    count = max(1, int(BOXES_OF_AN_OBJECT * len(appearance)))
    return float(np.partition(appearance, -count)[-count:].mean())


def presences(store: FeatureStore, model: ClassModel, files: Sequence[str]) -> np.ndarray:
    """The `ScoredImage.presence` of a class in each of some images, float64 (n_files,)."""
    found: list[float] = []
    for start in range(0, len(files), FILES_AT_ONCE):
        bags = bags_of(store, files[start : start + FILES_AT_ONCE], model.prior)
        found.extend(presence_in(appearance) for appearance in bags.split(model.appearance(bags)))
    return np.array(found)


def score_images(
    store: FeatureStore, model: ClassModel, files: Sequence[str], rivals: Rivals | None = None
) -> Iterator[ScoredImage]:
    """Score the boxes of images.

    Parameters
    ----------
    store : FeatureStore
    model : ClassModel
        An image that has a model of its own in ``held_out`` is scored by that.
    files : sequence of str
    rivals : mapping, optional
        For an image the models of the other classes that it shows: a box that looks like one of those is less likely
        to be this class, and one that holds both is too large.

    Yields
    ------
    ScoredImage
        In the order of the files.
    """
    if model.held_out:
        for file in files:
            unseen = replace(model, model=model.held_out.get(file, model.model), held_out={})
            yield from score_images(store, unseen, [file], rivals)
        return
    for start in range(0, len(files), FILES_AT_ONCE):
        part = files[start : start + FILES_AT_ONCE]
        bags = bags_of(store, part, model.prior)
        looks = model.appearance(bags)
        prior = np.zeros(bags.n_instances) if bags.prior is None else bags.prior
        scores = model.trust * looks + prior
        if rivals:
            scores = scores - model.trust * RIVALRY * _rival_scores(bags, part, rivals)
        ragged = (bags.split(values) for values in (looks, prior, scores))
        for file, appearance, likely, plain in zip(part, *ragged):
            yield _scored(store, model, file, appearance, likely, plain)


def _scored(
    store: FeatureStore, model: ClassModel, file: str, appearance: np.ndarray, prior: np.ndarray, scores: np.ndarray
) -> ScoredImage:
    entry, maps = store.entry(file), store.maps(file)
    size = (entry.width, entry.height)
    boxes, objectness = store.boxes(file)
    evidence = model.evidence(maps.cells)
    terms = model.ranking.terms(maps, boxes, size, evidence, model.trust)
    alone = scores + terms.whole
    return ScoredImage(
        file, size, boxes, objectness, maps, appearance, evidence, alone, alone + terms.weight * terms.figure,
        prior + terms.figure, terms.weight, terms.shapes,
    )  # fmt: skip


def _rival_scores(bags: Bags, files: Sequence[str], rivals: Rivals) -> np.ndarray:
    """Mean appearance score of each box for the other classes of its image, (n_instances,).

    Centred in each image: it can move the choice among its boxes, not the confidence that the class is there.
    """
    models = {rival.label: rival for file in files for rival in rivals.get(file, ()) if rival.model is not None}
    total = np.zeros(bags.n_instances)
    count = np.zeros(len(files))
    for label, rival in models.items():
        concerned = np.array([any(r.label == label for r in rivals.get(file, ())) for file in files])
        rows = np.repeat(concerned, bags.sizes)
        total[rows] += rival.trust * rival.appearance(bags[concerned])
        count += concerned
    mean = np.add.reduceat(total, bags.offsets[:-1]) / bags.sizes
    return (total - np.repeat(mean, bags.sizes)) / np.repeat(np.maximum(count, 1), bags.sizes)
