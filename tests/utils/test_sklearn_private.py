"""scikit-learn's private names are used in one place, which says so when one is gone; pre-releases are tried early."""

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn
from sklearn.base import BaseEstimator

import bagwise
from bagwise._utils import sklearn_private

SOURCE = Path(bagwise.__file__).parent
HERE = Path(sklearn_private.__file__)


def private_names(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("sklearn.") and "._" in alias.name]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if "._" in name]
    return found


def test_private_names_are_imported_in_one_place():
    users = {path for path in SOURCE.rglob("*.py") if private_names(ast.parse(path.read_text(encoding="utf-8")))}
    assert users == {HERE}


@pytest.mark.parametrize(
    ("owner", "name"),
    [(sklearn.utils._param_validation, "Interval"), (sklearn.utils._array_api, "get_namespace"),
     (sklearn.utils.validation, "_check_sample_weight"), (BaseEstimator, "_validate_params")],
)  # fmt: skip
def test_a_name_that_is_gone_is_said_in_one_sentence(monkeypatch, owner, name):
    monkeypatch.delattr(owner, name)
    with pytest.raises(ImportError, match=rf"scikit-learn {sklearn.__version__} no longer has .*{name}.*install"):
        runpy.run_path(str(HERE))


TRY = """
import sklearn, sys
assert sklearn.__version__ == sys.argv[1], sklearn.__version__
from bagwise.registry import METHODS
from tests.problems import concept_problem
bags, y = concept_problem(20)
for kind in [entry.load() for entry in METHODS.values() if not entry.needs]:
    model = kind()
    assert model.fit(bags, y).predict(bags).shape == y.shape, kind
    try:
        kind(**{next(iter(model.get_params())): object()}).fit(bags, y)
    except ValueError as error:
        assert "parameter" in str(error), error
    else:
        raise AssertionError(kind)
"""


@pytest.mark.slow
def test_newest_pre_release(tmp_path):
    """Every classifier fits and refuses a wrong parameter under a pre-release of scikit-learn, when one is out."""
    from packaging.version import Version

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--timeout", "5", "--retries", "0"]
    listed = subprocess.run(
        [*pip, "index", "versions", "--pre", "--json", "scikit-learn"], capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("no package index can be reached from here")
    newest = max(map(Version, json.loads(listed.stdout)["versions"]))
    if not newest.is_prerelease or newest < Version(sklearn.__version__):
        pytest.skip(f"there is no pre-release of scikit-learn after {newest}")
    target = tmp_path / "packages"
    install = [*pip, "install", "--quiet", "--pre", "--no-deps", "--target", str(target), f"scikit-learn=={newest}"]
    if subprocess.run(install, capture_output=True).returncode != 0:
        pytest.skip(f"scikit-learn {newest} has no build for this Python")
    path = os.pathsep.join([str(target), str(SOURCE.parent), "."])
    run = subprocess.run([sys.executable, "-c", TRY, str(newest)], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert run.returncode == 0, run.stderr
