"""Which pixels of a box are the object: evidence of the class, the figure map and boundaries together.

Evidence and figure say where the object is, both a little blurred. A random walk then spreads what they say until it
meets a boundary: a pixel takes the value of the neighbours that no edge parts it from. What lies above a share of what
the box holds at its best is the mask.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from bagwise._utils.optional import require
from bagwise._utils.rle import encode_mask
from bagwise.discovery.learning.evidence import soft_foreground
from bagwise.discovery.learning.scoring import ScoredImage

MOST_SURE = 0.98  # a pixel of either map says no more than this
EDGE_STRENGTH = 10.0  # an edge of strength s lets exp(-EDGE_STRENGTH s) of the walk through
RESTART = 0.03  # how much a pixel's own value counts against each neighbour's
SWEEPS = 60
OVERSHOOT = 1.8  # of a sweep's correction; speeds up what would be some hundreds of sweeps
BEST = 0.9  # quantile of the values inside a box that counts as its best
MASK_FROM = 0.4  # share of that best value from which a pixel belongs to the mask
SAMPLED = 32  # pixels along a box's shorter side that are enough to know that quantile
SMALLEST_PART = 0.1  # a part of a mask is kept from this share of the largest part on
LEAST_FILLED = 0.15  # of a box; a thinner mask says that nothing was recognised


def foreground(image: ScoredImage, trust: float, weight: float) -> np.ndarray:
    """How likely each pixel of the small picture is to belong to the class.

    Parameters
    ----------
    image : ScoredImage
    trust : float
        How much the class's evidence counts.
    weight : float
        How much the figure counts.

    Returns
    -------
    float64 array (picture rows, picture columns) in (0, 1)
    """
    cv2 = require("cv2", extra="vision")
    rows, columns = image.maps.figure.shape
    log_odds = np.zeros((rows, columns))
    if image.evidence.size:
        soft = soft_foreground(image.evidence)
        wide = cv2.resize(soft, (columns, rows), interpolation=cv2.INTER_LINEAR)
        log_odds += trust * logit(wide.clip(1 - MOST_SURE, MOST_SURE))
    if image.maps.figure.any():
        log_odds += weight * logit((image.maps.figure / 255).clip(1 - MOST_SURE, MOST_SURE))
    return walk(expit(log_odds), image.maps.edges / 255)


def walk(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Spread values over a picture inside its boundaries.

    The result x solves ``RESTART (x - values) + sum over the four neighbours of c (x - x_neighbour) = 0`` at every
    pixel, where c is ``exp(-EDGE_STRENGTH * the stronger edge of the two)``.

    Parameters
    ----------
    values, edges : arrays (rows, columns) in [0, 1]

    Returns
    -------
    float64 array (rows, columns)
    """
    # Compiled code is imported on first use.
    from bagwise.discovery.learning._relaxation import relax

    across = np.exp(-EDGE_STRENGTH * np.maximum(edges[:, 1:], edges[:, :-1]))
    down = np.exp(-EDGE_STRENGTH * np.maximum(edges[1:], edges[:-1]))
    solved: Any = values.astype(np.float64).copy()
    relax(solved, values.astype(np.float64), across, down, RESTART, OVERSHOOT, SWEEPS)
    return solved


class Piece(NamedTuple):
    """A mask that is empty outside a rectangle: bool array (rows, columns), and where its first pixel lies."""

    pixels: np.ndarray
    left: int
    top: int


def mask_in(spread: np.ndarray, box: np.ndarray, size: tuple[int, int]) -> Piece:
    """The mask of the object in a box.

    Parameters
    ----------
    spread : array (picture rows, picture columns)
        From `foreground`.
    box : array (4,)
    size : (width, height) of the image

    Returns
    -------
    Piece
        Not empty, and as large as the box. All of it where nothing in it stands out.
    """
    cv2 = require("cv2", extra="vision")
    # Compiled code is imported on first use.
    from bagwise.discovery.learning._cutting import large_parts, quantile

    width, height = size
    left, top, right, bottom = box.tolist()
    x1, y1 = math.floor(left), math.floor(top)
    shape = min(math.ceil(right), width) - x1, min(math.ceil(bottom), height) - y1
    # The small picture enlarged, but only where the box is: pixel centres of one lie at these places of the other.
    across, down = spread.shape[1] / width, spread.shape[0] / height
    places = np.array([[across, 0, (x1 + 0.5) * across - 0.5], [0, down, (y1 + 0.5) * down - 0.5]])
    how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    smooth = cv2.warpAffine(spread, places, shape, flags=how, borderMode=cv2.BORDER_REPLICATE)
    step = max(1, min(shape) // SAMPLED)
    above = cv2.compare(smooth, MASK_FROM * quantile(smooth[::step, ::step], BEST), cv2.CMP_GT)
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(above, connectivity=4)
    return Piece(large_parts(labels, statistics[:, cv2.CC_STAT_AREA], SMALLEST_PART, LEAST_FILLED), x1, y1)


def fitted_masks(image: ScoredImage, boxes: np.ndarray, trust: float) -> tuple[np.ndarray, list[str]]:
    """Masks of the object in some boxes of an image, and the boxes moved half-way to their masks.

    Parameters
    ----------
    image : ScoredImage
    boxes : array (n, 4)
    trust : float
        How much the class's evidence counts.

    Returns
    -------
    boxes : float64 array (n, 4)
    masks : list of str
        Inside the new boxes, as `encode_mask` writes them; empty where nothing is known of pixels.
    """
    # Compiled code is imported on first use.
    from bagwise.discovery.learning._cutting import extent

    fitted = boxes.astype(np.float64)
    if not image.maps.edges.size:
        return fitted, [""] * len(boxes)
    spread = foreground(image, trust, image.weight)
    masks = []
    for row, box in enumerate(boxes):
        pixels, left, top = mask_in(spread, box, image.size)
        held = zip(box.tolist(), (left, top, left, top), extent(pixels))
        x1, y1, x2, y2 = fitted[row] = [(side + (corner + place)) / 2 for side, corner, place in held]
        first, last = (math.floor(x1) - left, math.floor(y1) - top), (math.ceil(x2) - left, math.ceil(y2) - top)
        cut = pixels[first[1] : last[1], first[0] : last[0]]
        masks.append(encode_mask(cut, left + first[0], top + first[1], image.size))
    return fitted, masks
