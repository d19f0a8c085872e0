"""What a command says where the extra that it needs is not installed."""

import sys

import pytest

from bagwise.cli import app


@pytest.mark.parametrize("part", ["starlette", "uvicorn"])
def test_review_names_its_extra(part, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, part, None)  # as if it were not there
    with pytest.raises(ImportError, match=r"pip install 'bagwise\[review\]'"):
        app(["review", str(tmp_path), "--no-browser"], standalone_mode=False)
