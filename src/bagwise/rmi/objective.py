r"""The objective of RMI-SVM and its gradient: the mathematics, in plain NumPy.

With z_ij = w·x_ij + b + prior_ij, p = 1 / (1 + exp(-z)) and the noisy-OR P_i = 1 - Π_j (1 - p_ij):

    λ/2 (‖w‖² + b²) + Σ_i s_i [ β L_bag_i + 1/m_i Σ_j max(0, m0 - sgn(p_ij - p0) z_ij) ] / Σ_i s_i

where L_bag is the cross-entropy of the bag label and P. Everything is written in terms of S_i = Σ_j softplus(z_ij) =
-log(1 - P_i), because P itself saturates in bags of hundreds of instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

FloatArray = NDArray[np.float64]

# Below this score softplus(z) = exp(z) to the last bit that matters, and bags are treated on the log scale.
FAR_BELOW = -30.0


@dataclass(frozen=True)
class Loss:
    """The numbers that define RMI-SVM's objective, with the paper's letters in words."""

    lam: float  # λ, weight of the regulariser
    beta: float  # β, weight of the bag loss against the instance loss
    margin: float  # m0, margin of the instance hinge
    threshold: float = 0.5  # p0, probability from which an instance counts as positive

    @property
    def z_threshold(self) -> float:
        """The threshold as a score: p >= p0 exactly where z >= this."""
        return float(logit(self.threshold))


def softplus(z: FloatArray) -> FloatArray:
    """log(1 + exp(z)) without overflow."""
    return np.logaddexp(0.0, z)


def bag_log_odds(z: FloatArray, offsets: NDArray[np.int64]) -> FloatArray:
    """(n_bags, ...) log(P / (1 - P)) of the noisy-OR of instance scores z of shape (n_instances, ...).

    That is log(exp(S) - 1) with S = Σ softplus(z), and log Σ exp(z) where all scores are so low that S underflows.
    """
    starts = offsets[:-1]
    highest = np.maximum.reduceat(z, starts, axis=0)
    shifted = np.exp(z - np.repeat(highest, np.diff(offsets), axis=0))
    lowest_case = highest + np.log(np.add.reduceat(shifted, starts, axis=0))
    total = np.maximum(np.add.reduceat(softplus(z), starts, axis=0), np.finfo(np.float64).tiny)
    return np.where(highest < FAR_BELOW, lowest_case, total + np.log(-np.expm1(-total)))


def instance_coefficients(
    z: FloatArray, offsets: NDArray[np.int64], target: NDArray[np.bool_], loss: Loss
) -> tuple[FloatArray, FloatArray]:
    """Loss of each bag (without the regulariser) and minus its derivative by each instance's score.

    Parameters
    ----------
    z : (n_instances,) scores, prior included
    target : (n_bags,) whether the bag is positive

    Returns
    -------
    (n_bags,) losses and (n_instances,) coefficients c: the gradient of bag i is -Σ_j c_ij x_ij.
    """
    sizes = np.diff(offsets)
    log_odds = bag_log_odds(z, offsets)
    # -log P = softplus(-log odds) and -log(1 - P) = softplus(log odds)
    bag_loss = softplus(np.where(target, -log_odds, log_odds))
    # p (1 - P) / P for positive bags, on the log scale because both factors may be out of range; -p for negative ones
    pull = np.exp(-softplus(-z) - np.repeat(log_odds, sizes))
    bag_term = np.where(np.repeat(target, sizes), pull, -expit(z))
    sign = np.where(z >= loss.z_threshold, 1.0, -1.0)
    slack = loss.margin - sign * z
    hinge_loss = np.add.reduceat(np.maximum(slack, 0.0), offsets[:-1]) / sizes
    coefficients = loss.beta * bag_term + np.where(slack > 0, sign / np.repeat(sizes, sizes), 0.0)
    return loss.beta * bag_loss + hinge_loss, coefficients


def value_and_gradient(
    w: FloatArray,
    instances: Any,
    offsets: NDArray[np.int64],
    target: NDArray[np.bool_],
    loss: Loss,
    *,
    prior: FloatArray | None = None,
    bag_weight: FloatArray | None = None,
    intercept: bool = True,
) -> tuple[float, FloatArray]:
    """The objective and its gradient at w, whose last entry is b when there is an intercept.

    Parameters
    ----------
    instances : (n_instances, d) array or CSR matrix
    bag_weight : (n_bags,) weights with mean 1, by default all 1
    """
    direction = w[:-1] if intercept else w
    z = np.asarray(instances @ direction, dtype=np.float64)
    if intercept:
        z += w[-1]
    if prior is not None:
        z += prior
    losses, coefficients = instance_coefficients(z, offsets, target, loss)
    share = np.full(len(target), 1.0 / len(target)) if bag_weight is None else bag_weight / len(target)
    coefficients *= np.repeat(share, np.diff(offsets))
    gradient = loss.lam * w
    gradient[: len(direction)] -= instances.T @ coefficients
    if intercept:
        gradient[-1] -= coefficients.sum()
    return 0.5 * loss.lam * float(w @ w) + float(share @ losses), gradient
