"""The notebooks of examples/ run as they stand, and the site shows what they hold."""

import importlib.util

import pytest
from tests.docs.pages import ROOT

for _package in ("nbclient", "ipykernel", "cv2", "onnxruntime", "pandas"):
    pytest.importorskip(_package, reason=f"notebooks need {_package}")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.fixture(scope="module")
def pages():
    """The module that renders and runs notebooks."""
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(pages, path, tmp_path):
    notebook = pages.run(path, tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/jpeg;base64" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert (tmp_path / "boxes-run" / "report.html").is_file()
    assert (tmp_path / "boxes-dataset" / "data.yaml").is_file()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_holds_results_and_no_noise(pages, path):
    assert path.stat().st_size < 400_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells[1:]), "run `python docs/notebooks.py`"
    assert not [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_page_shows_code_and_results(pages, path):
    text = pages.as_markdown(path)
    assert "bagwise.discover(images, labels" in text
    assert text.count("data:image/jpeg;base64,") >= 2
    assert "windmill" in text
    assert "<style" not in text
