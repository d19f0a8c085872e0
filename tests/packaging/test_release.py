"""A release anyone can check: the same bytes from every copy of the tree, a parts list, tested versions."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("packaging")
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release.constraints import FILE, ROOT, read_pins

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EPOCH = 1_700_000_000


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("the tree is no git checkout: there is no list of its files")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def copy_tree(target: Path, *, mtime: int, mode: int, backwards: bool) -> Path:
    """The tracked files with other times, permissions and order in their folders, and rubbish that git ignores."""
    for name in sorted(tracked_files(), reverse=backwards):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, path)
        path.chmod(mode)
        os.utime(path, (mtime, mtime))
    (target / "src" / "bagwise" / "__pycache__").mkdir()
    (target / "src" / "bagwise" / "__pycache__" / f"rubbish{mtime}.pyc").write_bytes(b"x")
    return target


@pytest.mark.slow
def test_two_copies_of_the_tree_give_the_same_bytes(tmp_path, monkeypatch):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    from release.build import build
    from release.sbom import parts_list

    monkeypatch.setenv("TZ", "UTC")
    one = copy_tree(tmp_path / "a", mtime=1_000_000_000, mode=0o644, backwards=False)
    first = build(one, tmp_path / "a-out", EPOCH)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("LC_ALL", "C")
    other = copy_tree(tmp_path / "quite" / "another place", mtime=1_600_000_001, mode=0o600, backwards=True)
    second = build(other, tmp_path / "b-out", EPOCH)
    assert first == second
    assert [name.rpartition(".")[2] for name in first] == ["whl", "gz"]
    # The time does go into the archives: without that the test would not show that nothing else does.
    third = build(one, tmp_path / "c-out", EPOCH + 1000)
    assert not set(first.values()) & set(third.values())
    (wheel,) = (tmp_path / "a-out").glob("*.whl")
    _check_parts_list(json.loads(json.dumps(parts_list(wheel, read_pins(), EPOCH))))


def _check_parts_list(document):
    """Valid by the schema of CycloneDX, readable by its own library, and complete."""
    bom = pytest.importorskip("cyclonedx.model.bom")
    import jsonschema
    import referencing

    folder = resources.files("cyclonedx.schema") / "_res"
    schemas = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir() if path.suffix == ".json"]
    registry = referencing.Registry().with_resources(
        [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas if "$id" in schema]
    )
    schema = next(schema for schema in schemas if schema.get("$id", "").endswith("bom-1.6.schema.json"))
    jsonschema.Draft7Validator(schema, registry=registry).validate(document)
    read = bom.Bom.from_json(document)
    assert read.metadata.component.name == "bagwise"
    parts = {part["name"]: part for part in document["components"]}
    for line in PROJECT["project"]["dependencies"]:
        name = canonicalize_name(Requirement(line).name)
        assert parts[name]["scope"] == "required"
        assert parts[name]["version"] == read_pins()[name]
    assert parts["llvmlite"]["scope"] == "required"  # of numba
    assert parts["starlette"]["scope"] == "optional"
    assert "pytest" not in parts
    model = parts["bagwise/discovery/proposals/weights/edges.onnx"]
    assert model["type"] == "machine-learning-model"
    assert parts["bagwise/datasets/data/musk1.npz"]["licenses"] == [{"license": {"name": "CC-BY-4.0"}}]
    known = {document["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in document["components"])}
    for node in document["dependencies"]:
        assert {node["ref"], *node["dependsOn"]} <= known


def all_requirements() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    return [Requirement(line) for line in [*lines, *(line for extra in extras.values() for line in extra)]]


def test_every_requirement_has_a_tested_version():
    """`make constraints` renews the file; it must be run when a dependency is added or its bound raised."""
    pins = read_pins()
    for requirement in all_requirements():
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} has no version in constraints.txt: run `make constraints`"
        assert requirement.specifier.contains(pins[name]), f"{name}=={pins[name]} is not {requirement.specifier}"


def test_constraints_hold_versions_and_nothing_else():
    for line in FILE.read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9][a-z0-9-]*==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize(
    "line", ["numpy>=2", "numpy @ https://example.invalid/numpy.whl", "numpy==2; python_version>'3'"]
)
def test_what_is_no_pin_is_refused(tmp_path, line):
    path = tmp_path / "constraints.txt"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match=r"name==version|unpack"):
        read_pins(path)


def test_everything_is_installed_with_the_tested_versions():
    """The environment of make and CI, and of each Python, is built with constraints.txt."""
    makefile, ci = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", ".ci/run"))
    rule = makefile[makefile.index("$(VENV)/.installed:") :].split("\n\n")[0]
    assert rule.count("$(PIP)") == rule.count("$(PIP) -c constraints.txt") == 2
    assert "--build-constraint constraints.txt" in rule
    assert ci.count("pip install") == ci.count("-c constraints.txt") == 1


def test_pythons_that_are_declared_are_those_that_were_tested():
    """CI and `make lower-bounds` run the first; of the others the outcome of `make another-python` is kept."""
    declared = {
        line.rpartition(" :: ")[2] for line in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)
    }
    results = json.loads((ROOT / "benchmarks" / "results" / "pythons.json").read_text(encoding="utf-8"))
    assert all(result["failed"] == 0 and result["passed"] > 500 for result in results)
    first = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert declared == {first, *(result["python"].rpartition(".")[0] for result in results)}
