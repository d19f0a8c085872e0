"""The reference names everything that is public."""

import re

from tests.docs.pages import ROOT

import bagwise


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "reference.md").read_text()
    named = set(re.findall(r"^::: bagwise\.(\w+)$", text, re.MULTILINE))
    assert named >= set(bagwise.__all__)


def test_every_method_has_a_page_in_the_list():
    from bagwise.all_estimators import classifiers, deep_classifiers

    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    table = text[text.index("## All of them") :]
    for kind in [*classifiers(), *deep_classifiers()]:
        assert f"`{kind.__name__}`" in table, f"docs/methods/index.md does not list {kind.__name__}"


def test_every_page_of_a_method_is_linked():
    text = (ROOT / "docs" / "methods" / "index.md").read_text()
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in text, f"docs/methods/index.md does not link {page.name}"
