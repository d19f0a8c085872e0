"""The examples of docstrings run, print what they say, and say something that a constant would not."""

import doctest
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

SOURCE = ROOT / "src"
EXAMPLE = re.compile(r"^ *>>> (?!.*doctest: \+SKIP)", re.MULTILINE)
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if EXAMPLE.search(path.read_text(encoding="utf-8"))]
CONSTANT = re.compile(r"array\(\[(\w+)(, \1)+\]\)")


def name(path: Path) -> str:
    """The module of a file."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("module", [name(path) for path in MODULES])
def test_examples_print_what_they_say(module):
    if module.startswith("bagwise.deep"):
        pytest.importorskip("torch", reason="the networks need torch")
    if module.startswith(("bagwise.discovery", "bagwise.api")) and find_spec("cv2") is None:
        pytest.skip("these examples need the extra vision")
    results = doctest.testmod(import_module(module))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_example_shows_a_constant(path):
    """One answer for all bags is what a model prints that has learned nothing."""
    for example in doctest.DocTestParser().get_examples(path.read_text(encoding="utf-8")):
        assert not CONSTANT.search(example.want), f"line {example.lineno + 1}: {example.source}{example.want}"


def test_a_wrong_example_is_noticed():
    assert CONSTANT.search("array([1, 1, 1])")
    assert not CONSTANT.search("array([1, 1, 0, 0])")
