"""What happens where torch is not installed."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_bagwise_and_its_networks_does_not_import_torch():
    assert run("import bagwise, bagwise.deep, sys; print('torch' in sys.modules)").strip() == "False"


def test_fitting_says_what_to_install(monkeypatch):
    from bagwise.deep import MiNet

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"bagwise\[deep\]"):
        MiNet().fit([[[0.0]], [[1.0]]], [0, 1])
