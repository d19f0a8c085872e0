"""Things on plain ground: whatever a strong closed outline holds, where there are hardly any other edges.

A network that learned what stands out may leave away half of a pair of scissors that any child would outline. Where
nearly all strong edges of an image belong to outlines that are clear of its frame, the ground is plain and what the
outlines hold is the figure.
"""

from typing import NamedTuple

import numpy as np

from bagwise._utils.compiled import loop
from bagwise._utils.optional import require

STRONG = 0.3  # strength of an edge that closes an outline
FAINTER = (0.25, 0.2, 0.15)  # strengths at which a strong outline continues where the ground is plain
PLAIN = 0.9  # share of the strong edges that must belong to outlines clear of the frame
SMALLEST = 0.002  # share of the image that an outline holds at least
SURE = 0.9  # value of the figure map inside such an outline


@loop
def walls(edges):
    """The weakest wall that parts each pixel from the frame: over all paths to it, the least of their strongest edges.

    Parameters
    ----------
    edges : float64 array (rows, columns)

    Returns
    -------
    float64 array (rows, columns)
    """
    rows, columns = edges.shape
    wall = np.full((rows, columns), np.inf)
    wall[0], wall[-1], wall[:, 0], wall[:, -1] = edges[0], edges[-1], edges[:, 0], edges[:, -1]
    changed = True
    while changed:
        changed = False
        for direction in range(2):
            for i in range(rows):
                r = i if direction == 0 else rows - 1 - i
                for j in range(columns):
                    c = j if direction == 0 else columns - 1 - j
                    least = np.inf
                    if r > 0:
                        least = min(least, wall[r - 1, c])
                    if r < rows - 1:
                        least = min(least, wall[r + 1, c])
                    if c > 0:
                        least = min(least, wall[r, c - 1])
                    if c < columns - 1:
                        least = min(least, wall[r, c + 1])
                    value = max(least, edges[r, c])
                    if value < wall[r, c]:
                        wall[r, c] = value
                        changed = True
    return wall


class Outlines(NamedTuple):
    """What strong outlines hold that are clear of the frame.

    Attributes
    ----------
    held : bool array (rows, columns)
        Pixels that belong to one of them.
    boxes : int64 array (n, 4)
        ``x1, y1, x2, y2`` of each, exclusive at the end.
    shares : float64 array (n,)
        Of all strong edges of the image, those that belong to each.
    """

    held: np.ndarray
    boxes: np.ndarray
    shares: np.ndarray

    @property
    def on_plain_ground(self) -> bool:
        """Whether hardly any strong edge belongs to something else."""
        return bool(self.shares.sum() >= PLAIN)


def outlines(edges: np.ndarray) -> Outlines:
    """Closed outlines among the edges, uint8 (rows, columns), 255 for one.

    On plain ground a thing's thin or pale end has a faint outline. What such an outline closes around belongs to the
    strong one it touches, down to the faintest level at which nothing runs into the frame.
    """
    strength = edges / 255
    wall = walls(strength)
    held = wall > STRONG
    found = _clear_of_the_frame(held, strength)
    if not found.on_plain_ground:
        return found
    for level in FAINTER:
        wider = _clear_of_the_frame(held | _filled(wall > level), strength)
        if not wider.on_plain_ground:
            break
        found = wider
    return found


def _filled(held: np.ndarray) -> np.ndarray:
    """What is closed around, without mere lines, and without the rim that a blurred edge has."""
    cv2 = require("cv2", extra="vision")
    core = cv2.erode(held.astype(np.uint8), np.ones((5, 5), np.uint8))
    return np.asarray(cv2.dilate(core, np.ones((3, 3), np.uint8)) > 0)


def _clear_of_the_frame(held: np.ndarray, strength: np.ndarray) -> Outlines:
    """Connected pixels that do not reach the frame, and their strong edges."""
    cv2 = require("cv2", extra="vision")
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(held.astype(np.uint8), connectivity=8)
    rows, columns = held.shape
    left, top, width, height, area = statistics.T.astype(np.int64)
    clear = (left > 0) & (top > 0) & (left + width < columns) & (top + height < rows) & (area >= SMALLEST * held.size)
    clear[0] = False  # the ground
    strong = strength > STRONG
    total = strength[strong].sum()
    each = np.bincount(labels[strong], strength[strong], minlength=len(area))
    clear &= each > 0
    boxes = np.stack([left, top, left + width, top + height], 1)[clear]
    return Outlines(clear[labels], boxes, each[clear] / total if total else np.zeros(len(boxes)))


def with_outlines(figure: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The figure map, and on plain ground what outlines hold.

    Parameters
    ----------
    figure, edges : uint8 arrays (rows, columns)
        255 for one.

    Returns
    -------
    uint8 array (rows, columns)
        Nowhere below ``figure``.
    """
    found = outlines(edges)
    if not found.on_plain_ground:
        return figure
    return np.where(found.held, np.maximum(figure, round(255 * SURE)), figure).astype(np.uint8)


def only_outline(edges: np.ndarray) -> np.ndarray | None:
    """The box, (4,), of the one outline to which nearly all strong edges belong; None where there is no such outline.

    Nothing else is to be seen, so this is the object, and its border is known to the pixel.
    """
    found = outlines(edges)
    if found.shares.max(initial=0) < PLAIN:
        return None
    return found.boxes[found.shares.argmax()]
