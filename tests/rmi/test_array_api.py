"""Torch tensors in and out by scikit-learn's array API dispatch.

Dispatch needs SCIPY_ARRAY_API=1 before scipy is imported, so the tests run in a process of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
import sklearn
import torch

from bagwise import RMISVC, Bags

DISPATCH = os.environ.get("SCIPY_ARRAY_API") == "1"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
with_dispatch = pytest.mark.skipif(not DISPATCH, reason="runs in a process of its own")


@pytest.mark.skipif(DISPATCH, reason="this is that process")
def test_in_a_process_with_dispatch():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def cube(dtype=np.float64, n_classes=2):
    rng = np.random.RandomState(0)
    x = rng.randn(40, 6, 5).astype(dtype)
    y = np.arange(40) % n_classes
    for label in range(1, n_classes):
        x[y == label, 0, label] += 4
    return x, y


METHODS = ["decision_function", "predict_proba", "instance_scores", "instance_proba", "predict"]
OPTIONS = [
    {},
    {"scaling": None},
    {"scaling": "standard"},
    {"scaling": "root-unit"},
    {"scaling": "unit", "kernel": "rbf", "n_components": 20},
]


@with_dispatch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_answers_as_tensors(device, options, dtype, tolerance, n_classes):
    x, y = cube(dtype, n_classes)
    model = RMISVC(epochs=10, random_state=0, **options).fit(x, y)
    tensor = torch.from_numpy(x).to(device)
    ragged = [part[: 1 + i % 6] for i, part in enumerate(tensor)]
    for given in (tensor, ragged, tensor[:, 0, :]):
        plain = [part.cpu().numpy() for part in given] if isinstance(given, list) else given.cpu().numpy()
        for name in METHODS:
            expected = getattr(model, name)(plain)
            with sklearn.config_context(array_api_dispatch=True):
                found = getattr(model, name)(given)
            assert isinstance(found, torch.Tensor)
            assert found.device.type == device
            assert found.dtype == (torch.int64 if name == "predict" else tensor.dtype)
            np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)


@with_dispatch
def test_fitting_tensors_gives_the_model_of_arrays():
    x, y = cube()
    weight = np.linspace(1, 2, 40)
    one = RMISVC(epochs=5, random_state=0).fit(x, y, sample_weight=weight)
    with sklearn.config_context(array_api_dispatch=True):
        tensors = [torch.from_numpy(values) for values in (x, y, weight)]
        two = RMISVC(epochs=5, random_state=0).fit(*tensors)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert float(two.score(tensors[0], tensors[1])) == pytest.approx(one.score(x, y), abs=1e-6)
        more = RMISVC(0.01, random_state=0).partial_fit(*tensors[:2], classes=torch.tensor([0, 1]))
    np.testing.assert_array_equal(more.coef_, RMISVC(0.01, random_state=0).partial_fit(x, y, classes=[0, 1]).coef_)


@with_dispatch
def test_text_labels_stay_numpy():
    x, y = cube()
    names = np.array(["no", "yes"])[y]
    model = RMISVC(epochs=5, random_state=0).fit(x, names)
    with sklearn.config_context(array_api_dispatch=True):
        np.testing.assert_array_equal(model.predict(torch.from_numpy(x)), model.predict(x))


@with_dispatch
def test_other_numbers_and_blocks(monkeypatch):
    """Whole numbers are read as float64, half precision as float32; blocks of rows make one answer."""
    x, y = cube()
    whole = np.rint(3 * x).astype(np.int64)
    model = RMISVC(epochs=5, random_state=0).fit(whole, y)
    monkeypatch.setattr("bagwise.rmi.tensors.VALUES_AT_ONCE", 35)
    with sklearn.config_context(array_api_dispatch=True):
        np.testing.assert_allclose(model.decision_function(torch.from_numpy(whole)), model.decision_function(whole))
        half = model.decision_function(torch.from_numpy(whole).to(torch.float16))
    assert half.dtype == torch.float32
    np.testing.assert_allclose(half, model.decision_function(whole), rtol=1e-4, atol=1e-4)


@with_dispatch
def test_bad_tensors_are_explained():
    x, y = cube()
    model = RMISVC(epochs=2, random_state=0).fit(x, y)
    tensor = torch.from_numpy(x)
    broken = tensor.clone()
    broken[3, 2, 1] = torch.nan
    empty = [tensor[0], tensor[1][:0]]
    with sklearn.config_context(array_api_dispatch=True):
        with pytest.raises(ValueError, match="bag 3, row 2 holds NaN or infinity"):
            model.predict(broken)
        with pytest.raises(ValueError, match="bag 1 is empty"):
            model.predict(empty)
        with pytest.raises(ValueError, match="4 features, but RMISVC is expecting 5"):
            model.predict(tensor[:, :, :4])
        with pytest.raises(ValueError, match="two or three dimensions, not 1"):
            model.predict(tensor[0, 0])
        with pytest.raises(sklearn.exceptions.NotFittedError):
            RMISVC().predict(tensor)


def test_without_dispatch_tensors_are_read_as_arrays():
    x, y = cube()
    model = RMISVC(epochs=5, random_state=0).fit(torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_array_equal(model.coef_, RMISVC(epochs=5, random_state=0).fit(x, y).coef_)
    for given in (torch.from_numpy(x), list(torch.from_numpy(x))):
        scores = model.decision_function(given)
        assert isinstance(scores, np.ndarray)
        np.testing.assert_array_equal(scores, model.decision_function(Bags(x)))
