"""The list and its filters in a real Chromium, from six images to five thousand."""

import pytest
from tests.review.support import linked_run, open_page, press, shown_item, wait_ready

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_five_thousand_images_without_lag(context, serve, tmp_path):
    server = serve(linked_run(tmp_path / "run", 5000, candidates=10))
    page = open_page(context, server)
    paints = []
    for _ in range(4):  # the best of several: what else the machine does is not the page's doing
        page.goto(server.url)
        wait_ready(page)
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert min(paints) < 1000
    assert page.locator(".row").count() < 40
    assert "5000 listed" in page.inner_text("#list-summary")
    frames = page.evaluate(
        """async () => {
            const list = document.getElementById("list"), gaps = [];
            let last = performance.now();
            for (let i = 0; i < 60; i++) {
                list.scrollTop = i < 40 ? i * 700 : Math.random() * list.scrollHeight;
                await new Promise(requestAnimationFrame);
                const now = performance.now();
                gaps.push(now - last);
                last = now;
            }
            return gaps.sort((a, b) => a - b);
        }"""
    )
    assert frames[len(frames) // 2] < 50, "scrolling stays fluid"
    assert page.locator(".row").count() < 40
    page.evaluate("list.scrollTop = list.scrollHeight")
    page.wait_for_selector("#row-0 img[src]")
    for _ in range(10):
        press(page, "Enter")
    step = page.evaluate(
        """async () => {
            const times = [];
            for (let i = 0; i < 15; i++) {
                const start = performance.now(), before = stage.dataset.item;
                stage.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
                do await new Promise(requestAnimationFrame);
                while (stage.dataset.item === before || stage.getAttribute("aria-busy") !== "false");
                times.push(performance.now() - start);
            }
            return times.sort((a, b) => a - b)[7];
        }"""
    )
    assert step < 300, "from key press to the next image on screen"


def test_filters_search_and_order(context, serve, small_run):
    server = serve(small_run)
    page = open_page(context, server)
    page.select_option("#class-filter", label="dog (3)")
    wait_ready(page)
    assert "3 listed" in page.inner_text("#list-summary")
    assert shown_item(page) == 4
    page.keyboard.press("Escape")
    press(page, "Enter")
    assert shown_item(page) == 2, "only what is listed comes next"
    page.select_option("#show-filter", "checked")
    page.wait_for_selector("#stage[data-item='4']")
    page.select_option("#show-filter", "all")
    page.select_option("#class-filter", "")
    page.select_option("#order", "file")
    assert page.locator(".row .name").first.inner_text() == "picture 0001.jpg"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("0003")
    wait_ready(page)
    assert page.locator(".row").count() == 1
    assert shown_item(page) == 3
    page.keyboard.type("x Enter nothing")
    assert "Nothing fits" in page.inner_text("#list-summary")
    assert len(server.log()) == 1, "typing in the search decides nothing"
