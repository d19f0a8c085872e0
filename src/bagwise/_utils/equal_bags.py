"""Bags in an order that only their content decides, equal ones as one bag that weighs as much as all of them.

A method that draws bags, deals them out or searches step by step learns the same from them in whatever order they come,
and from a bag of weight two the same as from the bag twice, to the last bit: what it gets is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from bagwise.bags import Bags

# Digits of a bag's key: equal bags have equal keys, whatever the order in which sums are formed.
DIGITS_OF_KEY = 10
# A class weight of a thousand makes a bag no more than this many units.
MOST_UNITS = 100


def content_keys(bags: Bags) -> NDArray[np.float64]:
    """(n_bags,) one number for each bag along a fixed direction: equal bags have the same, others hardly ever."""
    direction = np.random.RandomState(0).randn(bags.n_features)
    projected = np.asarray(bags.instances @ direction, dtype=np.float64)
    # A mean alone would not tell bags apart that are the same but for their size.
    key = np.add.reduceat(projected, bags.offsets[:-1]) / bags.sizes + np.log(bags.sizes)
    return np.round(key / max(float(np.abs(key).max()), np.finfo(np.float64).tiny), DIGITS_OF_KEY)


def by_content(bags: Bags, y: NDArray, weight: NDArray[np.float64]) -> tuple[Bags, NDArray, NDArray[np.float64]]:
    """Bags sorted by their content, with labels and weights; of equal bags with equal labels only the first remains.

    Parameters
    ----------
    bags : Bags
    y : (n_bags,) labels
    weight : (n_bags,) array

    Returns
    -------
    bags, y, weight : the weight of a bag is the sum of those of its equals
    """
    key = content_keys(bags)
    label = np.unique(y, return_inverse=True)[1].ravel()
    order = np.lexsort((label, key))
    like_last = np.zeros(len(bags), dtype=bool)
    like_last[1:] = (np.diff(key[order]) == 0) & (np.diff(label[order]) == 0)
    # The first of its equals, for each bag. Bags that share a key are nearly always equal; their bytes decide.
    owner, seen = order.copy(), dict[tuple, int]()
    for i in np.flatnonzero(like_last | np.append(like_last[1:], False)):
        if not like_last[i]:
            seen = {}
        owner[i] = seen.setdefault(_bytes(bags, order[i]), order[i])
    total = np.bincount(owner, weights=weight[order], minlength=len(bags))
    kept = order[owner == order]
    if np.array_equal(kept, np.arange(len(bags))):
        return bags, y, weight
    return bags[kept], y[kept], total[kept]


def equal_units(weight: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.int64]:
    """Cut the bags into units of equal weight, from which a method that draws bags draws: the bag of each unit.

    Without weights every bag is one unit, in the order of the bags; a bag of weight two is two units, as the bag twice
    would be. The number of units is the sum of the weights, but never below the number of bags, because weights of a
    thousandth must not leave nothing to draw from, nor above MOST_UNITS times that number. Where weights are no
    multiples of a unit, chance decides between the two whole numbers nearest to a bag's share.
    """
    ends = np.cumsum(weight)
    n_units = int(np.clip(round(ends[-1]), len(weight), MOST_UNITS * len(weight)))
    at = (np.arange(n_units) + rng.uniform()) * (ends[-1] / n_units)
    return np.minimum(np.searchsorted(ends, at, side="right"), len(weight) - 1)


def _bytes(bags: Bags, i: int) -> tuple:
    """What only a bag with the very same instances, in the same order, has too."""
    rows = slice(bags.offsets[i], bags.offsets[i + 1])
    prior = b"" if bags.prior is None else bags.prior[rows].tobytes()
    x = bags.instances[rows]
    if not sparse.issparse(x):
        return prior, x.tobytes()
    return prior, x.indptr.tobytes(), x.indices.tobytes(), x.data.tobytes()
