"""The set kernel against a direct double loop over all pairs of instances."""

import numpy as np
import pytest
from scipy import sparse

from bagwise import Bags
from bagwise.bag_space import kernels
from bagwise.bag_space.kernels import self_kernel, set_kernel


def random_bags(sizes, d=3, seed=0, shift=0.0):
    rng = np.random.RandomState(seed)
    return Bags([rng.randn(m, d) + shift for m in sizes])


def direct(a, b, gamma, weight_a=None, weight_b=None):
    weights_a = a.split(np.ones(a.n_instances) if weight_a is None else weight_a)
    weights_b = b.split(np.ones(b.n_instances) if weight_b is None else weight_b)
    out = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            for x, v in zip(a[i], weights_a[i]):
                for y, w in zip(b[j], weights_b[j]):
                    out[i, j] += v * w * np.exp(-gamma * np.sum((x - y) ** 2))
    return out


@pytest.fixture(params=[3, 512], ids=["small blocks", "one block"])
def rows_per_block(request, monkeypatch):
    monkeypatch.setattr(kernels, "ROWS_PER_BLOCK", request.param)


@pytest.mark.usefixtures("rows_per_block")
class TestSetKernel:
    a = random_bags([1, 4, 2, 9, 1, 3], shift=50)
    b = random_bags([2, 1, 7], seed=1, shift=50)

    def test_equals_double_loop(self):
        np.testing.assert_allclose(set_kernel(self.a, self.b, gamma=0.3), direct(self.a, self.b, 0.3), rtol=1e-12)

    def test_with_itself(self):
        expected = direct(self.a, self.a, 0.3)
        found = set_kernel(self.a, gamma=0.3)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(self_kernel(self.a, gamma=0.3), np.diag(expected), rtol=1e-12)

    def test_weights(self):
        rng = np.random.RandomState(2)
        v, w = rng.rand(self.a.n_instances), rng.rand(self.b.n_instances)
        np.testing.assert_allclose(
            set_kernel(self.a, self.b, gamma=0.3, weight_a=v, weight_b=w),
            direct(self.a, self.b, 0.3, v, w),
            rtol=1e-12,
        )
        expected = direct(self.a, self.a, 0.3, v, v)
        np.testing.assert_allclose(set_kernel(self.a, gamma=0.3, weight_a=v), expected, rtol=1e-12)
        np.testing.assert_allclose(self_kernel(self.a, gamma=0.3, weight=v), np.diag(expected), rtol=1e-12)

    def test_sparse(self):
        near = self.a.with_instances(self.a.instances - 50)
        csr = near.with_instances(sparse.csr_array(near.instances))
        np.testing.assert_allclose(set_kernel(csr, gamma=0.3), set_kernel(near, gamma=0.3), rtol=1e-10)

    def test_single_precision(self, monkeypatch):
        expected = direct(self.a, self.b, 0.3)
        monkeypatch.setattr(kernels, "PAIRS_IN_DOUBLE", 0)
        np.testing.assert_allclose(set_kernel(self.a, self.b, gamma=0.3), expected, rtol=1e-5)


@pytest.mark.parametrize(("pairs_in_double", "rtol"), [(1 << 28, 1e-12), (0, 2e-6)], ids=["double", "single"])
def test_exponential_over_its_whole_range(monkeypatch, pairs_in_double, rtol):
    monkeypatch.setattr(kernels, "PAIRS_IN_DOUBLE", pairs_in_double)
    squared = np.concatenate([[0.0], np.logspace(-6, np.log10(80), 200)])
    a, b = Bags(np.zeros((1, 1))), Bags(np.sqrt(squared)[:, None])
    monkeypatch.setattr(kernels._Rows, "centre", staticmethod(lambda x: 0))  # so that distances are as given
    np.testing.assert_allclose(set_kernel(a, b, gamma=1.0)[0], np.exp(-squared), rtol=rtol * 80, atol=1e-30)


def test_distant_instances_have_kernel_zero_and_no_nan():
    far = Bags(np.array([[0.0], [1e3], [1e8]]))
    np.testing.assert_allclose(set_kernel(far, gamma=1.0), np.eye(3), atol=1e-100)


def test_large_problem_in_single_precision_matches_double():
    bags = random_bags(np.random.RandomState(0).randint(1, 30, 60), d=20)
    single = bags.with_instances(bags.instances.astype(np.float32))
    np.testing.assert_allclose(set_kernel(single, gamma=0.05), set_kernel(bags, gamma=0.05), rtol=1e-5)
