"""miGraph and MIGraph: kernels that respect how the instances of a bag relate to each other."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._utils.matrices import in_form_of
from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.bag_space.graph_edges import EdgeMap, bag_neighbours, edge_sums
from bagwise.bag_space.kernels import self_kernel, set_kernel
from bagwise.bag_space.svm import GAUSSIAN_CONSTRAINTS, BagKernelSVC, SetKernelSVC, gaussian_width
from bagwise.bags import Bags
from bagwise.base import FloatArray


class MiGraphSVC(SetKernelSVC):
    """Support vector machine with the miGraph kernel.

    As MI-Kernel, but instances that resemble each other share their say: each instance has one over the number of
    instances of its bag that lie within a threshold, so that a cluster counts about as much as a lone instance.

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    gamma : float, "scale" or "distance", default "distance"
        Width of the Gaussian kernel exp(-γ ‖x - y‖²); see `MIKernelSVC`.
    gamma_factor : float, default 2
        What "scale" and "distance" are multiplied by.
    normalization : {"average", "root", "feature"}
        Divide the sum by the sums of the weights of both bags, as published; by the roots of these sums, as in the
        authors' program, so that bags of many clusters weigh more (with about a tenth of C); or by the norms of both
        bags in feature space, so that each bag has kernel 1 with itself.
    threshold : float
        Two instances are neighbours when their distance is below this many times the mean distance in their bag;
        the authors' is 1. With 0 all instances count alike, as in MI-Kernel.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on parts of the same kernel matrix.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    Attributes
    ----------
    dual_coef_, intercept_, support_, support_instances_, support_offsets_, gamma_
        See `MIKernelSVC`.
    support_weight_ : (n,) array
        Weights of the instances of the support bags; they sum to one in each bag.

    References
    ----------
    Zhi-Hua Zhou, Yu-Yin Sun, Yu-Feng Li: Multi-Instance Learning by Treating Instances As Non-I.I.D. Samples.
    ICML 2009.

    Examples
    --------
    >>> from bagwise import MiGraphSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> MiGraphSVC().fit(bags, y).predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        **SetKernelSVC._parameter_constraints,
        "normalization": [StrOptions({"average", "root", "feature"})],
        "threshold": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 10.0,
        gamma: float | str = "distance",
        *,
        gamma_factor: float = 2.0,
        normalization: str = "average",
        threshold: float = 0.5,
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.normalization = normalization
        self.threshold = threshold
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _instance_weights(self, bags: Bags) -> FloatArray:
        weight = np.ones(bags.n_instances)
        for i in np.flatnonzero(bags.sizes > 1):
            _, near = bag_neighbours(bags[i], self.threshold)
            weight[bags.offsets[i] : bags.offsets[i + 1]] = 1 / (1 + near.sum(axis=1))
        return weight

    def _norm(self, bags: Bags, weight: FloatArray) -> FloatArray:
        if self.normalization == "root":
            return np.sqrt(np.add.reduceat(weight, bags.offsets[:-1]))
        return super()._norm(bags, weight)


class MIGraphSVC(BagKernelSVC):
    """Support vector machine with the MIGraph kernel.

    A bag is a graph: its instances are nodes, joined where they are close. Two bags are compared by a Gaussian kernel
    over all pairs of nodes plus another over all pairs of edges. An edge is described by the degrees of its ends and
    by its share in the weight of all edges there. An edge has no direction: the kernel of two edges is the mean over
    both directions of each, so that the order of the instances does not matter.

    Parameters
    ----------
    C : float
        Penalty of the support vector machine.
    gamma : float, "scale" or "distance", default "distance"
        Width of the Gaussian kernel of the nodes; see `MIKernelSVC`.
    gamma_factor : float, default 2
        What "scale" and "distance" are multiplied by.
    edge_gamma : float
        Width of the Gaussian kernel of the edges, at most 10; all four numbers that describe an edge are between 0
        and 1.
    threshold : float
        Two instances are joined when their distance is below this many times the mean distance in their bag;
        the authors' is 1.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    calibrate : bool, default=True
        Turn scores into log-odds by out-of-fold scores of the training bags, for `predict_proba`: five more machines
        on parts of the same kernel matrix.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    Attributes
    ----------
    dual_coef_, intercept_, support_, support_instances_, support_offsets_, gamma_
        See `MIKernelSVC`.
    support_edges_ : (n_support, n_mapped) array
        The edges of each support bag, mapped so that the inner product is the sum of the edge kernel, and summed.

    References
    ----------
    Zhi-Hua Zhou, Yu-Yin Sun, Yu-Feng Li: Multi-Instance Learning by Treating Instances As Non-I.I.D. Samples.
    ICML 2009.

    Examples
    --------
    >>> from bagwise import MIGraphSVC
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> MIGraphSVC().fit(bags, y).predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints = {  # noqa: RUF012
        **BagKernelSVC._parameter_constraints,
        **GAUSSIAN_CONSTRAINTS,
        "threshold": [Interval(Real, 0, None, closed="left")],
        "edge_gamma": [Interval(Real, 0, 10, closed="right")],
    }

    def __init__(
        self,
        C: float = 10.0,
        gamma: float | str = "distance",
        *,
        gamma_factor: float = 2.0,
        edge_gamma: float = 1.0,
        threshold: float = 0.5,
        scaling: str | None = "auto",
        calibrate: bool = True,
        class_weight: dict | str | None = None,
        positive: Any = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.edge_gamma = edge_gamma
        self.threshold = threshold
        self.scaling = scaling
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.positive = positive

    def _edges(self, bags: Bags) -> FloatArray:
        return edge_sums(bags, self.threshold, EdgeMap.of_width(self.edge_gamma))

    def _training_kernel(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
        self.gamma_ = gaussian_width(self.gamma, self.gamma_factor, bags, weight)
        edges = self._edges(bags)
        kernel = set_kernel(bags, gamma=self.gamma_) + edges @ edges.T
        norm = np.sqrt(np.diag(kernel))
        return kernel / norm / norm[:, None]

    def _keep(self, bags: Bags, support: NDArray[np.int64]) -> None:
        kept = bags[support]
        self.support_instances_, self.support_offsets_ = kept.instances, kept.offsets
        self.support_edges_ = self._edges(kept)
        self.support_norm_ = self._norm(kept, self.support_edges_)

    def _norm(self, bags: Bags, edges: FloatArray) -> FloatArray:
        return np.sqrt(self_kernel(bags, gamma=self.gamma_) + np.einsum("ij,ij->i", edges, edges))

    def _support_kernel(self, bags: Bags) -> FloatArray:
        kept = Bags.from_arrays(self.support_instances_, self.support_offsets_, check_finite=False)
        bags = bags.with_instances(in_form_of(kept.instances, bags.instances))
        edges = self._edges(bags)
        kernel = set_kernel(bags, kept, gamma=self.gamma_) + edges @ self.support_edges_.T
        return kernel / self._norm(bags, edges)[:, None] / self.support_norm_
