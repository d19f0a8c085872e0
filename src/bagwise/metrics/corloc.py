"""CorLoc, the share of images whose object was found, by the two definitions in use.

**Per class** (:func:`corloc_per_class`; Deselaers and others, and the RMI-SVM paper): for every class, the share
of the class's images whose answer overlaps a true box of the class with IoU > .5, areas in PASCAL's inclusive
pixels, difficult and truncated objects counting as truth; then the mean over classes, without weights.

**Any class** (:func:`corloc_any_class`; LOST, TokenCut and their followers): the share of images whose one box
overlaps any object of any class with IoU >= .5; "hard" objects (difficult or truncated) count unless left out.

The mean over classes has its interval from a bootstrap over images: an image carries all its classes along when it is
drawn. A single share has Wilson's, since no draw of three hits out of three ever holds a miss.

Boxes are zero-based continuous corners with the end excluded. PASCAL's one-based inclusive corners (a, b, c, d)
become (a - 1, b - 1, c, d), under which its areas, (c - a + 1)(d - b + 1), are plain differences: the two
conventions give one and the same IoU, so one function serves both definitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise._utils.boxes import overlaps
from bagwise.metrics.truth import TruthBox

REPLICATES = 1000
LEVEL = 0.95

Answers = Mapping[tuple[str, str], np.ndarray]
Truth = Mapping[str, Sequence[TruthBox]]


@dataclass(frozen=True)
class Rate:
    """A share, the counts behind it, and its 95% interval."""

    value: float
    low: float
    high: float
    hits: int
    of: int


@dataclass(frozen=True)
class CorLoc:
    """CorLoc of a set of answers.

    Attributes
    ----------
    definition : {"per-class", "any-class"}
    mean : Rate
        The headline: the unweighted mean over the groups, or over the images for the any-class definition.
        ``hits`` and ``of`` count answers over all groups.
    groups : dict of str to Rate
        Per class, or per class and viewpoint; empty for the any-class definition.
    unanswered : int
        Pairs (or images) that had no answer at all; they count as misses.
    """

    definition: str
    mean: Rate
    groups: dict[str, Rate]
    unanswered: int


def percent(rate: Mapping[str, float]) -> str:
    """A rate (as a mapping) with its interval, for tables: ``48.7 (46.9 to 50.3)``."""
    return f"{100 * rate['value']:.1f} ({100 * rate['low']:.1f} to {100 * rate['high']:.1f})"


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of every box with every other.

    Parameters
    ----------
    boxes : array of shape (n, 4)
    others : array of shape (m, 4)

    Returns
    -------
    array of shape (n, m), float64
        In double precision, so that whole pixels give an exact comparison with one half.
    """
    first, second = (np.asarray(values, dtype=np.float64).reshape(-1, 4) for values in (boxes, others))
    return overlaps(first, second)


def boxes_of(objects: Iterable[TruthBox], label: str | None = None) -> np.ndarray:
    """The boxes of the objects (of one class, or of all), as float64 of shape (n, 4)."""
    boxes = [item.box for item in objects if label is None or item.label == label]
    return np.asarray(boxes, dtype=np.float64).reshape(-1, 4)


def corloc_per_class(
    answers: Answers,
    truth: Truth,
    groups: Mapping[str, tuple[str, Sequence[str]]],
    *,
    overlap: float = 0.5,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> CorLoc:
    """CorLoc by the paper's definition.

    Parameters
    ----------
    answers : mapping of (file, group) to box of shape (4,)
        One box per image and group.
    truth : mapping of file to objects
    groups : mapping of group to (class, files)
        The class whose objects count, and the images to be answered; see ``bagwise.discovery.evaluation.protocols``.
        A group is a class, or a class seen from one side.
    overlap : float, default=0.5
        An answer is right above this IoU with an object of the class. The literature asks for one half; .7 tells how
        tight boxes are.
    replicates, seed : int
        The bootstrap's draws of the images, and their random seed.
    """
    names = list(groups)
    files = sorted({file for _, members in groups.values() for file in members})
    if not files:
        raise ValueError("there is nothing to evaluate: no image of any class is named")
    row = {file: number for number, file in enumerate(files)}
    asked = np.zeros((len(files), len(names)), dtype=bool)
    hit = np.zeros_like(asked)
    unanswered = 0
    for column, (label, members) in enumerate(groups.values()):
        for file in members:
            asked[row[file], column] = True
            answer = answers.get((file, names[column]))
            if answer is None:
                unanswered += 1
            else:
                hit[row[file], column] = (iou(answer, boxes_of(truth.get(file, ()), label)) > overlap).any()
    hits, count = hit.sum(axis=0), asked.sum(axis=0)
    per_group = {name: share(int(hits[i]), int(count[i])) for i, name in enumerate(names) if count[i]}
    if len(per_group) == 1:
        return CorLoc("per-class", next(iter(per_group.values())), per_group, unanswered)
    low, high = np.percentile(_bootstrap(hit, asked, replicates, seed), [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    value = float(np.mean([rate.value for rate in per_group.values()]))
    mean = Rate(value, float(low), float(high), int(hits.sum()), int(count.sum()))
    return CorLoc("per-class", mean, per_group, unanswered)


def corloc_any_class(
    answers: Mapping[str, np.ndarray],
    truth: Truth,
    *,
    hard: bool = True,
    files: Sequence[str] | None = None,
) -> CorLoc:
    """CorLoc by the definition of LOST and TokenCut.

    Parameters
    ----------
    answers : mapping of file to box of shape (4,)
        One box per image, whatever its class.
    truth : mapping of file to objects
    hard : bool
        Whether objects marked difficult or truncated count; without them, images that have no others
        are left out.
    files : sequence of str, optional
        The images to be answered; by default all of the truth.
    """
    unanswered = 0
    hits = []
    for file in sorted(truth) if files is None else sorted(set(files)):
        objects = boxes_of(item for item in truth.get(file, ()) if hard or not (item.difficult or item.truncated))
        if not len(objects):
            continue
        answer = answers.get(file)
        unanswered += answer is None
        hits.append(answer is not None and bool((iou(answer, objects) >= 0.5).any()))
    if not hits:
        raise ValueError("there is nothing to evaluate: no image has a true object that counts")
    return CorLoc("any-class", share(sum(hits), len(hits)), {}, unanswered)


def share(hits: int, of: int) -> Rate:
    """A share with Wilson's interval, which is wide where little was counted.

    Examples
    --------
    >>> rate = share(3, 3)
    >>> print(rate.value, round(rate.low, 2), rate.high)
    1.0 0.44 1.0
    """
    from scipy.stats import binomtest  # takes longer to import than all of bagwise

    interval = binomtest(hits, of).proportion_ci(LEVEL, method="wilson")
    return Rate(hits / of, float(interval.low), float(interval.high), hits, of)


def _bootstrap(hit: np.ndarray, asked: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Means over the groups that were drawn, of shape (replicates,), over images drawn with replacement."""
    random = np.random.default_rng(seed)
    n = len(hit)
    both = np.hstack([hit, asked]).astype(np.float64)
    counts = np.empty((replicates, both.shape[1]))
    for replicate in range(replicates):
        counts[replicate] = np.bincount(random.integers(n, size=n), minlength=n) @ both
    hits, of = np.hsplit(counts, 2)
    rates = np.divide(hits, of, out=np.zeros_like(hits), where=of > 0)
    return rates.sum(axis=1) / np.maximum((of > 0).sum(axis=1), 1)
