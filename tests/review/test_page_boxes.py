"""Boxes under the hand in a real Chromium: mouse, finger, and pictures of every shape."""

import pytest
from tests.review.support import drag, open_page, paint, paint_all, place_of, press, shown_item, wait_saved, write_run

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser


def test_corners_and_edges_are_dragged_and_saved_at_once(context, serve, tmp_path):
    size = (400, 300)
    run = write_run(tmp_path / "run", [size] * 2)
    paint_all(run)
    server = serve(run)
    page = open_page(context, server)
    x1, y1, x2, y2 = server.json("GET", "/api/items/1")["boxes"][0]
    drag(page, size, (x2, y2), (300, 250))
    (line,) = wait_saved(page, server, 1)
    assert (line["action"], line["status"]) == ("edit", "open")
    assert line["boxes"][0] == pytest.approx([x1, y1, 300, 250], abs=1.5)
    drag(page, size, (x1, 120), (80, 120))
    (box,) = wait_saved(page, server, 2)[-1]["boxes"]
    assert box == pytest.approx([80, y1, 300, 250], abs=1.5), "the left edge, held anywhere"
    drag(page, size, (150, 120), (160, 90))
    (box,) = wait_saved(page, server, 3)[-1]["boxes"]
    assert box == pytest.approx([90, y1 - 30, 310, 220], abs=1.5)
    drag(page, size, (200, 100), (600, 100))
    (box,) = wait_saved(page, server, 4)[-1]["boxes"]
    assert box[2] == 400, "a box stays inside the image"
    press(page, "Enter")
    assert wait_saved(page, server, 5)[-1]["boxes"] == [box]


def test_boxes_are_drawn_removed_and_undone(context, serve, tmp_path):
    size = (400, 300)
    run = write_run(tmp_path / "run", [size] * 2)
    paint_all(run)
    server = serve(run)
    page = open_page(context, server)
    drag(page, size, (380, 280), (300, 200))
    assert len(wait_saved(page, server, 1)[-1]["boxes"]) == 2
    assert page.locator(".box").count() == 2
    press(page, "d")
    drag(page, size, (100, 100), (150, 150))
    boxes = wait_saved(page, server, 2)[-1]["boxes"]
    assert boxes[2] == pytest.approx([100, 100, 150, 150], abs=1.5), "D draws even over a box"
    press(page, "Delete")
    assert wait_saved(page, server, 3)[-1]["boxes"] == boxes[:2]
    press(page, "Enter")
    wait_saved(page, server, 4)
    assert shown_item(page) == 0
    page.keyboard.press("z")
    page.wait_for_selector("#stage[data-item='1'][data-status=open]")
    assert len(wait_saved(page, server, 5)[-1]["boxes"]) == 2
    press(page, "Control+z")
    assert len(wait_saved(page, server, 6)[-1]["boxes"]) == 3
    press(page, "z", "z")
    last = wait_saved(page, server, 8)[-1]
    assert (last["status"], last["boxes"]) == ("open", None)
    expect(page.locator(".box")).to_have_count(1)
    page.keyboard.press("z")
    page.wait_for_selector("text=nothing to undo")


@pytest.mark.parametrize(
    ("size", "stored", "orientation"),
    [
        ((6000, 4000), (6000, 4000), None),
        ((900, 2400), (900, 2400), None),
        ((600, 800), (800, 600), 6),
        ((800, 600), (800, 600), 3),
        ((24, 16), (24, 16), None),
    ],
    ids=["large", "portrait", "turned a quarter", "turned upside down", "tiny"],
)
def test_boxes_lie_where_they_belong_on_any_picture(context, serve, tmp_path, size, stored, orientation):
    run = write_run(tmp_path / "run", [size])
    paint(run.image_path(run.images["file"][0].as_py()), *stored, orientation=orientation)
    server = serve(run)
    page = open_page(context, server)
    natural = page.evaluate("[picture.naturalWidth, picture.naturalHeight]")
    assert natural[0] / natural[1] == pytest.approx(size[0] / size[1], rel=0.01)
    assert max(natural) <= 1920
    stage, canvas = page.locator("#stage").bounding_box(), page.locator("#canvas").bounding_box()
    assert canvas["x"] >= stage["x"]
    assert canvas["y"] + canvas["height"] <= stage["y"] + stage["height"]
    assert canvas["width"] / canvas["height"] == pytest.approx(size[0] / size[1], rel=0.01)
    # The painted patch fills the middle half: its corners, found in the pixels on screen, are where a box is drawn.
    press(page, "Delete")
    drag(page, size, (size[0] / 4, size[1] / 4), (3 * size[0] / 4, 3 * size[1] / 4))
    (box,) = wait_saved(page, server, 2)[-1]["boxes"]
    pixel = max(size[0] / canvas["width"], 1)
    assert box == pytest.approx([size[0] / 4, size[1] / 4, 3 * size[0] / 4, 3 * size[1] / 4], abs=1.5 * pixel)
    inside, outside = page.evaluate(
        """() => {
            const canvas = document.createElement("canvas");
            canvas.width = picture.naturalWidth; canvas.height = picture.naturalHeight;
            const pen = canvas.getContext("2d");
            pen.drawImage(picture, 0, 0);
            const mean = (x, y) => {
                const [r, g, b] = pen.getImageData(x * canvas.width, y * canvas.height, 1, 1).data;
                return (r + g + b) / 3;
            };
            return [Math.min(mean(.3, .3), mean(.7, .7)), Math.max(mean(.15, .15), mean(.85, .15), mean(.85, .85))];
        }"""
    )
    assert inside > outside + 30


def test_a_finger_draws_and_two_zoom(browser, serve, small_run):
    context = browser.new_context(viewport={"width": 820, "height": 1100}, has_touch=True)
    server = serve(small_run)
    page = open_page(context, server)
    touch = context.new_cdp_session(page)

    def send(kind, *points):
        places = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    size = (160, 120)
    send("touchStart", place_of(page, 115, 90, size))
    send("touchMove", place_of(page, 130, 100, size))
    send("touchMove", place_of(page, 150, 112, size))
    send("touchEnd")
    boxes = wait_saved(page, server, 1)[-1]["boxes"]
    assert boxes[1] == pytest.approx([115, 90, 150, 112], abs=1.5)
    before = page.locator("#canvas").bounding_box()["width"]
    x, y = place_of(page, 80, 60, size)
    send("touchStart", (x - 40, y), (x + 40, y))
    send("touchMove", (x - 80, y), (x + 80, y))
    send("touchMove", (x - 120, y), (x + 120, y))
    send("touchEnd")
    assert page.locator("#canvas").bounding_box()["width"] > 2 * before
    assert len(server.log()) == 1, "zooming draws nothing"

    def tap(target):
        page.wait_for_timeout(700)  # as a person does: a touch right after a pinch is no tap to Chromium
        page.tap(target)

    tap("#toggle-list")
    tap("#row-3")
    page.wait_for_selector("#stage[data-item='3']")
    tap("#accept")
    wait_saved(page, server, 2)
    context.close()
