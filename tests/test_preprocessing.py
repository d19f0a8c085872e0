"""Transformers of instances."""

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.problems import concept_problem

from bagwise import (
    MILES,
    RMISVC,
    Bags,
    CitationKNN,
    InstanceNystroem,
    InstanceScaler,
    MiGraphSVC,
    MIKernelSVC,
    MultiFoldSVC,
    OnInstances,
    PPMMKernelSVC,
)
from bagwise._utils.columns import column_medians, mean_and_variance
from bagwise.preprocessing import gaussian_gamma


@parametrize_with_checks(
    [
        *(
            InstanceScaler(scaling)
            for scaling in ("auto", "standard", "unit", "standard-unit", "root-unit", "global", None)
        ),
        InstanceNystroem(n_components=8, random_state=0),
        OnInstances(StandardScaler(with_mean=False)),
        OnInstances(PCA(1, random_state=0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    assert check(estimator) is None, "a check that fails raises"


def rooted(table):
    away = table - np.median(table, axis=0)
    return np.sign(away) * np.sqrt(np.abs(away))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaler_is_scikit_learns(dtype):
    bags, _ = concept_problem()
    bags = bags.with_instances((bags.instances * 3 + 5).astype(dtype))
    standard = StandardScaler().fit_transform(bags.instances)
    for scaling, expected in {
        "standard": standard,
        "unit": normalize(bags.instances),
        "standard-unit": normalize(standard),
        "root-unit": normalize(StandardScaler().fit_transform(rooted(bags.instances.astype(float)))),
        "auto": standard,  # of five columns
        "global": bags.instances / np.sqrt(np.mean(np.sum(bags.instances.astype(float) ** 2, axis=1))),
        None: bags.instances,
    }.items():
        scaled = InstanceScaler(scaling).fit_transform(bags)
        assert scaled.dtype == dtype
        np.testing.assert_allclose(scaled.instances, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("n_columns", "expected"), [(1, "standard"), (10, "standard"), (11, "standard-unit")])
def test_few_columns_keep_their_length(n_columns, expected):
    table = np.random.default_rng(0).normal(size=(12, n_columns))
    scaler = InstanceScaler().fit(Bags(list(table.reshape(4, 3, -1))))
    assert scaler.scaling_ == expected
    assert InstanceScaler().fit(Bags.from_arrays(sparse.csr_array(table), [0, 4, 12])).scaling_ == "unit"


@pytest.mark.parametrize("kind", [CitationKNN, MIKernelSVC, MILES, MiGraphSVC, MultiFoldSVC, PPMMKernelSVC, RMISVC])
def test_a_single_column_is_enough(kind):
    """Unit length would leave of a number its sign."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    bags = Bags([np.append(rng.normal(size=(4, 1)), [[5.0 * label]], axis=0) for label in y])
    assert kind().fit(bags[:80], y[:80]).score(bags[80:], y[80:]) >= 0.9


@pytest.mark.parametrize("scaling", ["auto", "unit", "standard", "standard-unit", "root-unit", "global", None])
def test_sparse_stays_sparse(scaling):
    bags, _ = concept_problem()
    table = np.where(bags.instances > 0.5, bags.instances, 0)
    csr = bags.with_instances(sparse.csr_array(table))
    scaled = InstanceScaler(scaling).fit_transform(csr)
    assert sparse.issparse(scaled.instances)
    assert scaled.instances.nnz == csr.instances.nnz
    if scaling == "standard-unit":
        expected = normalize(StandardScaler(with_mean=False).fit_transform(table))
    elif scaling == "root-unit":
        expected = normalize(StandardScaler(with_mean=False).fit_transform(np.sqrt(table)))
    elif scaling == "standard":
        expected = StandardScaler(with_mean=False).fit_transform(table)
    elif scaling == "global":
        expected = table / np.sqrt(np.mean(np.sum(table**2, axis=1)))
    else:
        expected = table if scaling is None else normalize(table)
    np.testing.assert_allclose(scaled.instances.toarray(), expected, atol=1e-12)


def test_sparse_after_a_dense_fit():
    bags, _ = concept_problem()
    for scaling in ("standard", "root-unit"):
        scaler = InstanceScaler(scaling).fit(bags)
        csr = scaler.transform(bags.with_instances(sparse.csr_array(bags.instances)))
        np.testing.assert_allclose(csr.instances, scaler.transform(bags).instances)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9).filter(any), st.integers(0, 99))
def test_a_bag_of_weight_two_counts_as_the_bag_twice(weights, seed):
    table = np.random.default_rng(seed).integers(0, 4, (len(weights), 3)).astype(float)
    np.testing.assert_allclose(
        column_medians(table, np.array(weights, float)), np.median(np.repeat(table, weights, axis=0), axis=0)
    )


def test_constant_columns_and_zero_rows_become_zero():
    bags = Bags([np.array([[0.1, 1.0], [0.1, 2.0]]), np.array([[0.1, 3.0]])])
    for scaling in ("standard", "root-unit"):
        assert not InstanceScaler(scaling).fit_transform(bags).instances[:, 0].any()
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
    assert np.isinf(csr[:2]).all()


def test_constant_column_of_many_rows_stays_zero_for_new_values():
    """The mean of many equal numbers is not quite that number."""
    for value in np.random.RandomState(0).randn(50):
        scaler = InstanceScaler("standard").fit(np.full((1092, 1), value))
        assert not scaler.transform(np.array([[66.8]])).any()


def test_unknown_scaling():
    with pytest.raises(ValueError, match="'scaling' parameter of InstanceScaler must be"):
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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scaling", ["auto", "standard", "global"])
def test_a_bag_of_weight_two_is_the_bag_twice(scaling, form):
    bags, _ = concept_problem(20)
    bags = bags.with_instances(form(bags.instances))
    weight = np.random.RandomState(1).randint(0, 4, size=20)
    weighted = InstanceScaler(scaling).fit(bags, sample_weight=weight).transform(bags)
    repeated = InstanceScaler(scaling).fit(bags[np.repeat(np.arange(20), weight)]).transform(bags)
    as_array = np.asarray if form is np.asarray else sparse.csr_array.toarray
    np.testing.assert_allclose(as_array(weighted.instances), as_array(repeated.instances), rtol=1e-12, atol=1e-12)
    of_rows = gaussian_gamma("distance", bags.instances, np.repeat(weight.astype(float), bags.sizes))
    assert of_rows == pytest.approx(gaussian_gamma("distance", bags[np.repeat(np.arange(20), weight)].instances))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_mean_and_variance_are_numpys(form):
    x = np.random.RandomState(0).randn(50, 4) * (np.random.RandomState(1).rand(50, 4) < 0.5) + [0, 0, 0, 3]
    weight = np.random.RandomState(2).rand(50)
    mean = np.average(x, axis=0, weights=weight)
    expected = mean, np.average((x - mean) ** 2, axis=0, weights=weight)
    np.testing.assert_allclose(mean_and_variance(form(x), weight), expected, rtol=1e-12)
    np.testing.assert_allclose(mean_and_variance(form(x)), (x.mean(axis=0), x.var(axis=0)), rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_gamma_scale_is_scikit_learns_whatever_the_offset(form, offset):
    rng = np.random.RandomState(0)
    x = rng.randn(500, 20) + offset
    theirs = SVC(gamma="scale").fit(x, rng.rand(500) > 0.5)._gamma
    assert gaussian_gamma("scale", form(x)) == pytest.approx(theirs, rel=1e-6)
    assert gaussian_gamma("scale", form(x)) == pytest.approx(0.05, rel=0.05)
    # Half of it, but for what the means of the columns differ by.
    assert gaussian_gamma("distance", form(x)) == pytest.approx(0.025, rel=0.05)
    assert gaussian_gamma("distance", np.full((1000, 3), 0.1 + offset)) == 1.0


def test_gamma_distance_is_one_over_the_mean_squared_distance():
    x = np.random.RandomState(0).randn(40, 3) + np.array([0, 10, 100])
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    assert gaussian_gamma("distance", x) == pytest.approx(1 / squares.mean())


def test_scale_is_what_columns_are_divided_by():
    bags, _ = concept_problem()
    ours, theirs = InstanceScaler("standard").fit(bags), StandardScaler().fit(bags.instances)
    np.testing.assert_allclose(ours.scale_, theirs.scale_)


@pytest.mark.parametrize("bad", [{"gamma": -1}, {"gamma": "auto"}, {"n_components": -3}, {"n_components": 0}])
def test_nystroem_refuses_impossible_parameters(bad):
    with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter of InstanceNystroem must be"):
        InstanceNystroem(**bad).fit(np.ones((3, 2)))


@pytest.mark.parametrize("transformer", [InstanceScaler(), InstanceNystroem(), OnInstances(PCA(1))])
def test_the_same_container_out_as_in(transformer):
    bags, _ = concept_problem()
    rows = transformer.fit(bags).transform(bags.instances)
    assert isinstance(rows, np.ndarray)
    mapped = transformer.transform(bags)
    assert isinstance(mapped, Bags)
    np.testing.assert_array_equal(mapped.instances, rows)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(transformer.fit(bags).transform(bags), Bags)
        assert type(transformer.transform(bags.instances)).__name__ == "DataFrame"


def test_names_of_features_out():
    bags, _ = concept_problem(n_features=3)
    named = Bags(bags, feature_names=["a", "b", "c"])
    assert InstanceScaler().fit_transform(named).feature_names == ("a", "b", "c")
    assert OnInstances(PCA(2)).fit_transform(named).feature_names == ("pca0", "pca1")
    mapped = InstanceNystroem(2).fit(named)
    assert mapped.get_feature_names_out().tolist() == ["instancenystroem0", "instancenystroem1"]
    assert mapped.transform(named).feature_names == ("instancenystroem0", "instancenystroem1")
    assert InstanceScaler().fit_transform(bags).feature_names is None


def test_missing_values_can_be_imputed():
    bags, y = concept_problem()
    rows = bags.instances.copy()
    rows[np.random.RandomState(0).rand(*rows.shape) < 0.1] = np.nan
    holey = Bags.from_arrays(rows, bags.offsets, feature_names=list("abcde"))
    assert make_pipeline(OnInstances(SimpleImputer()), RMISVC(random_state=0)).fit(holey, y).score(holey, y) > 0.7
    with pytest.raises(ValueError, match=r"bag \d+, row \d+ holds nan .* in column '[a-e]'"):
        RMISVC().fit(holey, y)
    with pytest.raises(ValueError, match=r"bag \d+, row \d+ holds nan .* in column '[a-e]'"):
        InstanceScaler().fit(holey)
