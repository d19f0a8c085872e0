"""bagwise info: what a person sends along with a question."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bagwise import installation
from bagwise._utils.caches import cache_folder
from bagwise.cli import app


def told(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["info", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_dependency_has_a_row():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    named = {name.split(">")[0].split("[")[0] for name in [*project["dependencies"], *extras]}
    rows = json.loads(told("--json"))["versions"]
    assert set(rows) == named | {"bagwise", "python", "system"}
    assert rows["bagwise"] == project["version"]


def test_what_is_missing_names_the_extra(monkeypatch):
    known = installation._version
    monkeypatch.setattr(installation, "_version", lambda name: None if name == "uvicorn" else known(name))
    (row,) = [line for line in told().splitlines() if "uvicorn" in line]
    assert row.split(maxsplit=1)[1] == "not installed: pip install 'bagwise[review]'"


def test_folders_have_sizes_and_variables(tmp_path, monkeypatch):
    (tmp_path / "cache" / "review").mkdir(parents=True)
    (tmp_path / "cache" / "net.onnx").write_bytes(b"x" * 3_000_000)
    (tmp_path / "cache" / "review" / "a.token").write_bytes(b"x" * 200_000)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    text = told()
    assert f"{tmp_path / 'cache'}, 3.2 MB (BAGWISE_CACHE sets it)" in text
    assert "not set (BAGWISE_DATA sets it)" in text
    assert cache_folder() == tmp_path / "cache"
    compiled = json.loads(told("--json"))["folders"]["compiled loops"]
    assert compiled["variable"] == "NUMBA_CACHE_DIR"
    assert compiled["bytes"] >= 0


def test_a_cache_that_does_not_exist_yet_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "none"))
    assert f"{tmp_path / 'none'}, 0.0 MB" in told()
    assert not (tmp_path / "none").exists()


def test_devices():
    pytest.importorskip("onnxruntime")
    devices = json.loads(told("--json"))["devices"]
    assert devices["CPU cores"] >= 1
    assert "CPU" in devices["ONNX Runtime"]
