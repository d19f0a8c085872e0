"""Wrong labels and other labels on the page, in a real Chromium: by key, by button, by finger; undone, and refitted."""

import pytest
from tests.review.learning import write_learnable_run
from tests.review.support import linked_run, open_page, paint_all, press, shown_item, wait_ready, wait_saved

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser


def wait_shown(page, item):
    page.wait_for_selector(f"#stage[aria-busy=false][data-item='{item}']")


def test_a_wrong_label_is_one_key_and_one_undo(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    assert page.inner_text("#absent .name") == "No cat"
    press(page, "w")
    assert shown_item(page) == 4, "and the next image is there"
    (line,) = wait_saved(page, server, 1)
    assert (line["action"], line["status"], line["boxes"], line["label"]) == ("absent", "absent", [], "cat")
    assert "1 wrong label" in page.inner_text("#progress-text")
    press(page, "ArrowLeft")
    expect(page.locator("#verdict")).to_have_text("⊘ No cat here")
    expect(page.locator("#row-5 .mark")).to_have_attribute("aria-label", "wrong label")
    page.select_option("#show-filter", "absent")
    assert page.locator(".row").count() == 1
    page.select_option("#show-filter", "all")
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    page.wait_for_selector("#stage[data-item='5'][data-status=open]")
    assert wait_saved(page, server, 2)[-1]["status"] == "open"
    expect(page.locator(".box")).to_have_count(1)


def test_another_label_instead_takes_the_boxes_along_and_is_checked_next(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    boxes = server.json("GET", "/api/items/5")["boxes"]
    press(page, "r")
    expect(page.locator("#label-dialog")).to_be_visible()
    assert page.locator("#label-classes button").all_inner_texts() == ["dog"]
    page.keyboard.press("Enter")
    wait_shown(page, 6)
    assert page.inner_text("#question") == "Does the box hold the dog?"
    (line,) = wait_saved(page, server, 1)
    assert (line["label"], line["status"], line["also"]["label"]) == ("cat", "absent", "dog")
    page.keyboard.press("Enter")
    line = wait_saved(page, server, 2)[-1]
    assert (line["label"], line["status"], line["boxes"], line["added"]) == ("dog", "accepted", boxes, True)
    assert "2 of 7 checked" in page.inner_text("#progress-text")
    page.keyboard.press("z")
    page.wait_for_selector("#stage[data-item='6'][data-status=open]")
    page.keyboard.press("z")
    page.wait_for_selector("#stage[data-item='5'][data-status=open]")
    expect(page.locator("#progress-text")).to_contain_text("0 of 6 checked")
    expect(page.locator("#list-summary")).to_contain_text("6 listed")


def test_a_new_class_as_well_gets_its_box_by_hand(context, serve, small_run):
    server = serve(small_run)
    page, other = open_page(context, server), open_page(context, server)
    press(page, "l")
    page.keyboard.type("  lynx")
    expect(page.locator("#label-classes button")).to_have_text("New class “lynx”")
    page.keyboard.press("Enter")
    wait_shown(page, 6)
    assert page.inner_text("#question") == "Where is the lynx?"
    assert "nothing found yet" in page.inner_text("#file")
    canvas = page.locator("#canvas").bounding_box()
    page.mouse.move(canvas["x"] + 20, canvas["y"] + 20)
    page.mouse.down()
    page.mouse.move(canvas["x"] + 120, canvas["y"] + 90)
    page.mouse.move(canvas["x"] + 200, canvas["y"] + 150)
    page.mouse.up()
    page.keyboard.press("Enter")
    line = wait_saved(page, server, 3)[-1]
    assert (line["label"], line["status"], len(line["boxes"])) == ("lynx", "accepted", 1)
    assert line["file"] == "cat/picture 0005.jpg"
    assert page.locator("#class-filter option").all_inner_texts() == [
        "All classes (7)", "cat (3)", "dog (3)", "lynx (1)",
    ]  # fmt: skip
    other.wait_for_selector("#row-6[data-status=accepted]")
    assert other.locator("#class-filter option").count() == 4, "the other window has heard of it"


def test_a_label_that_another_window_takes_back_leaves_the_screen(context, serve, small_run):
    server = serve(small_run)
    first, second = open_page(context, server), open_page(context, server)
    press(first, "l")
    first.keyboard.press("Enter")
    wait_shown(first, 6)
    second.locator("#row-6").click()
    wait_shown(second, 6)
    first.keyboard.press("z")
    wait_shown(second, 5)
    assert "6 listed" in second.inner_text("#list-summary")
    assert second.locator("#row-6").count() == 0


def test_a_label_that_the_image_has_cannot_be_given_again(context, serve, tmp_path):
    run = linked_run(tmp_path / "run", 2, labels=[("cat", "dog"), ("cat",)])
    page = open_page(context, serve(run))
    page.locator("#row-0").click()
    wait_shown(page, 0)
    press(page, "r")
    expect(page.locator("#label-classes button", has_text="dog")).to_be_disabled()
    page.keyboard.press("Enter")
    expect(page.locator("#label-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#label-dialog")).to_be_hidden()


def test_a_finger_relabels_on_a_phone(browser, serve, small_run):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    server = serve(small_run)
    page = open_page(context, server)
    page.tap("#absent")
    wait_ready(page)
    assert wait_saved(page, server, 1)[-1]["status"] == "absent"
    page.tap("#label")
    assert page.evaluate("document.activeElement.id") != "label-search", "no keyboard over the list"
    page.tap("#label-dialog input[value=also]")
    page.tap("#label-classes button")
    wait_shown(page, 6)
    page.tap("#undo")
    wait_shown(page, 4)  # the label is gone, the image stays
    log = wait_saved(page, server, 3)
    assert [line["action"] for line in log] == ["absent", "add", "undo"]
    context.close()


def test_a_change_refused_leaves_the_page_usable(context, serve, small_run):
    server = serve(small_run)
    first, second = open_page(context, server), open_page(context, server)
    first.route("**/api/changes*", lambda route: route.abort())
    press(second, "x")
    wait_saved(second, server, 1)
    press(first, "r")
    first.keyboard.press("Enter")
    expect(first.locator(".toast.bad")).to_contain_text("another window")
    wait_shown(first, 5)
    assert len(server.log()) == 1
    press(first, "u")
    assert wait_saved(first, server, 2)[-1]["action"] == "reopen"


def test_after_a_refit_the_list_scrolls_to_the_image_that_is_shown(context, serve, tmp_path):
    run = write_learnable_run(tmp_path / "run", images=60)
    paint_all(run)
    server = serve(run)
    page = open_page(context, server)
    page.select_option("#class-filter", label="cat (30)")
    wait_ready(page)
    page.keyboard.press("Escape")
    press(page, *["w"] * 4)
    wait_saved(page, server, 4)
    here = shown_item(page)
    page.evaluate("list.scrollTop = list.scrollHeight")
    page.click("#refit")
    expect(page.locator(".toast.good")).to_contain_text("unchecked answers changed", timeout=60_000)
    assert shown_item(page) == here
    row = page.locator(f"#row-{here}")
    expect(row).to_have_attribute("aria-selected", "true")
    seen, around = row.bounding_box(), page.locator("#list").bounding_box()
    assert around["y"] <= seen["y"] + 1
    assert seen["y"] + seen["height"] <= around["y"] + around["height"] + 1
