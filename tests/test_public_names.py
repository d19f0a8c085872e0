"""What can be imported from bagwise itself; it is imported when it is first asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bagwise


def test_every_public_name_can_be_had():
    for name in bagwise.__all__:
        assert getattr(bagwise, name).__name__ == name
    assert set(bagwise.__all__) <= set(dir(bagwise))


def test_tools_that_read_types_know_the_same_names():
    tree = ast.parse(Path(bagwise.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {alias.name for node in block.body for alias in node.names}
    assert told == set(bagwise.__all__)


def test_parts_can_be_had_by_their_dots():
    code = "import bagwise; print(len(bagwise.datasets.load_musk1()[0]), bagwise.base.BagClassifier.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["92", "BagClassifier"], done.stderr


@pytest.mark.parametrize("name", ["RMISVM", "nothing", "_nothing", "datasets_"])
def test_unknown_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module 'bagwise' has no attribute '{name}'"):
        getattr(bagwise, name)
