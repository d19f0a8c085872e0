"""Boxes that probably hold an object: Edge Boxes (Zitnick and Dollár, 2014).

A box scores by the contours it holds wholly: edges inside, less those that a chain of similar edges ties to its rim.
The search itself is in edgeboxes.py.
"""

import numpy as np

from bagwise.discovery.proposals.edges import EdgeDetector, edge_normals, shrink_to_working_area, thin_edges

# Below this side there is no room for two windows.
SMALLEST_SIDE = 16


def edge_boxes(
    image: np.ndarray,
    detector: EdgeDetector,
    *,
    alpha: float = 0.65,
    beta: float = 0.55,
    min_score: float = 0.004,
    max_boxes: int = 400,
) -> tuple[np.ndarray, np.ndarray]:
    """Propose boxes for one image.

    Parameters
    ----------
    image : uint8 array (h, w, 3)
        RGB.
    detector : EdgeDetector
    alpha : float, default=0.65
        Overlap (IoU) of neighbouring windows of the search.
    beta : float, default=0.55
        Of two boxes that overlap more than this, the lower in score goes.
    min_score : float, default=0.004
        Boxes below are dropped.
    max_boxes : int, default=400

    Returns
    -------
    boxes : float32 array (n, 4)
        ``x1, y1, x2, y2``, zero-based, exclusive at the end, best found first; n is at most ``max_boxes``.
        An image without edges has one box: the whole of it.
    objectness : float32 array (n,)
        Above zero; the whole-image box of an image without edges has ``min_score``.
    """
    height, width = image.shape[:2]
    small = shrink_to_working_area(image)
    edges = detector(small) if min(small.shape[:2]) >= SMALLEST_SIDE else None
    return boxes_of_edges(edges, (width, height), alpha=alpha, beta=beta, min_score=min_score, max_boxes=max_boxes)


def boxes_of_edges(
    edges: np.ndarray | None,
    size: tuple[int, int],
    *,
    alpha: float = 0.65,
    beta: float = 0.55,
    min_score: float = 0.004,
    max_boxes: int = 400,
) -> tuple[np.ndarray, np.ndarray]:
    """`edge_boxes` of an image whose edges are known.

    Parameters
    ----------
    edges : float32 array (rows, columns), or None
        Of the image, shrunk or not; None for an image too small to look for edges in.
    size : (width, height) of the image
    """
    width, height = size
    if edges is not None:
        # Compiled code is imported on first use.
        from bagwise.discovery.proposals.search import search_boxes

        normals = edge_normals(edges)
        found, objectness = search_boxes(
            thin_edges(edges, normals), normals, alpha=alpha, beta=beta, min_score=min_score, max_boxes=max_boxes
        )
        if len(found):
            stretch = np.array([width / edges.shape[1], height / edges.shape[0]] * 2)
            return (found * stretch).astype(np.float32), objectness
    return np.array([[0, 0, width, height]], np.float32), np.array([min_score], np.float32)
