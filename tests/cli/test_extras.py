"""What a command says where the extra that it needs is not installed."""

import subprocess
import sys

import pytest

from bagwise.cli import app


@pytest.mark.parametrize("part", ["starlette", "uvicorn"])
def test_review_names_its_extra(part, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, part, None)  # as if it were not there
    with pytest.raises(ImportError, match=r"pip install 'bagwise\[review\]'"):
        app(["review", str(tmp_path), "--no-browser"], standalone_mode=False)


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "typer", "rich", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import importlib.util
find = importlib.util.find_spec
def find_spec(name, package=None):
    try:
        return find(name, package)
    except ModuleNotFoundError:
        return None
importlib.util.find_spec = find_spec
"""


def without_extras(code: str) -> subprocess.CompletedProcess:
    """Run code where the command line's packages are not installed."""
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)


def test_the_library_needs_no_extra():
    code = """
from bagwise import *
from bagwise.datasets import load_musk1
bags, y = load_musk1()
model = RMISVC(random_state=0).fit(bags, y)
print(model.score(bags, y) > 0.8, len(compare(bags, y, methods=["MI-Kernel"], n_folds=2, n_repeats=1).rows))
"""
    done = without_extras(code)
    assert done.stdout.split() == ["True", "2"], done.stderr


def test_the_command_says_what_to_install():
    done = without_extras("from bagwise.__main__ import main\nmain()")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the command line needs the package 'typer': pip install 'bagwise[cli]'" in done.stderr


def test_functions_for_images_say_what_to_install():
    done = without_extras("import bagwise\nbagwise.discover")
    assert "bagwise.discover needs the package 'pyarrow'" in done.stderr
    assert "pip install 'bagwise[vision]'" in done.stderr
