"""Fewer numbers per box: principal components of the averages of a network's map.

Two linear steps, both learned from a sample of boxes: first fewer channels, the same for every part of a box, which
can be applied to the map itself; then fewer columns of all parts together. The result has unit length.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bagwise._utils.atomic import replacing
from bagwise._utils.npy import read_arrays

NARROW_CHANNELS = 320
BOXES_AT_ONCE = 1024  # of the sample, in double precision
SMALLEST_DEVIATION = 1e-3  # of a channel that (almost) never fires
FIELDS = ("mean", "channels", "columns", "offset")


class Algebra(NamedTuple):
    """What takes nearly all of the time of learning a reduction, done here or elsewhere.

    Attributes
    ----------
    product : callable
        Of two float64 matrices.
    gram : callable
        From float64 rows (n, width) the products of their columns with each other, (width, width).
    axes : callable
        From such a matrix its eigenvectors, (width, width), by rising eigenvalue.
    """

    product: Callable[[np.ndarray, np.ndarray], np.ndarray]
    gram: Callable[[np.ndarray], np.ndarray]
    axes: Callable[[np.ndarray], np.ndarray]


HERE = Algebra(np.matmul, lambda rows: rows.T @ rows, lambda covariance: np.linalg.eigh(covariance)[1])


@dataclass(frozen=True)
class Reduction:
    """A fitted reduction.

    Attributes
    ----------
    mean : float32 array (channels,)
    channels : float32 array (channels, k)
        From z-scored channels to their principal components.
    columns : float32 array (parts, k, d)
        From the parts' components, the whole box's average among them, to the final columns.
    offset : float32 array (d,)
    """

    mean: np.ndarray
    channels: np.ndarray
    columns: np.ndarray
    offset: np.ndarray

    @classmethod
    def fit(cls, sample: np.ndarray, n_components: int, algebra: Algebra = HERE) -> "Reduction":
        """Learn from the averages of a sample of boxes.

        Parameters
        ----------
        sample : float32 array (n, parts, channels)
            Averages over the parts of each box.
        n_components : int
            Columns wanted; there are never more than boxes in the sample, or columns before.
        algebra : Algebra
        """
        n, parts, width = sample.shape
        blocks = [sample[start : start + BOXES_AT_ONCE] for start in range(0, n, BOXES_AT_ONCE)]
        mean = sample.mean(axis=(0, 1), dtype=np.float64)
        products = np.zeros((width, width))
        for block in blocks:
            rows = (block - mean).reshape(-1, width)
            products += algebra.gram(rows)
        products /= n * parts
        deviation = np.maximum(np.sqrt(products.diagonal()), SMALLEST_DEVIATION)
        correlation = products / np.outer(deviation, deviation)
        channels = _axes(correlation, min(NARROW_CHANNELS, n * parts), algebra) / deviation[:, None]
        # One large product for each block: NumPy makes a small one for each box where boxes have an axis of their own.
        narrow = [algebra.product((block - mean).reshape(-1, width), channels) for block in blocks]
        columns = _with_whole(np.concatenate(narrow).reshape(n, parts, -1)).reshape(n, -1)
        offset = columns.mean(axis=0)
        axes = principal_axes(columns - offset, n_components, algebra)
        # The whole box's average is the mean of its parts, so its weights can be handed to the parts.
        by_part = axes.reshape(-1, channels.shape[1], axes.shape[1])
        if parts > 1:
            by_part = by_part[1:] + by_part[:1] / parts
        return cls(*(np.ascontiguousarray(a, np.float32) for a in (mean, channels, by_part, offset @ axes)))

    def narrow(self, rows: np.ndarray) -> np.ndarray:
        """Fewer channels: float32 (..., channels) to (..., k)."""
        return (rows - self.mean) @ self.channels

    def finish(self, parts: np.ndarray) -> np.ndarray:
        """Final vectors of unit length, float32 (n, d), from averages of narrowed channels (n, parts, k)."""
        columns = self.columns.reshape(-1, self.columns.shape[2])
        return unit(np.ascontiguousarray(parts).reshape(len(parts), len(columns)) @ columns - self.offset)

    def finish_alike(self, average: np.ndarray) -> np.ndarray:
        """The same for boxes whose parts all have one average (n, k)."""
        return unit(average @ self.columns.sum(axis=0) - self.offset)

    def save(self, path: Path) -> None:
        """Write to a .npz file, atomically."""
        with replacing(path) as aside, open(aside, "wb") as file:
            np.savez(file, **{name: getattr(self, name) for name in FIELDS})

    @classmethod
    def load(cls, path: Path) -> "Reduction":
        """Read what ``save`` wrote."""
        try:
            arrays = read_arrays(path)
            return cls(*(arrays[name] for name in FIELDS))
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{path} is damaged ({error}); delete its folder to start again") from None


def principal_axes(rows: np.ndarray, count: int, algebra: Algebra = HERE) -> np.ndarray:
    """Directions of largest variance of centred rows: (width, at most count), largest first, signs fixed."""
    return _axes(algebra.gram(rows) / len(rows), min(count, len(rows)), algebra)


def _axes(covariance: np.ndarray, count: int, algebra: Algebra) -> np.ndarray:
    axes = algebra.axes(covariance)[:, ::-1][:, :count]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return axes * np.sign(largest)


def _with_whole(parts: np.ndarray) -> np.ndarray:
    """(n, parts, k) with the mean of the parts put first, where there is more than one."""
    return parts if parts.shape[1] == 1 else np.concatenate([parts.mean(axis=1, keepdims=True), parts], axis=1)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows divided by their length; rows of zeros stay."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(length, np.finfo(np.float32).tiny)
