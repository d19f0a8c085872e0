r"""The objective of RMI-SVM and its gradient: the mathematics, in plain NumPy.

With z_ij = w·x_ij + b + prior_ij, p = 1 / (1 + exp(-z)) and the noisy-OR P_i = 1 - Π_j (1 - p_ij):

    λ/2 (‖w‖² + b²) + Σ_i s_i [ β L_bag_i + 1/m_i Σ_j max(0, m0 - sgn(p_ij - p0) z_ij) ] / Σ_i s_i

where L_bag is the cross-entropy of the bag label and P (see bagwise.pooling).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from bagwise.pooling import noisy_or_loss

FloatArray = NDArray[np.float64]


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
    bag_loss, bag_term = noisy_or_loss(z, offsets, target)
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
