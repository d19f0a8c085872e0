"""The page on phones and in the dark, in a real Chromium: the image gets the room, nothing lies outside."""

import pytest
from tests.review.support import open_page, paint_all, press, shown_item, wait_ready, wait_saved, write_run

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser
PORTRAIT, LANDSCAPE = (390, 844), (844, 390)


@pytest.fixture
def open_on(browser, serve, tmp_path):
    """Opens the page of a run of ordinary photographs on a screen of this size."""
    run = write_run(tmp_path / "run", [(640, 480)] * 4, labels=[("screwDriver",)] * 4)
    paint_all(run)
    contexts = []

    def open_(size, **options):
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True, **options)
        contexts.append(context)
        server = serve(run)
        return open_page(context, server), server

    yield open_
    for context in contexts:
        context.close()


BUTTONS = ("previous", "reject", "absent", "label", "candidate", "draw", "remove", "accept", "next")
TOOLS = ("toggle-list", "undo", "refit", "export", "help")


@pytest.mark.parametrize("size", [PORTRAIT, LANDSCAPE, (932, 430), (667, 375), (360, 640)], ids=str)
def test_every_button_is_on_the_screen_and_large_enough_for_a_finger(open_on, size):
    page, _ = open_on(size, is_mobile=True)
    press(page, "w", "Enter", "x")  # the number of decisions takes room, too
    places = {name: page.locator(f"#{name}").bounding_box() for name in (*BUTTONS, *TOOLS)}
    for name, box in places.items():
        assert box["x"] >= 0, name
        assert box["y"] >= 0, name
        assert box["x"] + box["width"] <= size[0], name
        assert box["y"] + box["height"] <= size[1], name
        assert box["height"] >= (44 if name in BUTTONS else 36), name
        assert box["width"] >= (44 if name in BUTTONS else 24), name
    for name in BUTTONS:
        assert page.evaluate(f"document.getElementById('{name}').scrollWidth <= {places[name]['width'] + 1}"), name
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("size", [LANDSCAPE, (932, 430), (667, 375)], ids=str)
def test_on_its_side_the_image_gets_most_of_the_height(open_on, size):
    page, _ = open_on(size, is_mobile=True)
    picture = page.locator("#picture").bounding_box()
    assert picture["height"] >= 0.7 * size[1]
    question = page.locator("#question").bounding_box()
    assert question["x"] >= picture["x"] + picture["width"], "words stand beside it, not over it"


def test_upright_the_image_gets_its_width(open_on):
    page, _ = open_on(PORTRAIT, is_mobile=True)
    picture = page.locator("#picture").bounding_box()
    assert picture["width"] >= 0.85 * PORTRAIT[0]


@pytest.mark.parametrize("size", [PORTRAIT, LANDSCAPE], ids=str)
def test_help_opens_at_its_beginning_and_closes_with_one_tap(open_on, size):
    page, server = open_on(size, is_mobile=True)
    page.tap("#help")
    dialog, title = page.locator("#help-dialog").bounding_box(), page.locator("#help-title").bounding_box()
    assert page.evaluate("document.getElementById('help-dialog').scrollTop") == 0
    assert dialog["y"] <= title["y"] < dialog["y"] + 60
    assert page.evaluate("document.getElementById('help-dialog').scrollHeight") > dialog["height"], (
        "there is more below"
    )
    page.evaluate("document.getElementById('help-dialog').scrollTop = 400")
    page.tap("#help-dialog button")
    expect(page.locator("#help-dialog")).to_be_hidden()
    press(page, "?")
    assert page.evaluate("document.getElementById('help-dialog').scrollTop") == 0, "by key, too, and the second time"
    page.keyboard.press("Enter")
    expect(page.locator("#help-dialog")).to_be_hidden()
    assert server.log() == []


def test_on_its_side_the_list_opens_and_leads_to_an_image(open_on):
    page, server = open_on(LANDSCAPE, is_mobile=True)
    page.tap("#toggle-list")
    page.wait_for_timeout(300)  # it slides in
    page.tap("#row-1")
    page.wait_for_selector("#stage[aria-busy=false][data-item='1']")
    page.tap("#accept")
    wait_ready(page)
    assert wait_saved(page, server, 1)[-1]["image_id"] == 2
    assert shown_item(page) != 1


def test_turning_the_phone_changes_the_layout_and_nothing_else(open_on):
    page, server = open_on(PORTRAIT, is_mobile=True)
    press(page, "c")
    page.set_viewport_size({"width": LANDSCAPE[0], "height": LANDSCAPE[1]})
    expect(page.locator("#candidates button:nth-child(2)")).to_have_attribute("aria-pressed", "true")
    box, canvas = page.locator(".box").bounding_box(), page.locator("#canvas").bounding_box()
    left = server.json("GET", f"/api/items/{shown_item(page)}")["boxes"][0][0]
    assert (box["x"] - canvas["x"]) / canvas["width"] == pytest.approx(left / 640, abs=0.01)


def test_no_confidence_is_certainty(open_on, serve, browser, tmp_path):
    run = write_run(tmp_path / "sure", [(160, 120)] * 2)
    rows = run.boxes.to_pydict()
    rows["confidence"] = [1.0 if image == 1 else 0.9996 for image in rows["image_id"]]
    run.rewrite_boxes(rows)
    paint_all(run)
    context = browser.new_context()
    page = open_page(context, serve(run))
    for _ in range(2):
        assert "confidence >99%" in page.inner_text("#file")
        assert "100%" not in page.inner_text("body")
        press(page, "ArrowRight")
    assert page.get_attribute("#row-0 .meter", "aria-label") == "confidence >99%"
    context.close()
