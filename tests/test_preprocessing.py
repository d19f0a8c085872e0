"""Transformers of instances."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize
from tests.problems import concept_problem

from bagwise import RMISVC, Bags, InstanceNystroem, InstanceScaler, OnInstances


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaler_is_scikit_learns(dtype):
    bags, _ = concept_problem()
    bags = bags.with_instances((bags.instances * 3 + 5).astype(dtype))
    standard = StandardScaler().fit_transform(bags.instances)
    for scaling, expected in {
        "standard": standard,
        "unit": normalize(bags.instances),
        "auto": normalize(standard),
        "global": bags.instances / np.sqrt(np.mean(np.sum(bags.instances.astype(float) ** 2, axis=1))),
        None: bags.instances,
    }.items():
        scaled = InstanceScaler(scaling).fit_transform(bags)
        assert scaled.dtype == dtype
        np.testing.assert_allclose(scaled.instances, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scaling", ["auto", "unit", "standard", "global", None])
def test_sparse_stays_sparse(scaling):
    bags, _ = concept_problem()
    table = np.where(bags.instances > 0.5, bags.instances, 0)
    csr = bags.with_instances(sparse.csr_array(table))
    scaled = InstanceScaler(scaling).fit_transform(csr)
    assert sparse.issparse(scaled.instances)
    assert scaled.instances.nnz == csr.instances.nnz
    if scaling == "standard":
        expected = StandardScaler(with_mean=False).fit_transform(table)
    elif scaling == "global":
        expected = table / np.sqrt(np.mean(np.sum(table**2, axis=1)))
    else:
        expected = table if scaling is None else normalize(table)
    np.testing.assert_allclose(scaled.instances.toarray(), expected, atol=1e-12)


def test_sparse_after_a_dense_fit():
    bags, _ = concept_problem()
    scaler = InstanceScaler("standard").fit(bags)
    csr = scaler.transform(bags.with_instances(sparse.csr_array(bags.instances)))
    np.testing.assert_allclose(csr.instances, scaler.transform(bags).instances)


def test_constant_columns_and_zero_rows_become_zero():
    bags = Bags([np.array([[0.1, 1.0], [0.1, 2.0]]), np.array([[0.1, 3.0]])])
    assert not InstanceScaler("standard").fit_transform(bags).instances[:, 0].any()
    for scaling in ("unit", "global"):
        assert not InstanceScaler(scaling).fit_transform(Bags([np.zeros((2, 2))])).instances.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_columns_are_measured_as_dense_ones(dtype):
    x = np.random.default_rng(0).normal(size=(1000, 4)).astype(dtype)
    x[:, 0], x[:, 1], x[:, 2] = 0.1, 123456.7, x[:, 2] + 1000
    offsets = np.arange(0, 1001, 10)
    dense, csr = (
        InstanceScaler("standard").fit(Bags.from_arrays(rows, offsets)).scale_ for rows in (x, sparse.csr_array(x))
    )
    np.testing.assert_allclose(csr, dense, rtol=1e-5)
    assert (csr[:2] == 0).all()


def test_constant_column_of_many_rows_stays_zero_for_new_values():
    """The mean of many equal numbers is not quite that number."""
    for value in np.random.RandomState(0).randn(50):
        scaler = InstanceScaler("standard").fit(np.full((1092, 1), value))
        assert not scaler.transform(np.array([[66.8]])).instances.any()


def test_unknown_scaling():
    with pytest.raises(ValueError, match="scaling must be one of"):
        InstanceScaler("minmax").fit(np.ones((3, 2)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nystroem_with_all_landmarks_is_the_kernel(form):
    bags, _ = concept_problem(10)
    mapped = InstanceNystroem(n_components=1000, gamma=0.3).fit_transform(bags.with_instances(form(bags.instances)))
    np.testing.assert_allclose(
        mapped.instances @ mapped.instances.T, rbf_kernel(bags.instances, gamma=0.3), rtol=1e-5, atol=1e-6
    )


def test_nystroem_is_as_good_as_scikit_learns():
    bags, _ = concept_problem(60)
    x = bags.instances
    kernel = rbf_kernel(x, gamma=0.1)
    ours = InstanceNystroem(40, 0.1, random_state=0).fit_transform(bags).instances
    theirs = Nystroem(gamma=0.1, n_components=40, random_state=0).fit_transform(x)
    error, reference = (np.linalg.norm(m @ m.T - kernel) for m in (ours, theirs))
    assert error < 1.5 * reference


@pytest.mark.parametrize("transformer", [PCA(3), MaxAbsScaler()])
def test_any_transformer_in_a_pipeline(transformer):
    bags, y = concept_problem()
    model = make_pipeline(OnInstances(transformer), RMISVC(random_state=0)).fit(bags, y)
    assert model.score(bags, y) > 0.6
    assert isinstance(model[0].transform(bags), Bags)
