"""How far a ranking of boxes, and the confidence in its first box, can be trusted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise.metrics.corloc import Truth, boxes_of, iou

COUNTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 400)

Groups = Mapping[str, tuple[str, Sequence[str]]]


def first_hits(ranked: Mapping[tuple[str, str], np.ndarray], truth: Truth, groups: Groups) -> dict[str, np.ndarray]:
    """How many boxes one must take, best first, until one is right (IoU > .5 with an object of the class).

    Parameters
    ----------
    ranked : mapping of (file, group) to boxes of shape (n_boxes, 4), best first
    truth : mapping of file to objects
    groups : mapping of group to (class, files)

    Returns
    -------
    dict of group to float array of shape (n_files,)
        1 where the first box is right; infinity where none is.
    """
    needed = {}
    for name, (label, files) in groups.items():
        counts = np.full(len(files), np.inf)
        for position, file in enumerate(files):
            boxes = ranked.get((file, name))
            if boxes is None or not len(boxes):
                continue
            right = (iou(boxes, boxes_of(truth.get(file, ()), label)) > 0.5).any(axis=1)
            if right.any():
                counts[position] = 1 + int(np.argmax(right))
        needed[name] = counts
    return needed


def detection_rate(needed: Mapping[str, np.ndarray], counts: Sequence[int] = COUNTS) -> np.ndarray:
    """The share of images with a right box among the first n, for each n; the unweighted mean over groups.

    Parameters
    ----------
    needed : mapping of group to array of shape (n_files,)
        From :func:`first_hits`.
    counts : sequence of int
        The numbers of boxes.

    Returns
    -------
    array of shape (n_counts,)
    """
    groups = [values for values in needed.values() if len(values)]
    if not groups:
        raise ValueError("there is nothing to evaluate: no image of any class is named")
    return np.mean([[np.mean(values <= count) for count in counts] for values in groups], axis=0)


def average_precision(correct: np.ndarray, confidence: np.ndarray) -> float:
    """How well the confidence puts right answers before wrong ones: the area under precision against recall.

    Answers in random order would get the share of right ones; a perfect order gets 1. NaN when none is right.
    """
    from sklearn.metrics import average_precision_score

    correct = np.asarray(correct, dtype=bool)
    return float(average_precision_score(correct, confidence)) if correct.any() else float("nan")


@dataclass(frozen=True)
class Detected:
    """How well the boxes of a class were detected.

    Attributes
    ----------
    all_points : float
        Average precision: the area under the precision that is reached at a recall or beyond it (VOC since 2010).
    eleven_points : float
        The mean of that precision at recalls 0, .1, ..., 1 (VOC 2007).
    objects, boxes : int
        True objects that count, and boxes that were answered.
    """

    all_points: float
    eleven_points: float
    objects: int
    boxes: int


def detected(found: Sequence[tuple[str, np.ndarray, float]], truth: Truth, label: str) -> Detected:
    """Average precision of one class over all images, as PASCAL VOC defines it.

    Boxes are taken from the most confident down. A box is right when the object of the class that it overlaps most
    overlaps it by more than one half and was not found before. Objects marked difficult neither count nor harm.

    Parameters
    ----------
    found : sequence of (file, box of shape (4,), confidence)
    truth : mapping of file to objects
        Of all images that were looked at, those without an object of the class included.
    label : str

    Returns
    -------
    Detected
        Average precisions are NaN where no object counts.
    """
    boxes = {file: boxes_of(objects, label) for file, objects in truth.items()}
    hard = {file: [bool(item.difficult) for item in objects if item.label == label] for file, objects in truth.items()}
    taken = {file: np.zeros(len(values), dtype=bool) for file, values in boxes.items()}
    total = sum(not each for values in hard.values() for each in values)
    right = []
    for row in np.argsort([-confidence for _, _, confidence in found], kind="stable"):
        file, box, _ = found[row]
        true = boxes.get(file, np.empty((0, 4)))
        shared = iou(box, true)[0] if len(true) else np.zeros(1)
        best = int(shared.argmax())
        if shared[best] <= 0.5:
            right.append(False)
        elif not hard[file][best]:
            right.append(not taken[file][best])
            taken[file][best] = True
    if total == 0:
        return Detected(float("nan"), float("nan"), 0, len(found))
    hits = np.cumsum(right) if right else np.zeros(0)
    recall, precision = hits / total, hits / np.arange(1, len(hits) + 1)
    # The best precision at this recall or beyond: what a user who wants that much can have.
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.diff(recall, prepend=0)
    at = [envelope[recall >= level].max(initial=0) for level in np.linspace(0, 1, 11)]
    return Detected(float((steps * envelope).sum()), float(np.mean(at)), total, len(found))


@dataclass(frozen=True)
class Calibration:
    """The confidence against what came true, in bins of equal width.

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
    count : array of shape (n_bins,)
        Answers per bin.
    confidence, correct : array of shape (n_bins,)
        The mean confidence and the share of right answers; NaN in an empty bin.
    error : float
        Expected calibration error: the mean distance of the two, weighted by count.
    brier : float
        The mean squared distance of confidence and outcome.
    """

    edges: np.ndarray
    count: np.ndarray
    confidence: np.ndarray
    correct: np.ndarray
    error: float
    brier: float


def calibration(correct: np.ndarray, confidence: np.ndarray, bins: int = 10) -> Calibration:
    """Compare the confidence in each answer with whether it was right.

    Parameters
    ----------
    correct : bool array of shape (n_answers,)
    confidence : array of shape (n_answers,), in [0, 1]
    bins : int
    """
    right = np.asarray(correct, dtype=np.float64)
    sure = np.asarray(confidence, dtype=np.float64)
    if len(right) != len(sure) or not len(sure):
        raise ValueError(f"calibration needs as many outcomes as confidences, and some: {len(right)} and {len(sure)}")
    if not ((sure >= 0) & (sure <= 1)).all():
        raise ValueError("a confidence lies outside 0 to 1")
    member = np.minimum((sure * bins).astype(int), bins - 1)
    count = np.bincount(member, minlength=bins)
    empty = np.full(bins, np.nan)
    mean = np.divide(np.bincount(member, sure, bins), count, out=empty.copy(), where=count > 0)
    share = np.divide(np.bincount(member, right, bins), count, out=empty.copy(), where=count > 0)
    error = float(np.nansum(count * np.abs(mean - share)) / count.sum())
    return Calibration(np.linspace(0, 1, bins + 1), count, mean, share, error, float(np.mean((right - sure) ** 2)))
