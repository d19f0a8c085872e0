"""Masks as polygons, which every tool reads."""

import numpy as np

from bagwise._utils.optional import require
from bagwise._utils.rle import decode_mask

TOLERANCE = 0.5  # pixels that a simplified outline may stray


def polygons_of(mask: str, width: int, height: int) -> list[np.ndarray]:
    """Outlines of the parts of a mask.

    Parameters
    ----------
    mask : str
        As the run folder has it.
    width, height : int
        Of the image.

    Returns
    -------
    list of float64 arrays (n, 2)
        Points x, y in pixels, three or more each; the largest part first, without holes. Empty for an empty mask.
    """
    if not mask:
        return []
    cv2 = require("cv2", extra="vision")
    pixels = decode_mask(mask, height, width)
    # Outlines run through the corners of pixels, not through their centres: trace the corners that the mask touches.
    corners = np.zeros((height + 1, width + 1), np.uint8)
    for down in (0, 1):
        for right in (0, 1):
            corners[down : down + height, right : right + width] |= pixels
    outlines, _ = cv2.findContours(corners, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    found = []
    for outline in sorted(outlines, key=cv2.contourArea, reverse=True):
        simple = cv2.approxPolyDP(outline, TOLERANCE, closed=True)[:, 0]
        if len(simple) >= 3:
            found.append(simple.astype(np.float64))
    return found


def area_of(outline: np.ndarray) -> float:
    """Area inside a polygon (n, 2).

    Examples
    --------
    >>> area_of(np.array([[0, 0], [4, 0], [4, 3]]))
    6.0
    """
    x, y = outline.T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)
