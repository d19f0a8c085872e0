"""The reference names everything that is public."""

import re

from tests.docs.pages import ROOT

import bagwise


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "reference.md").read_text()
    named = set(re.findall(r"^::: bagwise\.(\w+)$", text, re.MULTILINE))
    assert named >= set(bagwise.__all__)


def test_the_list_of_methods_is_true():
    from bagwise.all_estimators import classifiers, deep_classifiers
    from bagwise.base import InstanceScorer

    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    rows = [line.split("|") for line in text[text.index("## All of them") :].splitlines() if line.startswith("| `")]
    told = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    for kind in [*classifiers(), *deep_classifiers()]:
        row = told[kind.__name__]
        assert row[3].strip() == ("yes" if issubclass(kind, InstanceScorer) else "no"), kind
        assert row[4].strip() == ("yes" if kind.accepts_sparse else "no"), kind


def test_every_page_of_a_method_is_linked():
    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in text, f"docs/methods/index.md does not link {page.name}"
