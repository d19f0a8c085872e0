"""Keys and buttons of the page in a real Chromium: deciding, moving, and presses that come too early."""

import pytest
from tests.review.support import linked_run, open_page, place_of, press, shown_item, wait_ready, wait_saved

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser


def test_a_hundred_images_take_a_hundred_key_presses(context, serve, tmp_path):
    server = serve(linked_run(tmp_path / "run", 100))
    page = open_page(context, server)
    order = []
    for number in range(100):
        order.append(shown_item(page))
        press(page, "x" if number % 10 == 9 else "Enter")
    log = wait_saved(page, server, 100)
    assert order == list(range(99, -1, -1)), "the most doubtful come first"
    assert [line["image_id"] - 1 for line in log] == order
    assert [line["status"] for line in log] == (["accepted"] * 9 + ["rejected"]) * 10
    assert "100 of 100 checked" in page.inner_text("#progress-text")
    assert "All done" in page.inner_text("#toasts")


def test_arrows_only_move_and_a_held_key_decides_once(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    press(page, "ArrowRight", "ArrowDown", "ArrowLeft")
    assert shown_item(page) == 4
    press(page, "Home")
    assert shown_item(page) == 5
    press(page, "End", "ArrowRight")
    assert shown_item(page) == 0, "the end of the list is the end"
    press(page, "Home")
    assert server.log() == []
    told = page.inner_text("#file")
    assert "confidence 8%" in told
    page.keyboard.down("Enter")
    wait_ready(page)
    for _ in range(5):
        page.keyboard.down("Enter")  # what a held key sends
        page.wait_for_timeout(50)
    page.keyboard.up("Enter")
    wait_saved(page, server, 1)
    press(page, "Home")
    assert page.inner_text("#file") == told, "accepted as it was: the model's confidence stands"


def press_at_once(page, *keys):
    """Press faster than any hand, so that no image can come on screen in between."""
    page.evaluate(
        """(keys) => keys.forEach((key) =>
            stage.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })))""",
        keys,
    )


def test_keys_pressed_before_the_image_is_there_are_taken_in_their_order(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    press_at_once(page, "Enter", "x", "c", "Enter", "ArrowRight", "Enter", "x", "z")
    log = wait_saved(page, server, 7)
    assert [(line["image_id"] - 1, line["action"]) for line in log] == [
        (5, "accept"), (4, "reject"), (3, "edit"), (3, "accept"), (1, "accept"), (0, "reject"), (0, "undo"),
    ]  # fmt: skip
    assert log[3]["boxes"] == [server.json("GET", "/api/items/3")["candidates"][1]]
    page.wait_for_selector("#stage[data-item='0'][data-status=open]")


def test_a_key_that_waited_too_long_for_its_image_is_given_up_aloud(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    page.route("**/images/1/display*", lambda route: None)  # the last one, too far away to have been fetched ahead
    page.keyboard.press("End")
    page.keyboard.press("x")
    expect(page.locator(".toast.bad")).to_contain_text("a key press was not taken", timeout=10_000)
    page.unroute("**/images/1/display*")  # which lets the held ones go
    wait_ready(page)
    assert shown_item(page) == 0
    assert server.log() == [], "nothing was decided about an image that nobody saw"
    press(page, "x")
    assert wait_saved(page, server, 1)[-1]["status"] == "rejected"


def test_candidates_come_by_key_and_the_passed_over_ones_are_remembered(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    shown = server.json("GET", "/api/items/5")["candidates"]
    press(page, "c", "c", "Shift+C", "4", "Enter")
    last = wait_saved(page, server, 5)[-1]
    assert (last["action"], last["boxes"]) == ("accept", [shown[3]])
    # The third overlaps the chosen one by more than half: it was not wrong, only worse.
    assert last["rejected"] == shown[:2]
    press(page, "x")
    assert wait_saved(page, server, 6)[-1]["rejected"] == server.json("GET", "/api/items/4")["objects"]


def test_escape_gives_a_drag_up_and_keys_move_a_box(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    page.mouse.move(*place_of(page, 130, 100, (160, 120)))
    page.mouse.down()
    page.mouse.move(*place_of(page, 155, 115, (160, 120)))
    assert page.locator(".box").count() == 2
    page.keyboard.press("Escape")
    page.mouse.up()
    assert page.locator(".box").count() == 1
    assert server.log() == []
    press(page, "b", "Shift+ArrowRight", "Shift+Alt+ArrowDown")
    before = server.json("GET", "/api/items/5")["objects"][0]
    (box,) = wait_saved(page, server, 2)[-1]["boxes"]
    assert box == [before[0] + 1, before[1], before[2] + 1, before[3] + 1]


def test_buttons_do_what_keys_do_and_enter_after_a_click_still_accepts(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    page.click("#reject")
    wait_ready(page)
    press(page, "Enter")
    page.click("#candidate")
    page.click("#accept")
    wait_ready(page)
    page.click("#undo")
    log = wait_saved(page, server, 5)
    assert [line["action"] for line in log] == ["reject", "accept", "edit", "accept", "undo"]
    page.click("#candidates button:nth-child(3)")
    assert wait_saved(page, server, 6)[-1]["boxes"] == [
        server.json("GET", f"/api/items/{shown_item(page)}")["candidates"][2]
    ]
