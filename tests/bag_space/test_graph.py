"""The graph kernels against their definitions, written out as plain loops."""

import numpy as np
import pytest
from scipy import sparse
from tests.problems import concept_problem

from bagwise import Bags
from bagwise.bag_space.graph import MIGraphSVC, MiGraphSVC
from bagwise.bag_space.graph_edges import EdgeMap, bag_edges, bag_neighbours, edge_sums


def plain_edges(bag, threshold):
    """[degree_u, share_u, degree_v, share_v] for every edge in both directions."""
    m = len(bag)
    d = np.array([[np.linalg.norm(x - y) for y in bag] for x in bag])
    mean = d.sum() / (m * (m - 1))
    neighbours = {u: [v for v in range(m) if v != u and d[u, v] < threshold * mean] for u in range(m)}
    n_edges = sum(len(near) for near in neighbours.values()) / 2
    weight = {u: sum(1 / d[u, v] for v in neighbours[u]) for u in range(m)}
    degree = {u: len(neighbours[u]) / n_edges for u in range(m)}
    edges = [(u, v) for u in range(m) for v in neighbours[u]]
    return np.array([[degree[u], 1 / d[u, v] / weight[u], degree[v], 1 / d[u, v] / weight[v]] for u, v in edges])


def plain_migraph(a, b, gamma, edge_gamma, threshold):
    nodes = sum(np.exp(-gamma * np.sum((x - y) ** 2)) for x in a for y in b)
    edges = sum(
        np.exp(-edge_gamma * np.sum((e - f) ** 2)) for e in plain_edges(a, threshold) for f in plain_edges(b, threshold)
    )
    return nodes + edges / 4  # each edge in both directions


@pytest.mark.parametrize("gamma", [0.01, 0.3, 1.0, 4.0, 10.0])
def test_edge_map_reproduces_the_gaussian(gamma):
    t = np.linspace(0, 1, 201)
    features = EdgeMap.of_width(gamma)(t)
    np.testing.assert_allclose(features @ features.T, np.exp(-gamma * (t[:, None] - t) ** 2), atol=1e-8)


def test_edges_follow_the_definition():
    bag = np.random.RandomState(0).randn(7, 3)
    np.testing.assert_allclose(np.stack(bag_edges(bag, 0.9), axis=1), plain_edges(bag, 0.9), rtol=1e-10)


def test_bags_without_edges():
    assert bag_edges(np.zeros((1, 2)), 1.0) is None
    assert bag_edges(np.array([[0.0], [1.0]]), 1.0) is None  # their distance is the mean, not below it


def test_copies_of_an_instance_are_joined():
    degree_u, share_u, degree_v, share_v = bag_edges(np.array([[0.0], [0.0], [5.0]]), 1.0)
    np.testing.assert_allclose([degree_u, share_u, degree_v, share_v], np.ones((4, 2)))


def test_neighbours_of_sparse_bags():
    bag = np.random.RandomState(0).rand(5, 30) * (np.random.RandomState(1).rand(5, 30) > 0.7)
    dense, csr = bag_neighbours(bag, 1.0), bag_neighbours(sparse.csr_array(bag), 1.0)
    np.testing.assert_allclose(csr[0], dense[0], atol=1e-7)
    np.testing.assert_array_equal(csr[1], dense[1])


def test_equal_distances_make_no_neighbours():
    assert not bag_neighbours(np.eye(20) / np.sqrt(3), 1.0)[1].any()


def test_many_edges_in_blocks(monkeypatch):
    bags = Bags([np.random.RandomState(0).randn(20, 2)])
    whole = edge_sums(bags, 1.0, EdgeMap.of_width(1.0))
    monkeypatch.setattr("bagwise.bag_space.graph_edges.EDGES_PER_BLOCK", 7)
    np.testing.assert_allclose(edge_sums(bags, 1.0, EdgeMap.of_width(1.0)), whole, atol=1e-10)


def test_migraph_kernel_equals_plain_loops():
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(m, 2) for m in (3, 5, 4, 6)])
    model = MIGraphSVC(gamma=0.4, edge_gamma=2.0, threshold=1.0, scaling=None)
    found = model._training_kernel(bags, np.array([[True], [False], [True], [False]]), np.ones(4))
    plain = np.array([[plain_migraph(a, b, 0.4, 2.0, 1.0) for b in bags] for a in bags])
    norm = np.sqrt(np.diag(plain))
    np.testing.assert_allclose(found, plain / norm / norm[:, None], atol=1e-7)


def test_migraph_scores_new_bags_with_the_same_kernel():
    bags, y = concept_problem(30)
    model = MIGraphSVC(scaling=None, calibrate=False).fit(bags, y)
    kernel = model._training_kernel(bags, y[:, None], np.ones(len(y)))
    np.testing.assert_allclose(
        model.decision_function(bags), kernel[:, model.support_] @ model.dual_coef_[0] + model.intercept_, atol=1e-8
    )


def test_mi_graph_weights_by_hand():
    # Distances 1, 9, 10, mean 20/3: the first two are neighbours, the third stands alone.
    weights = MiGraphSVC()._instance_weights(Bags([np.array([[0.0], [1.0], [10.0]]), np.array([[3.0]])]))
    np.testing.assert_allclose(weights, [0.5, 0.5, 1, 1])


@pytest.mark.parametrize(("normalization", "power"), [("average", 1.0), ("root", 0.5)])
def test_mi_graph_kernel_equals_plain_loops(normalization, power):
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(m, 2) for m in (3, 5, 1, 6)])
    model = MiGraphSVC(gamma=0.4, normalization=normalization, scaling=None, calibrate=False)
    found = model._training_kernel(bags, np.array([[True], [False], [True], [False]]), np.ones(4))
    weights = bags.split(model._instance_weights(bags))
    for i, a in enumerate(bags):
        for j, b in enumerate(bags):
            pairs = [(x, v, y, w) for x, v in zip(a, weights[i]) for y, w in zip(b, weights[j])]
            top = sum(v * w * np.exp(-0.4 * np.sum((x - y) ** 2)) for x, v, y, w in pairs)
            assert found[i, j] == pytest.approx(top / (weights[i].sum() * weights[j].sum()) ** power)


def test_mi_graph_scores_new_bags_with_the_same_kernel():
    bags, y = concept_problem(30)
    model = MiGraphSVC(1.0, normalization="root", scaling=None, calibrate=False).fit(bags, y)
    kernel = model._training_kernel(bags, y[:, None], np.ones(len(y)))
    np.testing.assert_allclose(
        model.decision_function(bags), kernel[:, model.support_] @ model.dual_coef_[0] + model.intercept_, atol=1e-8
    )


def test_threshold_zero_is_the_plain_average():
    from bagwise import MIKernelSVC

    bags, y = concept_problem()
    graph = MiGraphSVC(threshold=0).fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(
        graph, MIKernelSVC(normalization="average").fit(bags, y).decision_function(bags), rtol=1e-6
    )
