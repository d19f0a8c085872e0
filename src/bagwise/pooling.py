r"""From the scores of instances to that of their bag, with gradients.

The noisy-OR: a bag is positive unless all of its instances are negative, each on its own account,

    P_i = 1 - Π_j (1 - p_ij),   p_ij = 1 / (1 + exp(-z_ij)).

Everything is written in terms of S_i = Σ_j softplus(z_ij) = -log(1 - P_i), because P itself saturates in bags of
hundreds of instances.

Scores z are arrays (n_instances,) or (n_instances, n_problems) in the order of ``bags.instances``; ``offsets`` are
those of the bags.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

FloatArray = NDArray[np.float64]

# Below this score softplus(z) = exp(z) to the last bit that matters, and bags are treated on the log scale.
FAR_BELOW = -30.0


def softplus(z: FloatArray) -> FloatArray:
    """log(1 + exp(z)) without overflow."""
    return np.logaddexp(0.0, z)


def noisy_or_log_odds(z: FloatArray, offsets: NDArray[np.int64]) -> FloatArray:
    """(n_bags, ...) log(P / (1 - P)) of the noisy-OR.

    That is log(exp(S) - 1) with S = Σ softplus(z), and log Σ exp(z) where all scores are so low that S underflows.
    """
    starts = offsets[:-1]
    highest = np.maximum.reduceat(z, starts, axis=0)
    shifted = np.exp(z - np.repeat(highest, np.diff(offsets), axis=0))
    lowest_case = highest + np.log(np.add.reduceat(shifted, starts, axis=0))
    total = np.maximum(np.add.reduceat(softplus(z), starts, axis=0), np.finfo(np.float64).tiny)
    return np.where(highest < FAR_BELOW, lowest_case, total + np.log(-np.expm1(-total)))


def noisy_or_loss(
    z: FloatArray, offsets: NDArray[np.int64], target: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Cross-entropy of each bag's label under the noisy-OR, and minus its derivative by each instance's score.

    Parameters
    ----------
    z : (n_instances,) scores
    target : (n_bags,) whether the bag is positive

    Returns
    -------
    (n_bags,) losses and (n_instances,) pulls: p (1 - P) / P in positive bags, -p in negative ones.
    """
    sizes = np.diff(offsets)
    log_odds = noisy_or_log_odds(z, offsets)
    # -log P = softplus(-log odds) and -log(1 - P) = softplus(log odds)
    loss = softplus(np.where(target, -log_odds, log_odds))
    # On the log scale, because both factors of p (1 - P) / P may be out of range.
    pull = np.exp(-softplus(-z) - np.repeat(log_odds, sizes))
    return loss, np.where(np.repeat(target, sizes), pull, -expit(z))


def size_prior(offsets: NDArray[np.int64]) -> FloatArray:
    """(n_bags,) -log m_i: added to the scores, it makes the noisy-OR blind to the number of instances.

    The expected number of positive instances, Σ_j exp(z_ij), becomes their mean; with equal scores all bags have the
    same probability, however large they are, to within what (1 - p/m)^m differs from exp(-p).
    """
    return -np.log(np.diff(offsets))
