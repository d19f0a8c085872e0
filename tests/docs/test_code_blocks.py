"""Every Python and bash block of the README and the documentation runs, page by page, from top to bottom."""

import os

import pytest
from tests.docs.pages import PAGES, Block, blocks, name

from bagwise.cli import app

RUNNING = [page for page in PAGES if any(block.kind in ("python", "bash") for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        _skip_without_extras(block)
        if block.kind == "python":
            # The line numbers of errors are those of the page.
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        elif block.kind == "bash":
            for words in block.commands():
                app(words, standalone_mode=False)
    assert os.getcwd() == str(tmp_path)


def _skip_without_extras(block: Block) -> None:
    if "import torch" in block.text or "bagwise.deep" in block.text:
        pytest.importorskip("torch", reason="this page needs torch")
    if "bagwise.discovery" in block.text or "bagwise discover " in block.text:
        pytest.importorskip("cv2", reason="this page needs the extra vision")
        pytest.importorskip("onnxruntime", reason="this page needs the extra vision")
