"""From scored boxes to answers: the objects of each class in each photograph, and what else they might be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise.bags import Bags

from .boxes import suppress
from .calibration import place_log_odds
from .imageset import ImageSet
from .learning import ClassModel, bags_of
from .store import FeatureStore

SAME_OBJECT = 0.3  # overlap from which two boxes of a class are taken for one object
SAME_ALTERNATIVE = 0.7  # overlap from which a reviewer would see no difference
ALTERNATIVES = 5
FILES_AT_ONCE = 256
RIVALRY = 0.4  # how much of the other classes' scores is taken off
FURTHER_OBJECT = 0.5  # probability of the class that a second object must reach by itself


@dataclass(frozen=True)
class Answer:
    """A box for a class in a photograph; see boxes.parquet in `RunFolder`."""

    file: str
    label: str
    rank: int
    kind: str
    box: tuple[float, float, float, float]
    score: float
    confidence: float
    objectness: float


Rivals = Mapping[str, Sequence[ClassModel]]


def localize(
    store: FeatureStore,
    model: ClassModel,
    files: Sequence[str],
    *,
    rivals: Rivals | None = None,
    max_objects: int = 1,
    at_least: float = 0.0,
) -> Iterator[Answer]:
    """Answers of one class.

    Parameters
    ----------
    store : FeatureStore
    model : ClassModel
    files : sequence of str
        Photographs to look at.
    rivals : mapping, optional
        For a photograph the models of the other classes that it shows: a box that looks like one of those is less
        likely to be this class, and one that holds both is too large.
    max_objects : int
        Most objects in one photograph. The best box is an object always, further ones when they overlap no better
        one and the model is confident of them.
    at_least : float
        Photographs that show the class with less probability get no answer. 0 for those that are known to show it.

    Yields
    ------
    Answer
        The objects, best first, then boxes that a reviewer may prefer.
    """
    for file, scores in box_scores(store, model, files, rivals):
        yield from _answers_of_one(store, model, file, scores, max_objects, at_least)


def box_scores(
    store: FeatureStore, model: ClassModel, files: Sequence[str], rivals: Rivals | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """The scores that answers are chosen by: for each photograph one per box, (n_boxes,); see `localize`."""
    for start in range(0, len(files), FILES_AT_ONCE):
        part = files[start : start + FILES_AT_ONCE]
        bags = bags_of(store, part, model.prior)
        scores = model.scores(bags)
        if rivals:
            scores = scores - RIVALRY * _rival_scores(bags, part, rivals)
        yield from zip(part, bags.split(scores))


def _rival_scores(bags: Bags, files: Sequence[str], rivals: Rivals) -> np.ndarray:
    """Mean appearance score of each box for the other classes of its photograph, (n_instances,).

    Centred in each photograph: it can move the choice among its boxes, not the confidence that the class is there.
    """
    models = {rival.label: rival for file in files for rival in rivals.get(file, ()) if rival.model is not None}
    total = np.zeros(bags.n_instances)
    count = np.zeros(len(files))
    for label, rival in models.items():
        concerned = np.array([any(r.label == label for r in rivals.get(file, ())) for file in files])
        rows = np.repeat(concerned, bags.sizes)
        total[rows] += rival.appearance(bags[concerned])
        count += concerned
    mean = np.add.reduceat(total, bags.offsets[:-1]) / bags.sizes
    return (total - np.repeat(mean, bags.sizes)) / np.repeat(np.maximum(count, 1), bags.sizes)


def _answers_of_one(
    store: FeatureStore, model: ClassModel, file: str, scores: np.ndarray, max_objects: int, at_least: float
) -> Iterator[Answer]:
    boxes, objectness = store.boxes(file)
    shown = model.calibration.shown(scores)
    objects = suppress(boxes, scores, SAME_OBJECT, max_objects)
    if shown[objects[0]] < at_least:
        return
    sure = shown[objects] >= FURTHER_OBJECT
    sure[0] = True
    objects = objects[sure]
    others = suppress(boxes, scores, SAME_ALTERNATIVE, ALTERNATIVES + len(objects))
    others = others[~np.isin(others, objects)][:ALTERNATIVES]
    rows = np.concatenate([objects, others])
    confidence = model.calibration.place(place_log_odds(boxes, scores, rows))
    if at_least > 0:  # nobody said that the class is shown
        confidence = confidence * shown[rows]
    for rank, row in enumerate(rows):
        x1, y1, x2, y2 = (float(value) for value in boxes[row])
        kind = "object" if rank < len(objects) else "alternative"
        yield Answer(
            file, model.label, rank, kind, (x1, y1, x2, y2),
            float(scores[row]), float(confidence[rank]), float(objectness[row]),
        )  # fmt: skip


def files_with(images: ImageSet, store: FeatureStore, label: str) -> list[str]:
    """Photographs of the store that are known to show the class."""
    return [file for file, labels in zip(images.files, images.labels) if label in labels and file in store]


def rivals_of(images: ImageSet, models: Sequence[ClassModel], label: str) -> dict[str, list[ClassModel]]:
    """For each photograph of a class the models of the other classes that it shows."""
    by_label = {model.label: model for model in models}
    return {
        file: [by_label[other] for other in labels if other != label]
        for file, labels in zip(images.files, images.labels)
        if label in labels and len(labels) > 1
    }
