"""From scored boxes to answers: the objects of each class in each image, and what else they might be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise._utils.boxes import areas, intersections, suppress
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import place_log_odds
from bagwise.discovery.learning.masks import fitted_masks
from bagwise.discovery.learning.models import ClassModel
from bagwise.discovery.learning.scoring import Rivals, ScoredImage, score_images
from bagwise.discovery.sources.imageset import ImageSet

SAME_OBJECT = 0.3  # share of the smaller of two boxes in the other from which they are taken for one object
SAME_ALTERNATIVE = 0.7  # overlap from which a reviewer would see no difference
ALTERNATIVES = 5
AS_CONVINCING = 0.5  # log-odds that a further object may lack to what looks most like the class in its image


@dataclass(frozen=True)
class Answer:
    """A box for a class in an image; see boxes.parquet in `RunFolder`."""

    file: str
    label: str
    rank: int
    kind: str
    box: tuple[float, float, float, float]
    score: float
    confidence: float
    objectness: float
    mask: str = ""


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
        Images to look at.
    rivals : mapping, optional
        See `score_images`.
    max_objects : int
        Most objects in one image; see `objects_among`.
    at_least : float
        Images that show the class with less probability get no answer. 0 for those that are known to show it.

    Yields
    ------
    Answer
        The objects, best first, then boxes that a reviewer may prefer.
    """
    for image in score_images(store, model, files, rivals):
        yield from _answers(image, model, max_objects, at_least)


def _answers(image: ScoredImage, model: ClassModel, max_objects: int, at_least: float) -> Iterator[Answer]:
    scores = image.scores
    shown = model.calibration.shown(image.presence)
    if shown < at_least:
        return
    shapes = image.shapes
    objects = objects_among(shapes, scores, image.alone, max_objects)
    others = suppress(shapes, scores, SAME_ALTERNATIVE, ALTERNATIVES + len(objects))
    others = others[~np.isin(others, objects)][:ALTERNATIVES]
    rows = np.concatenate([objects, others])
    confidence = model.calibration.place(place_log_odds(image.boxes, scores, rows))
    if at_least > 0:  # nobody said that the class is shown
        confidence = confidence * shown
    boxes, masks = fitted_masks(image, shapes[rows], model.trust)
    if model.model is None:  # nothing was learned: the boxes stay those that were proposed
        boxes = shapes[rows]
    for rank, row in enumerate(rows):
        x1, y1, x2, y2 = (float(value) for value in boxes[rank])
        kind = "object" if rank < len(objects) else "alternative"
        yield Answer(
            image.file, model.label, rank, kind, (x1, y1, x2, y2),
            float(scores[row]), float(confidence[rank]), float(image.objectness[row]),
            masks[rank],
        )  # fmt: skip


def objects_among(boxes: np.ndarray, scores: np.ndarray, alone: np.ndarray, limit: int) -> np.ndarray:
    """Rows of the boxes that are objects of their own, best first.

    Parameters
    ----------
    boxes : array (n, 4)
    scores : array (n,)
        That the answer is chosen by.
    alone : array (n,)
        The same without the figure, which stands for one object and says nothing of others.
    limit : int
        Most objects.

    Returns
    -------
    int array (k,)
        The best box always; further ones that the class alone would take as well as any, and that do not lie in a
        better one or hold it.
    """
    best = int(scores.argmax())
    found = [best]
    candidates = np.flatnonzero(alone >= alone.max() - AS_CONVINCING)
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    while len(found) < limit:
        last = boxes[found[-1:]]
        common = intersections(last, boxes[candidates])[0] / np.minimum(areas(last), areas(boxes[candidates]))
        candidates = candidates[common <= SAME_OBJECT]
        if not len(candidates):
            break
        found.append(int(candidates[0]))
    return np.array(found)


def files_with(images: ImageSet, store: FeatureStore, label: str) -> list[str]:
    """Images of the store that are known to show the class."""
    return list(images.files.take(np.flatnonzero(store.holds(images.files) & images.labels.having(label))))


def rivals_of(images: ImageSet, models: Sequence[ClassModel], label: str) -> dict[str, list[ClassModel]]:
    """For each image of a class the models of the other classes that it shows."""
    by_label = {model.label: model for model in models}
    rows = np.flatnonzero(images.labels.having(label) & (images.labels.sizes > 1))
    return {
        file: [by_label[other] for other in labels if other != label]
        for file, labels in zip(images.files.take(rows), images.labels.take(rows))
    }
