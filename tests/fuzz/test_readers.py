"""A short fuzzing of every reader; `python -m tests.fuzz.campaign` is the long one."""

import io
import json
import random
import sys
import zipfile

import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.mutations import damaged
from tests.fuzz.targets import TARGETS, survive

BY_NAME = {target.__name__: target for target in TARGETS}
ROBUST = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_good_file_is_taken(name):
    assert survive(BY_NAME[name], TARGETS[BY_NAME[name]])


@pytest.mark.parametrize("name", BY_NAME)
def test_damaged_files(name):
    """A hundred damaged copies, the same in every run."""
    target = BY_NAME[name]
    rng = random.Random(name)
    taken = 0
    for _ in range(100):
        data = damaged(TARGETS[target], rng)
        try:
            taken += survive(target, data)
        except Exception as error:
            raise AssertionError(f"{name} failed on {data!r}") from error
    assert taken < 100, "damage is noticed"


@ROBUST
@given(data=st.binary(max_size=400), name=st.sampled_from(sorted(BY_NAME)))
def test_any_bytes(data, name):
    assert survive(BY_NAME[name], data) in (True, False), "taken, or refused in a sentence; anything else is raised"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("a.png"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def rows(*fields):
    return st.lists(st.fixed_dictionaries({field: JSON for field in fields}) | JSON, max_size=3)


COCO = st.fixed_dictionaries(
    {
        "images": rows("id", "file_name"),
        "categories": rows("id", "name"),
        "annotations": rows("image_id", "category_id", "bbox", "iscrowd"),
    }
)


@ROBUST
@given(document=COCO)
def test_coco_of_any_values(document):
    assert survive(BY_NAME["coco"], json.dumps(document).encode()) in (True, False)


def test_results_of_several_seeds_are_summed():
    from tests.fuzz.campaign import together

    first = {"cases": 5, "taken": 1, "refused": 4, "failures": 0, "seeds": [0], "peak resident MB": 300}
    second = {"cases": 7, "taken": 2, "refused": 5, "failures": 0, "seeds": [1], "peak resident MB": 200}
    both = {"cases": 12, "taken": 3, "refused": 9, "failures": 0, "seeds": [0, 1], "peak resident MB": 300}
    assert together(first, second) == both
    assert together(None, first) == together(first, first) == first


def test_coverage_leads_further():
    """Of files that a chain of checks refuses, one after the other, only damage on damage reaches the end."""
    from tests.fuzz.guided import Corpus, Reached

    target = BY_NAME["run_manifest"]
    corpus, reached = Corpus(TARGETS[target], random.Random(0)), Reached()
    reached.run(survive, target, TARGETS[target])
    good = len(reached.steps)
    for _ in range(200):
        data = corpus.next()
        if reached.run(survive, target, data)[1]:
            corpus.keep(data)
    assert good > 20, "steps of bagwise are seen"
    assert len(reached.steps) > good + 10
    assert 3 < len(corpus.files) < 60, "what leads nowhere new is not kept"
    assert sys.gettrace() is None


ARRAY = b"\x93NUMPY\x01\x00v\x00"


def manifest(**changed):
    return json.dumps({**json.loads(TARGETS[BY_NAME["run_manifest"]]), **changed}).encode()


def archive(name, content):
    """The good data set with one other member."""
    whole = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(TARGETS[BY_NAME["data_set"]])) as good, zipfile.ZipFile(whole, "w") as changed:
        for member in good.namelist():
            changed.writestr(member, content if member == name else good.read(member))
    return whole.getvalue()


def truth(**changed):
    table = pq.read_table(io.BytesIO(TARGETS[BY_NAME["run_truth"]]))
    for name, values in changed.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    whole = io.BytesIO()
    pq.write_table(table, whole)
    return whole.getvalue()


FOUND = {
    "two columns of one name": ("table", b"bag,label,x,x\n1,0,1,2\n2,1,3,4\n"),
    "an empty array": ("store_features", b""),
    "an array header without end": (
        "store_boxes",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'shape': (2, 4" + b" " * 99,
    ),
    "an archive for an array": ("store_features", TARGETS[BY_NAME["reduction"]]),
    "a row without a bag": ("table", b"bag,label,x\n1,0,1\n,1,2\n2.5,1,3\n"),
    "no zip at all": ("reduction", b"PK but no zip"),
    "an id that is a list": (
        "coco",
        b'{"images": [{"id": [], "file_name": "a.png"}], "categories": [], "annotations": []}',
    ),
    "brackets without end": ("coco", b"[" * 100_000),
    "a version that is infinite": (
        "decisions",
        b'{"status": "open", "boxes": null, "rejected": [], "version": 1e999}\n',
    ),
    "an array of an empty type": (
        "store_features",
        ARRAY + b"{'descr': (), 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n" + bytes(6),
    ),
    "an array that is none": ("data_set", archive("X.npy", b"no array")),
    "an array of no dimension": (
        "data_set",
        archive(
            "X.npy", ARRAY + b"{'descr': '<f8', 'fortran_order': False, 'shape': ()}".ljust(117) + b"\n" + bytes(8)
        ),
    ),
    "an array that promises terabytes": (
        "data_set",
        archive("X.npy", ARRAY + b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999, 9999999)}".ljust(118)),
    ),
    "images at a number": ("run_manifest", manifest(source={"root": float("nan")})),
    "a source that is a number": ("run_manifest", manifest(source=5)),
    "a class that is a list": ("run_manifest", manifest(classes=[["x"]])),
    "a problem that is a number": ("run_manifest", manifest(problems=[1])),
    "settings that nobody knows": ("run_settings", manifest(settings={"recipe": {"x": 1}})),
    "an evaluation without bottom": ("run_evaluation", b"[" * 100_000),
    "a true box in no image": ("run_truth", truth(image_id=[7])),
    "a label that is a list": ("run_truth", truth(label=[[None]])),
    "a manifest without bottom": ("store_manifest", b'{"settings":' * 100_000),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_mended(what):
    name, data = FOUND[what]
    assert not survive(BY_NAME[name], data)
