"""Multiple-instance problems made to order, with the truth about every instance.

The three tests follow the idea of Raff and Holt (Reproducibility in Multiple Instance Learning: A Case For Algorithmic
Unit Tests, NeurIPS 2023): training data on which a wrong assumption also fits, and test data on which it fails, so
that a score below one half tells a method that learned from the absence of an instance or from mere frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise.bags import Bags

RandomState = int | np.random.RandomState | None

# How far concepts lie from the background (standard normal), and the false trail further away.
CONCEPT_SHIFT = 6.0
TRAIL_SHIFT = -12.0


@dataclass(frozen=True)
class GeneratedBags:
    """Bags, their labels, and the truth about the instances (1 for those that make a bag positive)."""

    bags: Bags
    y: NDArray[np.int64]
    y_instance: NDArray[np.int64]


def make_single_concept(
    n_bags: int = 100,
    n_features: int = 10,
    *,
    bag_size: tuple[int, int] = (2, 10),
    shift: float = CONCEPT_SHIFT,
    random_state: RandomState = None,
) -> GeneratedBags:
    """Make standard normal instances, one of which in every positive bag is moved by ``shift`` along one axis.

    Parameters
    ----------
    bag_size : smallest and largest number of instances in a bag
    """
    rng = check_random_state(random_state)
    y = np.arange(n_bags) % 2
    sizes = rng.randint(bag_size[0], bag_size[1] + 1, size=n_bags)
    return _assemble(y, sizes, {0: y}, {0: shift}, n_features, rng)


def make_single_concept_test(
    n_bags: int = 200, n_features: int = 10, *, random_state: RandomState = None
) -> tuple[GeneratedBags, GeneratedBags]:
    """One concept makes a bag positive; in training, negative bags also carry a false trail.

    In the test data it is the positive bags that carry the trail. A method that took its absence for a sign of
    positive bags then scores below one half.

    Returns
    -------
    train, test
    """
    rng = check_random_state(random_state)
    y = np.arange(n_bags) % 2
    sizes = rng.randint(3, 11, size=n_bags)
    shifts = {0: CONCEPT_SHIFT, 1: TRAIL_SHIFT}
    train = _assemble(y, sizes, {0: y, 1: 1 - y}, shifts, n_features, rng)
    return train, _assemble(y, sizes, {0: y, 1: y}, shifts, n_features, rng)


def make_presence_test(
    n_bags: int = 200, n_features: int = 10, *, random_state: RandomState = None
) -> tuple[GeneratedBags, GeneratedBags]:
    """Two concepts must both be present; negative bags have one of them, and in training the false trail too.

    Beyond the standard assumption: methods that score instances one by one cannot tell the classes apart.

    Returns
    -------
    train, test
    """
    rng = check_random_state(random_state)
    y = np.arange(n_bags) % 2
    sizes = rng.randint(4, 13, size=n_bags)
    shifts = {0: CONCEPT_SHIFT, 1: CONCEPT_SHIFT, 2: TRAIL_SHIFT}
    lone = rng.randint(2, size=n_bags)
    concepts = {0: np.maximum(y, lone), 1: np.maximum(y, 1 - lone)}
    train = _assemble(y, sizes, {**concepts, 2: 1 - y}, shifts, n_features, rng)
    return train, _assemble(y, sizes, {**concepts, 2: y}, shifts, n_features, rng)


def make_threshold_test(
    n_bags: int = 200, n_features: int = 10, *, needed: int = 3, random_state: RandomState = None
) -> tuple[GeneratedBags, GeneratedBags]:
    """The concept must occur ``needed`` times or more; in training, positive bags are also larger.

    In the test data the negative bags are the larger ones, so that a method that went by size scores below one half.
    Negative bags hold the concept ``needed - 1`` times at most.

    Returns
    -------
    train, test
    """
    rng = check_random_state(random_state)
    y = np.arange(n_bags) % 2
    counts = np.where(y == 1, needed + rng.randint(3, size=n_bags), rng.randint(needed, size=n_bags))
    shifts = {0: CONCEPT_SHIFT}
    train = _assemble(y, needed + np.where(y == 1, 16, 6), {0: counts}, shifts, n_features, rng)
    return train, _assemble(y, needed + np.where(y == 1, 6, 16), {0: counts}, shifts, n_features, rng)


def _assemble(
    y: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: dict[int, NDArray[np.int64]],
    shifts: dict[int, float],
    n_features: int,
    rng: np.random.RandomState,
) -> GeneratedBags:
    """Make bags in which ``counts[axis][i]`` instances of bag i are moved by ``shifts[axis]`` along that axis."""
    if n_features < len(shifts):
        raise ValueError(f"n_features must be at least {len(shifts)}, one for each kind of instance, not {n_features}")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.randn(offsets[-1], n_features)
    concept = np.zeros(offsets[-1], dtype=np.int64)
    for i, start in enumerate(offsets[:-1]):
        rows = start + rng.permutation(sizes[i])
        for axis, count in counts.items():
            moved, rows = rows[: count[i]], rows[count[i] :]
            instances[moved, axis] += shifts[axis]
            if shifts[axis] != TRAIL_SHIFT:
                concept[moved] = 1
    return GeneratedBags(Bags.from_arrays(instances, offsets), y, concept)
