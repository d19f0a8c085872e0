"""The page on adding a method shows the method that the tests of the registry run."""

from tests.docs.pages import ROOT, blocks
from tests.test_registry import NEAREST_MEAN


def test_the_method_shown_is_the_one_tested():
    shown = blocks(ROOT / "docs" / "howto" / "new-method.md")[0].text
    tested = NEAREST_MEAN.replace("from bagwise.registry import register\n", "").split("register(NearestMean")[0]
    assert shown.strip() == tested.strip()
