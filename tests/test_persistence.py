"""Model files: round trips, and nothing that a hostile file could do."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from tests.problems import concept_problem

from bagwise import MISVC, RMISVC, OnInstances, SingleInstance, load, save
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


SMALL = RMISVC(lam=0.01, epochs=5, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        SingleInstance(random_state=0),
        SingleInstance(LogisticRegression(C=2.0)),
        SingleInstance(RandomForestClassifier(5, random_state=0)),
        SingleInstance(SVC(probability=False)),
        SingleInstance(GaussianNB()),
        make_pipeline(OnInstances(SimpleImputer()), OnInstances(PCA(2, random_state=0)), SMALL),
        GridSearchCV(SMALL, {"lam": [0.1, 0.01], "radius": ["safe", None]}, cv=StratifiedKFold(2), scoring="roc_auc"),
        CalibratedClassifierCV(MISVC(random_state=np.random.RandomState(0)), cv=2),
        CalibratedClassifierCV(SMALL, method="isotonic", cv=2),
        VotingClassifier([("rmi", SMALL), ("mi", MISVC(random_state=0))]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_with_scikit_learn_inside_and_outside(model, tmp_path):
    bags, y = concept_problem()
    unseen, _ = concept_problem(seed=9)
    fitted = model.fit(bags, y)
    save(fitted, tmp_path / "model.bagwise")
    again = load(tmp_path / "model.bagwise")
    ask = "predict_proba" if hasattr(fitted, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(again, ask)(unseen), getattr(fitted, ask)(unseen))
    save(again, tmp_path / "again.bagwise")
    assert (tmp_path / "again.bagwise").read_bytes() == (tmp_path / "model.bagwise").read_bytes()
    if isinstance(model, GridSearchCV):
        assert again.cv_results_["params"] == fitted.cv_results_["params"]
        assert again.cv_results_["param_radius"].tolist() == fitted.cv_results_["param_radius"].tolist()


def test_compiled_parts_other_than_trees_are_refused(tmp_path):
    bags, y = concept_problem()
    with pytest.raises(TypeError, match=r"model.estimators_\[0\]._tree is a .*KDTree, which cannot be saved safely"):
        save(SingleInstance(KNeighborsClassifier(algorithm="kd_tree")).fit(bags, y), tmp_path / "model.bagwise")
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_holds_itself_is_refused(tmp_path):
    model = RMISVC()
    model.loop_ = model
    with pytest.raises(TypeError, match=r"model.loop_ is a .*RMISVC, which cannot be saved safely"):
        save(model, tmp_path / "model.bagwise")


def test_a_tree_that_leads_out_of_its_array_is_refused(tmp_path):
    bags, y = concept_problem()
    file = tmp_path / "model.bagwise"
    save(SingleInstance(RandomForestClassifier(1, max_depth=2, random_state=0)).fit(bags, y), file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    refused = 0
    for name in [name for name in parts if name.endswith(".npy")]:
        values = np.load(io.BytesIO(parts[name]))
        if values.dtype != np.int64 or values.ndim != 1 or len(values) < 3:  # fields of the nodes
            continue
        changed = io.BytesIO()
        np.save(changed, np.where(values >= 0, values + 10**6, values))
        with zipfile.ZipFile(file, "w") as archive:
            for other, content in parts.items():
                archive.writestr(other, changed.getvalue() if other == name else content)
        try:
            load(file)
        except ModelFileError as error:
            refused += "tree" in str(error)
    assert refused == 3  # left children, right children, features


def test_a_failed_save_leaves_the_former_file(file, fitted):
    before = file.read_bytes()
    bad = OnInstances(FunctionTransformer(lambda rows: rows))
    with pytest.raises(TypeError, match=r"model.transformer.func is a .*function, which cannot be saved safely"):
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
        (lambda d, p: d["model"].update(object="collections.OrderedDict"), "does not know"),
        (lambda d, p: d["model"].update(object="bagwise._utils.lock.Lock"), "does not know"),
        (lambda d, p: d["model"].update(object="sklearn.utils._testing.TempMemmap"), "does not know"),
        (lambda d, p: d["model"].update(object="bagwise.preprocessing.Bags"), "does not know"),
        (lambda d, p: d["model"].update(object="sklearn.metrics._scorer.partial"), "does not know"),
        (lambda d, p: d.update(model={"metric": "os.system"}), "unknown value"),
        (lambda d, p: d.update(model={"metric": "sklearn.metrics._scorer.get_scorer.os"}), "unknown value"),
        (lambda d, p: d.update(model={"scalar_type": "ndarray"}), "unknown value"),
        (lambda d, p: d.update(model={"dtype": "|O"}), "holds Python objects"),
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
