"""Names and labels in columns read as the lists that they stand for."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bagwise.discovery.sources.columns import LabelSets, Names
from bagwise.discovery.sources.imageset import ImageSet

NAMES = ["b/ü.png", "a.png", "猫/кот.png", "\U0001f41f.png", "ab.png", "￿.png"]
LABELS = [("cat",), (), ("dog", "cat"), (), ("fish",), ("cat", "fish")]


def test_names_read_as_a_list():
    names = Names.of(NAMES)
    assert names == NAMES == list(names)
    assert names != NAMES[:-1]
    assert (names[0], names[-1], len(names)) == (NAMES[0], NAMES[-1], 6)
    assert names[1:4] == NAMES[1:4]
    assert names[::-2] == NAMES[::-2]
    assert names.index("ab.png") == 4
    assert "ab.png" in names
    assert "c.png" not in names
    assert pickle.loads(pickle.dumps(names)) == NAMES
    assert Names.of([]) == []
    assert Names.of_column(pa.chunked_array([["x"], ["y", "z"]])) == ["x", "y", "z"]
    with pytest.raises(IndexError):
        names[6]


def test_names_sort_as_python_does():
    names = Names.of(NAMES)
    assert names.take(names.order()) == sorted(NAMES)
    assert Names.of(sorted(NAMES)).order() is None
    assert names.places(Names.of(["ab.png", "none", "a.png"])).tolist() == [4, -1, 1]
    assert names.places(names).tolist() == list(range(6))


def test_label_sets_read_as_a_list_of_tuples():
    sets = LabelSets.of(LABELS)
    assert sets == LABELS == list(sets)
    assert sets != [*LABELS[:-1], ()]
    assert (sets[2], sets[-1]) == (("dog", "cat"), ("cat", "fish"))
    assert sets[1:4] == LABELS[1:4]
    assert sets.used == ["cat", "dog", "fish"]
    for label in ("cat", "dog", "bird"):
        assert sets.having(label).tolist() == [label in labels for labels in LABELS]
    assert sets.take([5, 1, 0]) == [LABELS[5], (), ("cat",)]
    assert sets.take([]) == []
    assert sets.without(["cat"]) == [tuple(name for name in labels if name != "cat") for labels in LABELS]
    assert LabelSets.of_column(pa.chunked_array([sets.column()])) == LABELS
    assert sets.column().to_pylist() == [list(labels) for labels in LABELS]
    assert pickle.loads(pickle.dumps(sets)) == LABELS
    assert LabelSets.none(2) == [(), ()]
    with pytest.raises(IndexError):
        sets[6]


def test_an_image_set_of_columns_is_that_of_lists():
    shuffled = np.random.default_rng(0).permutation(6)
    lists = ImageSet(Path("."), NAMES, LABELS)
    columns = ImageSet(Path("."), Names.of(NAMES).take(shuffled), LabelSets.of(LABELS).take(shuffled))
    assert lists == columns
    assert dict(zip(lists.files, lists.labels)) == dict(zip(NAMES, LABELS))
    assert lists.files == sorted(NAMES)
    assert lists.unsure == [()] * 6
    part = lists.take(np.array([1, 3]))
    assert (list(part.files), list(part.labels)) == (lists.files[1:4:2], lists.labels[1:4:2])


def test_a_name_that_is_no_text_is_left_out_by_name():
    """Python reads bytes of a file's name that are no UTF-8 as half a character, which no table holds."""
    images = ImageSet(
        Path("."), ["b.png", "\udcffa.png", "a.png"], [("cat",), ("dog",), ("fish",)], unsure=[(), (), ("x",)]
    )
    assert images.files == ["a.png", "b.png"]
    assert images.labels == [("fish",), ("cat",)]
    assert images.unsure == [("x",), ()]
    assert [problem.file for problem in images.problems] == ["?a.png"]
    assert images.classes == ["cat", "fish"]
