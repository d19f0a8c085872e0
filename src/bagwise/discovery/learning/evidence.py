"""Where in an image a class is: its model asked cell by cell, and what that says about boxes.

A model that was learned from boxes can be applied to every cell of the network's map. What comes out is a heat map of
the class. A box around the whole object holds most of the heat that is near; a box on a part leaves much of it
outside, and one that is too large holds much that is cold.
"""

import numpy as np
from scipy.special import expit

SMALLEST = 1e-3  # of a mean or a share whose logarithm is taken
WINDOW = 2.0  # times as wide and as high as the box: how far "near" goes


def soft_foreground(evidence: np.ndarray) -> np.ndarray:
    """Evidence as a share of foreground: logistic, one half midway between its median and its maximum.

    Parameters
    ----------
    evidence : array (rows, columns)
        Scores of cells, in log-odds.

    Returns
    -------
    float64 array (rows, columns) in (0, 1)

    Examples
    --------
    >>> soft_foreground(np.array([[0.0, 0.0, 4.0]])).round(2).tolist()
    [[0.12, 0.12, 0.88]]
    """
    middle = (np.median(evidence) + evidence.max()) / 2
    return expit(evidence.astype(np.float64) - middle)


def integral(picture: np.ndarray) -> np.ndarray:
    """Sums over the cells above and left of every corner: float64 (rows + 1, columns + 1)."""
    table = np.zeros((picture.shape[0] + 1, picture.shape[1] + 1))
    np.cumsum(np.cumsum(picture, axis=0, dtype=np.float64), axis=1, out=table[1:, 1:])
    return table


def box_sums(table: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Sum of a picture over each box; cells that a box covers in part count in part.

    Parameters
    ----------
    table : array (rows + 1, columns + 1)
        From `integral`.
    boxes : array (n, 4)
        In pixels of the image, inside it.
    size : (width, height) of the image

    Returns
    -------
    float64 array (n,)
        In cells of the picture.
    """
    rows, columns = table.shape[0] - 1, table.shape[1] - 1
    # Compiled code is imported on first use.
    from bagwise.discovery.learning._sums import sums_between

    x = boxes[:, [0, 2]] * (columns / size[0])
    y = boxes[:, [1, 3]] * (rows / size[1])
    return sums_between(table, x.astype(np.float64), y.astype(np.float64))


def windows(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Windows around boxes, `WINDOW` times as wide and as high, cut at the image's frame: (n, 4)."""
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = WINDOW / 2 * (boxes[:, 2:] - boxes[:, :2])
    return np.hstack([centre - half, centre + half]).clip(0, np.array(size * 2))


def inside_and_share(soft: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """How much of each box is foreground, and how much of the foreground near it the box holds.

    Parameters
    ----------
    soft : array (rows, columns)
        From `soft_foreground`.
    boxes : array (n, 4)
    size : (width, height) of the image

    Returns
    -------
    log_inside, log_share : float64 arrays (n,)
        Logarithms of the mean inside the box, and of the box's share of the sum within its window.
    """
    table = integral(soft)
    rows, columns = soft.shape
    held = box_sums(table, boxes, size)
    cells = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) * (rows * columns / (size[0] * size[1]))
    near = box_sums(table, windows(boxes, size), size)
    mean, share = held / np.maximum(cells, 1e-12), held / np.maximum(near, 1e-12)
    return np.log(mean + SMALLEST), np.log(share + SMALLEST)
