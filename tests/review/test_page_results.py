"""What comes out of the page, in a real Chromium: exports, and refits that rank the rest again."""

import json

import pytest
from tests.review.learning import write_learnable_run
from tests.review.support import drag, open_page, paint_all, press, shown_item, wait_ready, wait_saved

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser


def test_export_from_the_page(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    press(page, "Enter")
    page.click("#export")
    page.check("input[value=coco]")
    page.check("#export-checked")
    page.click("#export-go")
    expect(page.locator("#export-result")).to_contain_text("written to")
    (document,) = (small_run.path / "exports").glob("coco-*/annotations.json")
    written = json.loads(document.read_text())
    assert len(written["annotations"]) == len(written["images"]) == 1
    page.keyboard.press("Escape")
    press(page, "Enter")
    assert len(wait_saved(page, server, 2)) == 2, "after the dialog, keys are about the image again"


def test_the_page_offers_every_format(context, quiet_server):
    from bagwise.discovery.run.export import FORMATS

    page = open_page(context, quiet_server)
    page.click("#export")
    offered = [box.get_attribute("value") for box in page.locator("input[name=format]").all()]
    assert sorted(offered) == sorted(FORMATS)
    assert all(box.is_visible() for box in page.locator("input[name=format]").all())


@pytest.fixture
def learnable(serve, tmp_path):
    run = write_learnable_run(tmp_path / "run")
    paint_all(run)
    return serve(run)


def test_refit_from_the_page_ranks_the_rest_again(context, learnable):
    server = learnable
    page = open_page(context, server)
    page.select_option("#class-filter", label="cat (12)")
    wait_ready(page)
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("Delete")
        drag(page, (320, 240), (20, 20), (120, 120))
        press(page, "Enter")
    wait_saved(page, server, 9)
    assert page.inner_text("#refit-count") == "3"
    page.click("#refit")
    expect(page.locator(".toast.good")).to_contain_text("9 of 21 unchecked answers changed", timeout=30_000)
    expect(page.locator("#refit-count")).to_be_hidden()
    wait_ready(page)
    assert server.json("GET", f"/api/items/{shown_item(page)}")["objects"] == [[20, 20, 120, 120]]
    box, canvas = page.locator(".box").bounding_box(), page.locator("#canvas").bounding_box()
    assert (box["x"] - canvas["x"]) / canvas["width"] == pytest.approx(20 / 320, abs=0.01), (
        "the new answer is on screen"
    )


def test_an_answer_that_the_refit_has_overtaken_is_not_believed(context, learnable):
    page = open_page(context, learnable)
    press(page, "Enter")
    wait_saved(page, learnable, 1)
    held = []

    def hold_the_first(route):
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/api/changes*", hold_the_first)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # asks at once
    while not held:
        page.wait_for_timeout(20)
    with page.expect_response("**/api/refit"):
        page.click("#refit")
    route, answer = held[0]
    assert answer.json()["refit"] == {"state": "idle"}
    with page.expect_response("**/api/changes*"):
        route.fulfill(response=answer)
    expect(page.locator(".toast.good")).to_contain_text("unchecked answers changed", timeout=30_000)
    assert "undefined" not in page.inner_text("#toasts")
