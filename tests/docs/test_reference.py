"""The reference names everything that is public."""

import re

import pytest
from tests.docs.pages import ROOT

import bagwise
import bagwise.datasets
import bagwise.metrics

REFERENCE = ROOT / "docs" / "reference"


def _reference() -> str:
    return "\n".join(page.read_text() for page in sorted(REFERENCE.glob("*.md")))


def test_every_public_name_is_in_the_reference():
    named = set(re.findall(r"^::: bagwise\.(\w+)$", _reference(), re.MULTILINE))
    assert named >= set(bagwise.__all__)


@pytest.mark.parametrize("module", [bagwise.datasets, bagwise.metrics], ids=lambda module: module.__name__)
def test_every_public_name_of_a_module_is_in_the_reference(module):
    members = re.search(rf"^::: {module.__name__}\n    options:\n      members: \[(.*)\]$", _reference(), re.MULTILINE)
    assert members
    assert set(members.group(1).split(", ")) == set(module.__all__)


def test_nothing_is_in_the_reference_twice():
    named = re.findall(r"^::: (\S+)$", _reference(), re.MULTILINE)
    assert len(named) == len(set(named))


def test_every_page_of_the_reference_is_linked():
    pages = [page.name for page in REFERENCE.glob("*.md") if page.name != "index.md"]
    for text in ((REFERENCE / "index.md").read_text(), (ROOT / "mkdocs.yml").read_text()):
        assert not [page for page in pages if page not in text]


def test_the_list_of_methods_is_true():
    from bagwise.base import InstanceScorer
    from bagwise.registry import classifiers

    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    rows = [line.split("|") for line in text[text.index("## All of them") :].splitlines() if line.startswith("| `")]
    told = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    for kind in classifiers():
        row = told[kind.__name__]
        assert row[3].strip() == ("yes" if issubclass(kind, InstanceScorer) else "no"), kind
        assert row[4].strip() == ("yes" if kind.accepts_sparse else "no"), kind


def test_every_page_of_a_method_is_linked():
    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in text, f"docs/methods/index.md does not link {page.name}"
