"""The container: every way in, every way to slice, every error."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import _safe_indexing

from bagwise import Bags

TABLES = [np.arange(6.0).reshape(3, 2), np.full((1, 2), 9.0), -np.ones((2, 2))]

NAMED = Bags(TABLES, feature_names=["a", "b"])


def same(a: Bags, b: Bags) -> bool:
    return np.array_equal(dense(a), dense(b)) and np.array_equal(a.offsets, b.offsets)


def dense(bags: Bags) -> np.ndarray:
    return bags.instances.toarray() if sparse.issparse(bags.instances) else bags.instances


class TestWaysIn:
    def test_list(self):
        bags = Bags(TABLES)
        assert len(bags) == 3
        assert bags.shape == (3, 2)
        assert bags.offsets.tolist() == [0, 3, 4, 6]
        assert bags.offsets.dtype == np.int64
        for bag, table in zip(bags, TABLES):
            np.testing.assert_array_equal(bag, table)

    def test_sparse_list_and_table(self):
        bags = Bags([sparse.csr_array(table) for table in TABLES])
        assert sparse.issparse(bags.instances)
        assert same(bags, Bags(TABLES))
        singles = Bags(sparse.csr_matrix(TABLES[0]))
        assert singles.sizes.tolist() == [1, 1, 1]

    def test_three_dimensions(self):
        cube = np.random.RandomState(0).randn(4, 3, 2)
        bags = Bags(cube)
        assert np.shares_memory(bags.instances, cube)
        assert same(bags, Bags(list(cube)))

    def test_groups_in_any_order(self):
        X = np.arange(12.0).reshape(6, 2)
        bags = Bags.from_groups(X, ["b", "a", "b", "c", "a", "a"], prior=np.arange(6))
        assert bags.ids.tolist() == ["b", "a", "c"]
        np.testing.assert_array_equal(bags[1], X[[1, 4, 5]])
        np.testing.assert_array_equal(bags.prior, [0, 2, 1, 4, 5, 3])

    def test_adjacent_groups_are_not_copied(self):
        X = np.arange(12.0).reshape(6, 2)
        assert np.shares_memory(Bags.from_groups(X, [7, 7, 3, 3, 3, 5]).instances, X)

    @pytest.mark.parametrize("kind", [pd.DataFrame, pa.table, dict])
    def test_frames(self, kind):
        columns = {"mol": ["x", "x", "y"], "musk": [1, 1, 0], "a": [1.0, 2.0, 3.0], "b": [4, 5, 6]}
        bags, y = Bags.from_frame(kind(columns), bag="mol", label="musk")
        assert bags.ids.tolist() == ["x", "y"]
        assert y.tolist() == [1, 0]
        np.testing.assert_array_equal(bags[0], [[1, 4], [2, 5]])
        only = Bags.from_frame(kind(columns), bag="mol", features=["b"])
        assert only.shape == (2, 1)

    def test_memory_map_is_not_copied(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(8, dtype=np.float32).reshape(4, 2))
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        bags = Bags.from_arrays(mapped, [0, 1, 4])
        assert isinstance(bags.instances, np.memmap)
        assert isinstance(bags[1:].instances, np.memmap)
        assert bags.dtype == np.float32

    @pytest.mark.parametrize(
        ("given_type", "kept"), [(np.float32, np.float32), (np.float64, np.float64), (np.int16, np.float64)]
    )
    def test_types(self, given_type, kept):
        assert Bags([table.astype(given_type) for table in TABLES]).dtype == kept


class TestSlicing:
    bags = Bags(TABLES, prior=np.arange(6), ids=["u", "v", "w"])

    @pytest.mark.parametrize(
        ("key", "chosen"),
        [
            ([2, 0], [2, 0]),
            (np.array([True, False, True]), [0, 2]),
            (slice(1, None), [1, 2]),
            (slice(None, None, -1), [2, 1, 0]),
            (slice(2, 1), []),
            (([1], ...), [1]),
            (([1], slice(None)), [1]),
        ],
    )
    def test_any_index(self, key, chosen):
        part = self.bags[key]
        assert part.ids.tolist() == [self.bags.ids[i] for i in chosen]
        assert len(part) == len(chosen)
        priors = self.bags.split(self.bags.prior)
        for bag, prior, i in zip(part, part.split(part.prior), chosen):
            np.testing.assert_array_equal(bag, TABLES[i])
            np.testing.assert_array_equal(prior, priors[i])

    def test_negative_number_and_columns(self):
        np.testing.assert_array_equal(self.bags[-1], TABLES[2])
        with pytest.raises(IndexError):
            self.bags[3]
        with pytest.raises(IndexError, match="by bag only"):
            self.bags[[0], 1]

    def test_scikit_learn_keeps_bags(self):
        assert isinstance(_safe_indexing(self.bags, np.array([1])), Bags)
        train, test = train_test_split(self.bags, test_size=1, random_state=0)
        assert (len(train), len(test)) == (2, 1)
        assert len(list(KFold(3).split(self.bags))) == 3

    def test_concat_undoes_slicing(self):
        assert same(Bags.concat([self.bags[:1], self.bags[1:]]), self.bags)
        assert Bags.concat([self.bags[:1], self.bags[1:]]).ids.tolist() == ["u", "v", "w"]

    def test_pickle(self):
        again = pickle.loads(pickle.dumps(self.bags))
        assert same(again, self.bags)
        assert again.ids.tolist() == ["u", "v", "w"]

    def test_repr(self):
        assert repr(self.bags) == "Bags(3 bags, 6 instances, 2 features, float64, with a prior)"

    def test_never_becomes_an_array_by_accident(self):
        with pytest.raises(TypeError, match="ragged"):
            np.asarray(self.bags)


class TestFeatureNames:
    @pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
    def test_every_frame_has_them(self, kind):
        columns = {"mol": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": [4, 5, 6]}
        table = kind({name: columns[name] for name in ("x", "y")})
        assert Bags.from_frame(kind(columns), bag="mol").feature_names == ("x", "y")
        assert Bags.from_frame(kind(columns), bag="mol", features=["y", "x"]).feature_names == ("y", "x")
        assert Bags.from_groups(table, columns["mol"]).feature_names == ("x", "y")
        assert Bags([table, table]).feature_names == ("x", "y")
        single = Bags(table)
        assert single.feature_names == ("x", "y")
        assert single.sizes.tolist() == [1, 1, 1]

    def test_numbers_are_no_names(self):
        assert Bags([pd.DataFrame(table) for table in TABLES]).feature_names is None

    def test_they_survive(self):
        assert NAMED[1:].feature_names == ("a", "b")
        assert NAMED[[2, 0]].feature_names == ("a", "b")
        assert Bags(NAMED).feature_names == ("a", "b")
        assert Bags.concat([NAMED[:1], NAMED[1:]]).feature_names == ("a", "b")
        assert pickle.loads(pickle.dumps(NAMED)).feature_names == ("a", "b")
        assert NAMED.with_prior(np.zeros(6)).feature_names == ("a", "b")

    def test_other_columns_have_other_names_or_none(self):
        assert NAMED.with_instances(NAMED.instances).feature_names is None
        assert NAMED.with_instances(NAMED.instances[:, :1], feature_names=["c"]).feature_names == ("c",)


def test_prior_can_be_changed():
    bags = Bags(TABLES, ids=["u", "v", "w"])
    assert bags.with_prior(np.arange(6)).prior.tolist() == [0, 1, 2, 3, 4, 5]
    assert bags.with_prior(np.arange(6)).with_prior(None).prior is None
    assert bags.with_prior(None).ids.tolist() == ["u", "v", "w"]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_taking_any_bags_takes_their_rows(sizes, data):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(offsets[-1], dtype=float)[:, None]
    bags = Bags.from_arrays(rows, offsets)
    index = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=10))
    taken = bags[np.array(index, dtype=int)]
    assert [bag.ravel().tolist() for bag in taken] == [bags[i].ravel().tolist() for i in index]
    csr = bags.with_instances(sparse.csr_array(rows))[np.array(index, dtype=int)]
    np.testing.assert_array_equal(csr.instances.toarray(), taken.instances)


def frame(**changes):
    return {"mol": ["x", "x", "y"], "musk": [1, 1, 0], "a": [1.0, 2.0, 3.0], **changes}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bags([]), "no bags"),
        (lambda: Bags([np.ones((2, 2)), np.ones((0, 2))]), "bag 1 is empty"),
        (lambda: Bags([np.ones((2, 2)), np.ones((1, 3))]), "bag 1 has 3 features but bag 0 has 2"),
        (lambda: Bags([np.ones(3)]), "bag 0 has 1 dimensions"),
        (lambda: Bags([np.ones((2, 2)), [[1, np.nan]]]).check_finite(), "bag 1, row 0 holds nan .* column 1:"),
        (lambda: Bags([np.ones((2, 2)), [[1, 2], [np.inf, 3]]]).check_finite(), "bag 1, row 1 holds inf .* column 0:"),
        (
            lambda: Bags([sparse.csr_array([[0, 1.0]]), sparse.csr_array([[0, np.nan]])]).check_finite(),
            "bag 1, row 0 .* column 1:",
        ),
        (lambda: Bags([[[1, np.nan]]], feature_names=["a", "b"]).check_finite(), "bag 0, row 0 .* column 'b':"),
        (lambda: Bags(TABLES, feature_names=["a"]), "2 features but 1 feature names"),
        (lambda: Bags(TABLES, feature_names=["a", "a"]), "the feature name 'a' is there more than once"),
        (lambda: Bags([pd.DataFrame({"a": [1.0], "b": ["x"]})]), "column 'b' is not numeric"),
        (
            lambda: Bags([pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [1.0], "a": [2.0]})]),
            "bag 1 has columns b, a but bag 0 has a, b",
        ),
        (lambda: Bags.concat([NAMED, Bags(NAMED, feature_names=["b", "a"])]), "column 0 is 'b' there and 'a' here"),
        (lambda: Bags.concat([NAMED, Bags(TABLES)]), "part 1 has none"),
        (lambda: Bags(np.ones((0, 2, 2))), "no instances"),
        (lambda: Bags(np.ones(3)), "two or three dimensions"),
        (lambda: Bags([[["a", "b"]]]), "must be numbers"),
        (lambda: Bags([np.ones((1, 1)) * 1j]), "complex"),
        (lambda: Bags(TABLES, prior=[1, 2]), "prior must have one value for each of the 6"),
        (lambda: Bags(TABLES, prior=[0, 0, 0, np.nan, 0, 0]), "prior of bag 1, row 0"),
        (lambda: Bags(TABLES, ids=["a"]), "3 bags but 1 ids"),
        (lambda: Bags.from_arrays(np.ones((3, 1)), [0, 2]), "from 0 to the number of instances, 3"),
        (lambda: Bags.from_arrays(np.ones((3, 1)), [0, 3, 3]), "bag 1 is empty"),
        (lambda: Bags.from_arrays(np.ones((3, 1)), [0.0, 3.0]), "whole numbers"),
        (lambda: Bags.from_arrays(np.ones(3), [0, 3]), "two dimensions"),
        (lambda: Bags.from_groups(np.ones((3, 1)), [1, 2]), "each of the 3 rows"),
        (lambda: Bags.from_groups(np.ones((0, 1)), []), "no rows"),
        (lambda: Bags.from_frame(frame(), bag="molecule"), "no bag column 'molecule'"),
        (lambda: Bags.from_frame(frame(), bag="mol", label="musky"), "no label column 'musky'"),
        (lambda: Bags.from_frame(frame(musk=[1, 0, 0]), bag="mol", label="musk"), "bag 'x' has different labels"),
        (lambda: Bags.from_frame(frame(a=["p", "q", "r"]), bag="mol"), "column 'a' is not numeric"),
        (lambda: Bags.from_frame({"mol": [1]}, bag="mol"), "no feature columns"),
        (lambda: Bags.concat([]), "nothing to join"),
        (lambda: Bags.concat([Bags(np.ones((1, 1))), Bags(np.ones((1, 2)))]), "same number of features"),
        (lambda: Bags.concat([Bags(np.ones((1, 1))), Bags(sparse.csr_array([[1.0]]))]), "all dense or all sparse"),
        (lambda: Bags.concat([Bags(np.ones((1, 1)), prior=[1]), Bags(np.ones((1, 1)))]), "carry a prior"),
        (lambda: Bags(TABLES).split([1, 2]), "6 instances but 2 values"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("index", [slice(1, 3), [1, 2], np.array([False, True, True, False]), np.arange(4)])
def test_neighbours_are_not_copied(index):
    bags = Bags([np.full((m, 2), float(m)) for m in (1, 2, 3, 4)])
    taken = bags[index]
    assert np.shares_memory(taken.instances, bags.instances)
    for one, other in zip(taken, np.array([1, 2, 3, 4])[index], strict=True):
        np.testing.assert_array_equal(one, np.full((other, 2), float(other)))
    assert not np.shares_memory(bags[[2, 1]].instances, bags.instances)
