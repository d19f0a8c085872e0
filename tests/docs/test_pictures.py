"""Pictures of the README: badges are true, and what moves is small enough."""

import runpy

import pytest
from tests.docs.pages import ROOT

IMAGES = ROOT / "docs" / "images"
BADGES = runpy.run_path(str(IMAGES / "badges.py"))["badges"]()


@pytest.mark.parametrize("name", BADGES)
def test_badge_is_true(name):
    assert (IMAGES / name).read_text() == BADGES[name], "run docs/images/badges.py again"


def test_readme_shows_every_badge():
    text = (ROOT / "README.md").read_text()
    assert all(f"(docs/images/{name})" in text for name in BADGES)


def test_moving_picture():
    image = pytest.importorskip("PIL.Image", reason="pictures need the extra vision")
    path = IMAGES / "moving-picture.webp"
    assert path.stat().st_size < 2_000_000
    with image.open(path) as picture:
        assert picture.n_frames > 5
    assert "docs/images/moving-picture.webp" in (ROOT / "README.md").read_text()
