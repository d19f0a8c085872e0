"""Model files: round trips, and nothing that a hostile file could do."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.problems import concept_problem

from bagwise import RMISVC, OnInstances, load, save
from bagwise.persistence import ModelFileError


@pytest.fixture(scope="module")
def fitted():
    bags, y = concept_problem()
    return RMISVC(kernel="rbf", n_components=10, class_weight={0: 1.0, 1: 2.0}, random_state=3).fit(bags, y)


@pytest.fixture
def file(fitted, tmp_path):
    save(fitted, tmp_path / "model.bagwise")
    return tmp_path / "model.bagwise"


def test_round_trip_and_same_bytes(fitted, file, tmp_path):
    bags, _ = concept_problem(seed=9)
    again = load(file)
    np.testing.assert_array_equal(again.decision_function(bags), fitted.decision_function(bags))
    assert again.get_params() == fitted.get_params()
    save(again, tmp_path / "again.bagwise")
    assert (tmp_path / "again.bagwise").read_bytes() == file.read_bytes()


def test_a_failed_save_leaves_the_former_file(file, fitted):
    before = file.read_bytes()
    bad = OnInstances(LogisticRegression())
    with pytest.raises(TypeError, match="cannot be saved safely"):
        save(bad, file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def rewritten(file, change):
    """The same file with a changed manifest."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["model.json"])
    change(document, parts)
    parts["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


def object_array(document, parts):
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    parts["arrays/0.npy"] = buffer.getvalue()


def huge_array(document, parts):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)})
    parts["arrays/0.npy"] = buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, p: d.update(format=99), "model format 99"),
        (lambda d, p: d["model"].update(object="OrderedDict"), "does not know"),
        (lambda d, p: d["model"].update(object="RMISVC", state={}), "lacks parameters"),
        (lambda d, p: d.update(model={"mystery": 1}), "unknown value"),
        (lambda d, p: d.update(model=[1, 2]), "bare list"),
        (lambda d, p: p.pop("arrays/0.npy"), "damaged"),
        (object_array, "Python objects"),
        (huge_array, "shorter than its header"),
    ],
)
def test_hostile_files_are_refused(file, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(file, change))


def test_not_a_model(tmp_path):
    path = tmp_path / "model.bagwise"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFileError, match="not a bagwise model"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(data=st.data())
def test_damaged_bytes_never_do_more_than_raise(file, data):
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = file.with_name("damaged")
    damaged.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        load(damaged)
    except ModelFileError:
        pass
    except OSError:
        pytest.fail("damage must be reported as a damaged model")
