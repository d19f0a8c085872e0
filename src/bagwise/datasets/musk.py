"""MUSK 1 and 2: molecules (bags) in several shapes (instances), labelled by whether they smell of musk."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags


def load_musk1() -> tuple[Bags, NDArray[np.int64]]:
    """Load MUSK 1: 92 molecules, 47 of them musks, in 476 conformations of 166 shape features.

    Returns
    -------
    bags, y : Bags with the molecules' numbers as ids, and 1 for musks, 0 for the others

    References
    ----------
    Chapman and Jain: Musk (Version 1). UCI Machine Learning Repository, 1994, CC BY 4.0.
    """
    return _load("musk1")


def load_musk2() -> tuple[Bags, NDArray[np.int64]]:
    """Load MUSK 2: 102 molecules, 39 of them musks, in 6598 conformations of 166 shape features.

    Returns
    -------
    bags, y : Bags with the molecules' numbers as ids, and 1 for musks, 0 for the others

    References
    ----------
    Chapman and Jain: Musk (Version 2). UCI Machine Learning Repository, 1994, CC BY 4.0.
    """
    return _load("musk2")


def _load(name: str) -> tuple[Bags, NDArray[np.int64]]:
    with files("bagwise.datasets").joinpath(f"data/{name}.npz").open("rb") as file, np.load(file) as arrays:
        bags = Bags.from_groups(arrays["conformations"].astype(np.float64), arrays["molecule"])
        return bags, arrays["musk"].astype(np.int64)
