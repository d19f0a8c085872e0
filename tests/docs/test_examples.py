"""The examples of the gallery run and draw their figures, and the gallery shows each of them."""

import subprocess
import sys

import pytest
from tests.docs.pages import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "figures")
GALLERY = ROOT / "docs" / "gallery"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws_its_figure(example, tmp_path):
    smaller = ["--each", "12"] if example.stem == "defects" else []
    if example.stem in ("windmills", "defects"):
        pytest.importorskip("cv2", reason="this example needs the extra vision")
    done = subprocess.run([sys.executable, example, "-o", tmp_path, *smaller], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    picture = tmp_path / f"{example.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_shows_example(example):
    text = (GALLERY / "index.md").read_text()
    assert f"({example.stem}.png)" in text
    assert f"examples/{example.stem}.py" in text
    assert 0 < (GALLERY / f"{example.stem}.png").stat().st_size < 150_000
