"""All that is seen of an image before any class is known: boxes, boundaries and the figure, from one pass."""

from dataclasses import dataclass, field

import numpy as np

from bagwise._utils.boxes import overlaps
from bagwise._utils.optional import require
from bagwise.discovery.proposals.boxes import SMALLEST_SIDE, boxes_of_edges
from bagwise.discovery.proposals.edges import EdgeDetector, NetworkEdges, shrink_to_working_area
from bagwise.discovery.proposals.figure import components, figure_map

PICTURE_SIDE = 96  # short side of the small maps that are kept
# Values of the figure map above which its components are cut out. Thin parts (sails, tails, legs) are faint in it, and
# things that touch are one above a low value: no single value suits all images.
FIGURE_LEVELS = (0.2, 0.4, 0.6)
MOST_COMPONENTS = 4  # of a level, whose boxes join the proposals
SMALLEST_COMPONENT = 0.002  # share of the image's pixels
ALREADY_THERE = 0.9  # overlap with a proposal from which a component's box adds nothing
COMPONENTS_RANK = 0.9  # a component's box is as likely to hold an object as the proposal at this quantile

SeenMaps = tuple[np.ndarray, np.ndarray]  # edges and figure


def _nothing() -> np.ndarray:
    return np.zeros((1, 1), np.uint8)


@dataclass(frozen=True)
class Look:
    """What is seen of an image.

    Attributes
    ----------
    boxes : float32 array (n, 4)
    objectness : float32 array (n,)
    edges, figure : uint8 arrays (rows, columns)
        Small maps of the whole image, 255 for one; all zero where there are none.
    """

    boxes: np.ndarray
    objectness: np.ndarray
    edges: np.ndarray = field(default_factory=_nothing)
    figure: np.ndarray = field(default_factory=_nothing)


class Looker:
    """Looks at images.

    Parameters
    ----------
    detector : EdgeDetector
    figure : bool
        Whether the figure map is asked for, and the boxes of its components join the proposals.
    min_score, max_boxes
        Of `edge_boxes`.
    """

    def __init__(self, detector: EdgeDetector, *, figure: bool, min_score: float, max_boxes: int) -> None:
        self.detector = detector
        self.min_score, self.max_boxes = min_score, max_boxes
        self._figure = None
        if figure:
            self._figure = detector if isinstance(detector, NetworkEdges) else NetworkEdges()

    def __call__(self, image: np.ndarray) -> Look:
        """Look at an image, uint8 (h, w, 3) RGB."""
        height, width = image.shape[:2]
        return self.look(self.maps(image), (width, height))

    def maps(self, image: np.ndarray) -> SeenMaps | None:
        """Edges and figure of an image, each float32 (rows, columns); None of one too small to look for edges in."""
        small = working_copy(image)
        if small is None:
            return None
        if self._figure is None:
            edges = self.detector(small)
            return edges, np.zeros_like(edges)
        if self._figure is self.detector:
            return self._figure.edges_and_figure(small)
        return self.detector(small), figure_map(small, self._figure)

    def look(self, maps: SeenMaps | None, size: tuple[int, int]) -> Look:
        """What is seen of an image of some (width, height) by its `maps`."""
        seen = None if maps is None else maps[0]
        boxes, objectness = boxes_of_edges(seen, size, min_score=self.min_score, max_boxes=self.max_boxes)
        if maps is None:
            return Look(boxes, objectness)
        edges, figure = (small_picture(each) for each in maps)
        if self._figure is not None:
            # Compiled code is imported on first use.
            from bagwise.discovery.proposals.outlines import with_outlines

            figure = with_outlines(figure, edges)
            for found in component_boxes(figure, size, SMALLEST_COMPONENT):
                boxes, objectness = join_components(boxes, objectness, found[:MOST_COMPONENTS].astype(np.float32))
        return Look(boxes, objectness, edges, figure)


def working_copy(image: np.ndarray) -> np.ndarray | None:
    """The image in the size in which edges are looked for; None where that is too small."""
    small = shrink_to_working_area(image)
    return small if min(small.shape[:2]) >= SMALLEST_SIDE else None


def component_boxes(figure: np.ndarray, size: tuple[int, int], smallest: float = 0.0) -> list[np.ndarray]:
    """Boxes of the components of a small figure map, above each of `FIGURE_LEVELS`.

    Parameters
    ----------
    figure : uint8 array (rows, columns)
    size : (width, height) of the image
    smallest : float, default=0
        Share of the image that a component covers at least.

    Returns
    -------
    list of float64 arrays (n, 4)
        For each level, in pixels of the image, the largest component first.
    """
    if not figure.any():
        return [np.empty((0, 4)) for _ in FIGURE_LEVELS]
    stretch = np.tile([size[0] / figure.shape[1], size[1] / figure.shape[0]], 2)
    found = [components(figure, 255 * level) for level in FIGURE_LEVELS]
    return [each.boxes[each.shares >= smallest] * stretch for each in found]


def join_components(boxes: np.ndarray, objectness: np.ndarray, components: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add boxes of the figure's components to proposals.

    Parameters
    ----------
    boxes, objectness : arrays (n, 4), (n,)
    components : array (m, 4)
        Those that are there already are left out. The others are taken to be as likely to hold an object as the best
        tenth of the proposals: edges score long, slanting objects low, and the figure map was not asked about edges.

    Returns
    -------
    boxes, objectness : arrays (n + k, 4), (n + k,)
    """
    new = overlaps(components, boxes).max(axis=1, initial=0) < ALREADY_THERE
    if not new.any():
        return boxes, objectness
    worth = np.full(int(new.sum()), np.quantile(objectness, COMPONENTS_RANK), objectness.dtype)
    return np.vstack([boxes, components[new]]).astype(boxes.dtype), np.append(objectness, worth)


def small_picture(map: np.ndarray) -> np.ndarray:
    """A map (h, w) in [0, 1] shrunk to a short side of `PICTURE_SIDE`, as uint8."""
    cv2 = require("cv2", extra="vision")
    height, width = map.shape
    shrink = min(1.0, PICTURE_SIDE / min(height, width))
    size = max(1, round(width * shrink)), max(1, round(height * shrink))
    return np.rint(255 * cv2.resize(map, size, interpolation=cv2.INTER_AREA)).clip(0, 255).astype(np.uint8)
