"""Every Python block of the README and the documentation runs, page by page, from top to bottom."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CANDIDATES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in CANDIDATES if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        code = compile("\n" * line + block.group(1), str(page), "exec")
        if "import torch" in block.group(1) or "bagwise.deep" in block.group(1):
            pytest.importorskip("torch", reason="this page needs torch")
        exec(code, names)
    assert os.getcwd() == str(tmp_path)
