"""Several windows, reloads and a server that dies, in a real Chromium: nobody's work is lost."""

import pytest
from tests.review.support import open_page, press, shown_item, wait_ready, wait_saved

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser


def test_a_reload_in_the_middle_loses_nothing(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    press(page, "Enter", "x", "ArrowRight", "c")
    here = shown_item(page)
    wait_saved(page, server, 3)
    page.reload()
    wait_ready(page)
    assert shown_item(page) == here
    assert "token" not in page.url
    assert "2 of 6 checked" in page.inner_text("#progress-text")
    assert page.get_attribute("#candidates button:nth-child(2)", "aria-pressed") == "true", "the chosen candidate"
    page.keyboard.press("z")
    page.wait_for_selector("#candidates button:nth-child(1)[aria-pressed=true]")
    assert wait_saved(page, server, 4)[-1]["action"] == "undo"


def test_two_windows_see_each_other_and_neither_loses_work(context, serve, small_run):
    server = serve(small_run)
    first, second = open_page(context, server), open_page(context, server)
    press(first, "Enter")
    second.wait_for_selector("#stage[data-item='5'][data-status=accepted]")
    press(second, "Enter")
    second.wait_for_selector("#stage[data-item='4']")
    wait_saved(second, server, 1)
    assert shown_item(second) == 4, "agreeing with what the other window did is no conflict and no new line"
    # Now both decide about the same image before hearing of each other.
    first.route("**/api/changes*", lambda route: route.abort())
    item = shown_item(second)
    assert shown_item(first) == item
    press(second, "x")
    wait_saved(second, server, 2)
    press(first, "c")
    first.wait_for_selector(".toast.bad")
    assert "another window" in first.inner_text(".toast.bad")
    assert len(server.log()) == 2, "the earlier word stands"
    assert server.log()[-1]["status"] == "rejected"
    assert first.get_attribute("#stage", "data-status") == "rejected", "and the late window shows it"
    assert shown_item(first) == item


def test_a_key_pressed_while_news_is_loading_is_about_what_is_on_screen(context, serve, small_run):
    server = serve(small_run)
    first, second = open_page(context, server), open_page(context, server)
    second.route("**/api/items/5", lambda route: None)
    with second.expect_request("**/api/items/5"):
        press(first, "c", "c")
    press(second, "Enter")
    assert shown_item(second) == 4, "the key was taken"
    expect(second.locator(".toast.bad")).to_contain_text("picture 0005.jpg: this image was changed in another window")
    second.unroute("**/api/items/5")  # which lets the held ones go
    second.keyboard.press("ArrowLeft")
    expect(second.locator("#candidates button:nth-child(3)")).to_have_attribute("aria-pressed", "true")
    assert [line["action"] for line in server.log()] == ["edit", "edit"], "boxes that were not on screen stand"


def test_much_news_from_another_window_does_not_make_this_one_ask_ever_more_often(context, serve, small_run):
    server = serve(small_run)
    page, other = open_page(context, server), open_page(context, server)
    other.evaluate(
        """async () => {
            const channel = new BroadcastChannel("bagwise-review");
            for (let i = 0; i < 30; i++) {
                channel.postMessage("changed");
                await new Promise((resolve) => setTimeout(resolve, 10));
            }
        }"""
    )
    other.close()
    asked = []
    page.wait_for_timeout(1500)
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert 1 <= len(asked) <= 4


def test_a_killed_server_comes_back_and_no_decision_is_lost(context, process):
    server = process
    page = open_page(context, server)
    press(page, "Enter")
    wait_saved(page, server, 1)
    page.wait_for_timeout(300)  # the next images have been fetched ahead
    server.kill()
    page.keyboard.press("Enter")
    page.wait_for_selector("#offline:not([hidden])")
    assert "1 change waits" in page.inner_text("#offline")
    server.start()
    page.wait_for_selector("#offline", state="hidden")
    wait_saved(page, server, 2)
    press(page, "x")
    log = wait_saved(page, server, 3)
    assert [line["status"] for line in log] == ["accepted", "accepted", "rejected"]
    assert "3 of 6 checked" in page.inner_text("#progress-text")
