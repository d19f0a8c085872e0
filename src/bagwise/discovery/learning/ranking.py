"""Which box is the whole object: what is added to the scores of boxes once a class is learned.

A model prefers what tells its class from others, often a part. Three things speak for the whole: the class's evidence
map (see `evidence`), the figure map, and how far the two agree in this image.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bagwise._utils.boxes import areas, likest, overlaps
from bagwise._utils.optional import require
from bagwise.discovery.features.store import Maps
from bagwise.discovery.learning.evidence import box_sums, inside_and_share, integral, soft_foreground
from bagwise.discovery.proposals.look import component_boxes

LEAST_LIKENESS = 0.1  # keeps the logarithm of likeness to the figure finite
AGREEING = (0.1, 0.5)  # correlations of evidence and figure between which the figure's weight rises from none to full
TIGHTENED = 0.4  # overlap from which a chosen box and a component's are taken for the same object

Size = tuple[int, int]


class Terms(NamedTuple):
    """What speaks for each of an image's boxes besides its looks.

    Attributes
    ----------
    whole : float64 array (n,)
        What the evidence says for boxes around the whole object.
    figure : float64 array (n,)
        What the figure map says, whatever the class.
    weight : float
        How much of that counts for this class in this image, 0 to 1.
    shapes : array (n, 4)
        The boxes as they are answered: tightened to the figure, where it is asked.
    """

    whole: np.ndarray
    figure: np.ndarray
    weight: float
    shapes: np.ndarray


class Like(NamedTuple):
    """Boxes beside the components of a figure map above one level.

    Attributes
    ----------
    components : float64 array (m, 4)
    which : int64 array (n,)
        The component that each box is most like.
    overlap : float64 array (n,)
    """

    components: np.ndarray
    which: np.ndarray
    overlap: np.ndarray


@dataclass(frozen=True)
class Ranking:
    """Weights of what is added to the scores of boxes.

    Attributes
    ----------
    inside, share : float
        Of the logarithms of the evidence inside a box, and of its share of the evidence near it.
    figure : float
        Of the logarithm of a box's likeness to the figure, where evidence and figure agree. 0: the map is not asked,
        and boxes are not tightened to it.
    """

    inside: float = 0.7
    share: float = 1.5
    figure: float = 2.0

    @classmethod
    def none(cls) -> "Ranking":
        """Nothing is added: boxes are chosen by their scores alone."""
        return cls(0.0, 0.0, 0.0)

    def terms(self, maps: Maps, boxes: np.ndarray, size: Size, evidence: np.ndarray, trust: float) -> Terms:
        """What is added to the scores of an image's boxes, and how they are answered.

        Parameters
        ----------
        maps : Maps
            Of the image.
        boxes : array (n, 4)
        size : (width, height)
        evidence : array (rows, columns)
            Score of every cell of the map for the class.
        trust : float
            How far the class's model can be relied on, 0 to 1. What it has no say in goes to the figure.

        Returns
        -------
        Terms
        """
        whole, figure, weight, shapes = np.zeros(len(boxes)), np.zeros(len(boxes)), 1 - trust, boxes
        if evidence.size:
            soft = soft_foreground(evidence)
            if self.inside or self.share:
                log_inside, log_share = inside_and_share(soft, boxes, size)
                whole = trust * (self.inside * log_inside + self.share * log_share)
            weight += trust * gate(soft, maps.figure)
        if self.figure and maps.figure.any():
            levels = beside_components(maps.figure, boxes, size)
            likeness = figure_likeness(levels, maps.figure, boxes, size)
            figure = self.figure * np.log((likeness + LEAST_LIKENESS) / (1 + LEAST_LIKENESS))
            shapes = on_plain_ground(tightened(boxes, levels), maps.edges, size, trust)
        return Terms(whole, figure, weight, shapes)


def gate(soft: np.ndarray, figure: np.ndarray) -> float:
    """How much the figure map is asked about a class: by its correlation with the class's evidence over the cells.

    Where the evidence lies elsewhere than what stands out, what stands out is something else.

    Parameters
    ----------
    soft : array (rows, columns)
        The class's foreground.
    figure : uint8 array (picture rows, picture columns)

    Returns
    -------
    float in [0, 1]
    """
    if not figure.any():
        return 0.0
    cv2 = require("cv2", extra="vision")
    coarse = cv2.resize(figure, (soft.shape[1], soft.shape[0]), interpolation=cv2.INTER_AREA).astype(np.float64)
    if coarse.std() == 0 or soft.std() == 0:
        return 0.0
    correlation = float(np.corrcoef(soft.ravel(), coarse.ravel())[0, 1])
    low, high = AGREEING
    return float(np.clip((correlation - low) / (high - low), 0, 1))


def beside_components(figure: np.ndarray, boxes: np.ndarray, size: Size) -> list[Like]:
    """Boxes (n, 4) beside the components of a figure map, at each level at which these are cut out."""
    plain = boxes.astype(np.float64)
    return [Like(found, *likest(plain, found)) for found in component_boxes(figure, size)]


def figure_likeness(levels: list[Like], figure: np.ndarray, boxes: np.ndarray, size: Size) -> np.ndarray:
    """How like the figure each box is: overlap with the box of the component that it is most like.

    The mean over the levels at which components are cut out. Where no part of the map is clear enough to be one,
    overlap with the map as it is. A component is not measured so: most of its pixels may lie in one part of it, the
    case of a tape, the tower of a mill.

    Parameters
    ----------
    levels : list of Like
        From `beside_components`.
    figure : uint8 array (picture rows, picture columns)
    boxes : array (n, 4)
    size : (width, height) of the image

    Returns
    -------
    float64 array (n,) in [0, 1]
    """
    total = np.zeros(len(boxes))
    for level in levels:
        clear = len(level.components) > 0
        total += level.overlap if clear else _soft_overlap(figure, boxes.astype(np.float64), size)
    return total / len(levels)


def _soft_overlap(figure: np.ndarray, boxes: np.ndarray, size: Size) -> np.ndarray:
    """Overlap of boxes with the map itself, each cell as far as it belongs to the figure."""
    soft = figure / 255.0
    held = box_sums(integral(soft), boxes, size)
    cells = areas(boxes) * (figure.size / (size[0] * size[1]))
    return held / (cells + soft.sum() - held)


def tightened(boxes: np.ndarray, levels: list[Like]) -> np.ndarray:
    """Boxes (n, 4) moved half-way to the components of the figure map that they agree with best, where they do.

    That is the mean of the components of all levels (from `beside_components`) at which there is one that agrees.
    """
    plain = boxes.astype(np.float64)
    total, count = np.zeros_like(plain), np.zeros((len(plain), 1))
    for level in levels:
        agree = np.flatnonzero(level.overlap >= TIGHTENED)
        total[agree] += level.components[level.which[agree]]
        count[agree] += 1
    return np.where(count > 0, (plain + total / np.maximum(count, 1)) / 2, plain).astype(boxes.dtype)


def on_plain_ground(boxes: np.ndarray, edges: np.ndarray, size: Size, trust: float) -> np.ndarray:
    """Boxes (n, 4), those around the only thing to be seen exactly so.

    Half-way to the figure is safest where either may be wrong; an outline on plain ground is not. A box that overlaps
    it less than `TIGHTENED` may be meant for a part of it, the more so the better the class is known.

    Parameters
    ----------
    boxes : array (n, 4)
    edges : uint8 array (picture rows, picture columns)
    size : (width, height) of the image
    trust : float
        How far the class's model can be relied on, 0 to 1.
    """
    # Compiled code is imported on first use.
    from bagwise.discovery.proposals.outlines import only_outline

    found = only_outline(edges)
    if found is None:
        return boxes
    exact = found * np.tile([size[0] / edges.shape[1], size[1] / edges.shape[0]], 2)
    same = overlaps(boxes.astype(np.float64), exact[None])[:, 0] >= TIGHTENED * trust
    return np.where(same[:, None], exact, boxes).astype(boxes.dtype)
