"""miFV: a bag as the Fisher vector of its instances under a mixture of Gaussians."""

from __future__ import annotations

import numpy as np

from bagwise._utils.mixture import ROWS_PER_BLOCK, Mixture
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.embedded_space._codes import BagCoder, BagCodeSVC


class MiFVTransformer(BagCoder):
    """Turn each bag into its Fisher vector.

    Instances are scaled and projected onto their leading principal directions, and a mixture of Gaussians is fitted
    to them all. A bag becomes the gradient of its mean log-likelihood by the means and standard deviations of the
    mixture, each made comparable by the Fisher information, then the signed square root, then unit length.

    Parameters
    ----------
    n_components : int
        Number of Gaussians.
    energy : float
        Share of the variance that the projection keeps.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    random_state : int, RandomState or None
        Where k-means starts, from which the mixture is fitted.

    Attributes
    ----------
    projection_ : Projection
    mixture_ : Mixture

    References
    ----------
    Xiu-Shen Wei, Jianxin Wu, Zhi-Hua Zhou: Scalable Multi-Instance Learning. ICDM 2014.
    """

    def _fit_codebook(self, x: FloatArray, rng: np.random.RandomState, weight: FloatArray | None) -> None:
        self.mixture_ = Mixture.fit(x, self.n_components, rng, weight=weight)

    def _codes(self, x: FloatArray, bags: Bags) -> FloatArray:
        return fisher_vectors(x, bags.offsets, self.mixture_)


class MiFV(BagCodeSVC):
    """Linear support vector machine on the Fisher vectors of bags (miFV).

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    n_components, energy, scaling, random_state
        See `MiFVTransformer`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on the same codes.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    Attributes
    ----------
    coef_ : (n_problems, n_codes) array
    intercept_ : (n_problems,) array
    coder_ : MiFVTransformer

    References
    ----------
    Xiu-Shen Wei, Jianxin Wu, Zhi-Hua Zhou: Scalable Multi-Instance Learning. ICDM 2014.

    Examples
    --------
    >>> from bagwise import MiFV
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> MiFV(random_state=0).fit(bags, y).predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    coder = MiFVTransformer


def fisher_vectors(x: FloatArray, offsets: np.ndarray, mixture: Mixture) -> FloatArray:
    """(n_bags, 2 k d) derivatives by the means, then by the standard deviations, for one component after the other.

    Parameters
    ----------
    x : (n_instances, d) array
    offsets : (n_bags + 1,) array
        Bag i holds the rows offsets[i] to offsets[i + 1].
    mixture : Mixture of k components
    """
    n, k, d = len(offsets) - 1, *mixture.means.shape
    mass, first, second = np.zeros((n, k)), np.zeros((n, k, d)), np.zeros((n, k, d))
    bag = np.repeat(np.arange(n), np.diff(offsets))
    for start in range(0, len(x), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        posteriors = mixture.posteriors(x[rows])
        # Where a bag begins inside the block: sums over bags, also over those that the block cuts.
        here, begins = np.unique(bag[rows], return_index=True)
        mass[here] += np.add.reduceat(posteriors, begins)
        for c in range(k):
            weighted = posteriors[:, c : c + 1] * x[rows]
            first[here, c] += np.add.reduceat(weighted, begins)
            second[here, c] += np.add.reduceat(weighted * x[rows], begins)
    size = np.diff(offsets)[:, None, None]
    mass = mass[:, :, None]
    deviation = np.sqrt(mixture.variances)
    by_mean = (first - mass * mixture.means) / deviation
    squared = second - 2 * first * mixture.means + mass * mixture.means**2
    by_deviation = (squared / mixture.variances - mass) / np.sqrt(2)
    both = np.stack([by_mean, by_deviation], axis=1) / size[..., None] / np.sqrt(mixture.weights)[:, None]
    return both.transpose(0, 2, 1, 3).reshape(n, -1)
