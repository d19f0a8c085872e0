"""What can be imported from bagwise itself; it is imported when it is first asked for."""

import subprocess
import sys

import pytest

import bagwise


def test_every_public_name_can_be_had():
    for name in bagwise.__all__:
        assert getattr(bagwise, name).__name__ == name
    assert set(bagwise.__all__) == {name for names in bagwise._FROM.values() for name in names.split()}
    assert set(bagwise.__all__) <= set(dir(bagwise))


def test_parts_can_be_had_by_their_dots():
    code = "import bagwise; print(len(bagwise.datasets.load_musk1()[0]), bagwise.base.BagClassifier.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["92", "BagClassifier"], done.stderr


@pytest.mark.parametrize("name", ["RMISVM", "nothing", "_nothing", "datasets_"])
def test_unknown_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module 'bagwise' has no attribute '{name}'"):
        getattr(bagwise, name)
