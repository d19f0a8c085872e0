"""miVLAD: a bag as what its instances leave over when each is represented by the nearest centre."""

from __future__ import annotations

import numpy as np

from bagwise._utils.mixture import cluster_centres, nearest
from bagwise.bags import Bags
from bagwise.base import FloatArray
from bagwise.embedded_space._codes import BagCoder, BagCodeSVC


class MiVLADTransformer(BagCoder):
    """Turn each bag into its vector of locally aggregated descriptors.

    Instances are scaled, projected onto their leading principal directions, and clustered by k-means. A bag becomes
    the sum of its instances' differences to the nearest centre, for each centre apart, then the signed square root,
    then unit length.

    Parameters
    ----------
    n_components : int
        Number of clusters.
    energy, scaling, random_state
        See `MiFVTransformer`.

    Attributes
    ----------
    projection_ : Projection
    centres_ : (n_components, n_directions) array

    References
    ----------
    Xiu-Shen Wei, Jianxin Wu, Zhi-Hua Zhou: Scalable Algorithms for Multi-Instance Learning. IEEE Transactions on
    Neural Networks and Learning Systems 28, 2017.
    """

    def _fit_codebook(self, x: FloatArray, rng: np.random.RandomState, weight: FloatArray | None) -> None:
        self.centres_ = cluster_centres(x, self.n_components, rng, weight)

    def _codes(self, x: FloatArray, bags: Bags) -> FloatArray:
        return vlad_vectors(x, bags.offsets, self.centres_)


class MiVLAD(BagCodeSVC):
    """Linear support vector machine on vectors of locally aggregated descriptors (miVLAD).

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    n_components, energy, scaling, random_state
        See `MiVLADTransformer`.
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
    coder_ : MiVLADTransformer

    References
    ----------
    Xiu-Shen Wei, Jianxin Wu, Zhi-Hua Zhou: Scalable Algorithms for Multi-Instance Learning. IEEE Transactions on
    Neural Networks and Learning Systems 28, 2017.

    Examples
    --------
    >>> from bagwise import MiVLAD
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> MiVLAD(random_state=0).fit(bags, y).predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    coder = MiVLADTransformer


def vlad_vectors(x: FloatArray, offsets: np.ndarray, centres: FloatArray) -> FloatArray:
    """(n_bags, k d) sums of the differences between the instances of a bag and their nearest centres."""
    k, d = centres.shape
    code = nearest(x, centres)
    left_over = x - centres[code]
    n = len(offsets) - 1
    bag = np.repeat(np.arange(n), np.diff(offsets))
    # One cell for each bag and centre; the instances of a cell are made adjacent and summed.
    cell = bag * k + code
    order = np.argsort(cell, kind="stable")
    cells, begins = np.unique(cell[order], return_index=True)
    out = np.zeros((n * k, d))
    out[cells] = np.add.reduceat(left_over[order], begins)
    return out.reshape(n, k * d)
