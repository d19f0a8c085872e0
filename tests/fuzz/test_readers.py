"""A short fuzzing of every reader; `python -m tests.fuzz.campaign` is the long one."""

import random

import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
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
    import json

    assert survive(BY_NAME["coco"], json.dumps(document).encode()) in (True, False)


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
    "a manifest without bottom": ("store_manifest", b'{"settings":' * 100_000),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_mended(what):
    name, data = FOUND[what]
    assert not survive(BY_NAME[name], data)
