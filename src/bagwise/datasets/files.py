"""The files of MIL data sets: what they hold, how they are read and written, and by what they are recognised.

``NAME.npz`` holds ``X``, or ``data, indices, indptr, shape`` of a CSR matrix; ``bag``, the bag of each row; ``y`` per
bag; and ``y_instance`` where the labels of instances are known. ``registry.txt`` names the content of each file that
the tables of the documentation were made with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.atomic import replacing
from bagwise._utils.npy import read_arrays
from bagwise.bags import Bags

CONVERTED = "converted_from"  # a file that `bagwise data convert` made says so


@dataclass(frozen=True)
class Problem:
    """A multiple-instance problem.

    Attributes
    ----------
    instances : array or CSR array (n_instances, n_features)
        Rows of a bag adjacent.
    bag : int64 array (n_instances,)
        From 0, ascending.
    y : int64 array (n_bags,)
        0 or 1.
    y_instance : int64 array (n_instances,) or None
    converted_from : str
        What the file was converted from; empty when it was not.
    """

    instances: Any
    bag: NDArray[np.int64]
    y: NDArray[np.int64]
    y_instance: NDArray[np.int64] | None = None
    converted_from: str = ""

    def as_bags(self) -> tuple[Bags, NDArray[np.int64], NDArray[np.int64] | None]:
        """Bags, their labels, and those of the instances where they are known."""
        return Bags.from_groups(self.instances, self.bag), self.y, self.y_instance

    def digest(self) -> str:
        """SHA-256 of the content, which neither the order of the bags nor that of the file's parts changes."""
        starts = np.flatnonzero(np.diff(self.bag, prepend=-1))
        ends = [*starts[1:].tolist(), len(self.bag)]
        bags = sorted(
            self._digest_of_bag(int(start), end, int(label)) for start, end, label in zip(starts, ends, self.y)
        )
        width = self.instances.shape[1]
        return hashlib.sha256(f"{self.instances.dtype.str} {width} ".encode() + b"".join(bags)).hexdigest()

    def _digest_of_bag(self, start: int, end: int, label: int) -> bytes:
        rows = self.instances[start:end]
        found = hashlib.sha256(f"{label} {end - start} ".encode())
        if sparse.issparse(rows):
            rows = rows.copy()
            rows.eliminate_zeros()
            rows.sort_indices()
            for part, kind in ((rows.indptr, np.int64), (rows.indices, np.int64), (rows.data, rows.dtype)):
                found.update(np.ascontiguousarray(part, dtype=kind).tobytes())
        else:
            found.update(np.ascontiguousarray(rows).tobytes())
        if self.y_instance is not None:
            found.update(np.ascontiguousarray(self.y_instance[start:end], dtype=np.int64).tobytes())
        return found.digest()


def read_problem(path: Path) -> Problem:
    """Read a ``.npz`` file; one sentence when it is none of ours."""
    try:
        arrays = read_arrays(path)
        if "X" in arrays:
            instances = arrays["X"]
        else:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            instances = sparse.csr_array(parts, shape=tuple(arrays["shape"]))
        labels = arrays["y_instance"].astype(np.int64) if "y_instance" in arrays else None
        converted = str(arrays[CONVERTED]) if CONVERTED in arrays else ""
        problem = Problem(instances, arrays["bag"].astype(np.int64), arrays["y"].astype(np.int64), labels, converted)
        _check(problem)
        return problem
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}): replace it") from error


def _check(problem: Problem) -> None:
    """Whether the parts of a problem fit together."""
    instances, bag, y = problem.instances, problem.bag, problem.y
    if instances.ndim != 2 or instances.dtype.kind not in "fiub" or bag.shape != instances.shape[:1] or y.ndim != 1:
        raise ValueError("instances, bags and labels do not fit together")
    if len(bag) == 0 or bag[0] != 0 or bag[-1] != len(y) - 1 or not np.isin(np.diff(bag), (0, 1)).all():
        raise ValueError("the bags of the instances are not numbered from 0 in their order")
    if problem.y_instance is not None and problem.y_instance.shape != bag.shape:
        raise ValueError("there is not one label for each instance")


def write_problem(problem: Problem, path: Path) -> None:
    """Write a ``.npz`` file, whole or not at all."""
    if sparse.issparse(problem.instances):
        matrix = problem.instances
        arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    else:
        arrays = {"X": problem.instances}
    arrays |= {"bag": problem.bag.astype(np.int32), "y": problem.y.astype(np.int8)}
    if problem.y_instance is not None:
        arrays["y_instance"] = problem.y_instance.astype(np.int8)
    if problem.converted_from:
        arrays[CONVERTED] = np.array(problem.converted_from)
    with replacing(path) as aside:
        parts: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
        np.savez_compressed(aside, **parts)


def known_digests() -> dict[str, str]:
    """The content of the files that the tables were made with, by name."""
    lines = files("bagwise.datasets").joinpath("registry.txt").read_text().splitlines()
    return dict(line.split() for line in lines)
