"""The wheel and the source archive hold what they should, and the wheel works where there is nothing but it."""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def python(archives, tmp_path_factory) -> Path:
    """A Python with the wheel, and of bagwise nothing else; what it depends on is borrowed from this environment."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False)
    (wheel,) = archives.glob("*.whl")
    site = next((folder / "lib").glob("python3*/site-packages"))
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel, cwd=folder)
    # Later on the path than the wheel's own files, so that it is the wheel that is imported.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def test_wheel_holds_the_package_and_nothing_else(archives):
    (wheel,) = archives.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "bagwise/py.typed",
        "bagwise/datasets/data/musk1.npz",
        "bagwise/datasets/photos/CREDITS.csv",
        "bagwise/datasets/registry.txt",
        "bagwise/discovery/proposals/weights/edges.onnx",
        "bagwise/report/style.css",
        "bagwise/review/static/index.html",
    ):
        assert needed in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"bagwise"}
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert wheel.stat().st_size < 20e6


def test_source_archive_can_be_tested(archives):
    (archive,) = archives.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    for needed in (
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "Makefile",
        "tests/conftest.py",
        "docs/index.md",
        "mkdocs.yml",
    ):
        assert needed in names
    assert not [name for name in names if name.startswith((".venv", "demo-out", "site/"))]


def test_wheel_runs(python, tmp_path):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(python, "-m", "bagwise", "--version", cwd=tmp_path).split() == ["bagwise", version]
    facts = json.loads(run(python, "-m", "bagwise", "info", "--json", cwd=tmp_path))
    assert facts["versions"]["bagwise"] == version
    where = run(python, "-c", "import bagwise; print(bagwise.__file__)", cwd=tmp_path)
    assert str(python.parents[1]) in where


def test_wheel_learns_from_its_own_data(python, tmp_path):
    code = (
        "from bagwise import RMISVC; from bagwise.datasets import load_demo_photos, load_musk1; "
        "bags, y = load_musk1(); print(RMISVC(random_state=0).fit(bags, y).score(bags, y)); "
        "print(len(load_demo_photos().credits))"
    )
    score, photos = run(python, "-c", code, cwd=tmp_path).split()
    assert float(score) > 0.8
    assert int(photos) == 81


def test_command_line_starts_at_once(python, tmp_path):
    """Help and completion wait for nothing heavy."""
    code = (
        "import sys, bagwise.cli; print(*sorted({'numpy', 'scipy', 'sklearn', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    assert run(python, "-c", code, cwd=tmp_path).split() == []


def test_import_is_light(python, tmp_path):
    """Compilers, plots, networks and images wait until they are needed; classifiers import what scikit-learn does."""
    code = (
        "import sys, sklearn.svm; before = {name.split('.')[0] for name in sys.modules}; from bagwise import *; "
        "print(*({name.split('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names)))"
    )
    assert run(python, "-c", code, cwd=tmp_path).split() == ["bagwise"]


def test_version_is_the_same_everywhere():
    import bagwise

    assert bagwise.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_lower_bounds_are_the_versions_that_were_tested():
    """`make lower-bounds` installs these files' versions; torch, whose wheels are too large for that, is left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["cli"], *extras["vision"], *extras["review"], *extras["cluster"]]
    bounds = dict(re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups() for line in wanted)
    lines = (ROOT / "tests" / "packaging" / "lower-bounds.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(bounds) <= set(tested)
    for name, bound in bounds.items():
        padded = bound.split(".") + ["0"] * 4
        tested_as = tested[name].split(".")
        assert padded[: len(tested_as)] == tested_as or name == "opencv-contrib-python-headless", name
    assert tested["opencv-contrib-python-headless"].startswith(bounds["opencv-contrib-python-headless"])
