"""What stands out in an image as a figure against its ground, whatever its class.

The map is the second output of the package's edge network (`NetworkEdges.edges_and_figure`), which learned it from a
class-agnostic teacher; see the model card. Its connected components are whole objects more often than any edge box is,
where the image has a clear subject.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from bagwise._utils.optional import require
from bagwise.discovery.proposals.edges import NetworkEdges, shrink_to_working_area


class Components(NamedTuple):
    """Connected parts of a figure map, largest first.

    Attributes
    ----------
    boxes : int32 array (n, 4)
        ``x1, y1, x2, y2`` in pixels, zero-based, exclusive at the end.
    shares : float32 array (n,)
        Share of the image's pixels that each component covers.
    """

    boxes: np.ndarray
    shares: np.ndarray


def figure_map(image: np.ndarray, network: NetworkEdges | None = None) -> np.ndarray:
    """How clearly each pixel belongs to the subject of an image.

    Parameters
    ----------
    image : uint8 array (h, w, 3)
        RGB. Large images are shrunk for the network, as `edge_boxes` does, and the map is enlarged again.
    network : NetworkEdges, default=the shipped network on one thread

    Returns
    -------
    float32 array (h, w) in [0, 1]
    """
    cv2 = require("cv2", extra="vision")
    height, width = image.shape[:2]
    _, figure = (network or _shipped_network()).edges_and_figure(shrink_to_working_area(image))
    if figure.shape == (height, width):
        return figure
    return np.asarray(cv2.resize(figure, (width, height), interpolation=cv2.INTER_LINEAR))


@cache
def _shipped_network() -> NetworkEdges:
    return NetworkEdges()


def components(figure: np.ndarray, threshold: float = 0.4) -> Components:
    """Connected parts (by side or corner) of a figure map above a threshold.

    Parameters
    ----------
    figure : float array (h, w)
    threshold : float, default=0.4

    Returns
    -------
    Components
        Largest first; of two equally large ones, the one met first from the top left. Empty where nothing is above.

    Examples
    --------
    >>> import numpy as np
    >>> figure = np.zeros((4, 10), np.float32)
    >>> figure[1:3, 1:3], figure[0:4, 6:9] = 0.5, 0.9
    >>> components(figure).boxes.tolist()
    [[6, 0, 9, 4], [1, 1, 3, 3]]
    >>> components(figure, threshold=0.6).shares.tolist()
    [0.30000001192092896]
    """
    cv2 = require("cv2", extra="vision")
    above = (figure > threshold).astype(np.uint8)
    _, _, statistics, _ = cv2.connectedComponentsWithStats(above, connectivity=8)
    left, top, width, height, area = statistics[1:].T
    # OpenCV numbers components by its own scan, which may change: order by what is seen.
    order = np.lexsort((left, top, -area))
    boxes = np.stack([left, top, left + width, top + height], 1)[order].astype(np.int32)
    return Components(boxes, (area[order] / figure.size).astype(np.float32))
