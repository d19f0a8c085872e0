"""Masks on the page, in a real Chromium: the decoder against pycocotools, what is drawn, and what is exported."""

import numpy as np
import pytest
from tests.review.support import drag, open_page, paint_all, press, shown_item, wait_ready, wait_saved, write_run

from bagwise._utils.rle import decode_mask, encode_mask
from bagwise.review.decisions import read_decisions
from bagwise.review.reviewed import reviewed_boxes

coco = pytest.importorskip("pycocotools.mask", reason="the comparison needs pycocotools")
expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
pytestmark = pytest.mark.browser
SIZE = (400, 300)

DRAWN = """() => {
    const canvas = document.getElementById("mask");
    if (canvas.hidden) return null;
    const { width, height } = canvas, { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    return [width, height, Array.from({ length: width * height }, (_, i) => data[4 * i + 3] > 0 ? 1 : 0).join("")];
}"""


def drawn(page):
    """The mask on screen as a bool array, or None."""
    found = page.evaluate(DRAWN)
    if found is None:
        return None
    width, height, bits = found
    return (np.frombuffer(bits.encode(), np.uint8) == ord("1")).reshape(height, width)


def ellipse(box):
    x1, y1, x2, y2 = box
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    return ((x - (x1 + x2) / 2) / (x2 - x1)) ** 2 + ((y - (y1 + y2) / 2) / (y2 - y1)) ** 2 < 0.25


@pytest.fixture
def run(tmp_path):
    """Every candidate has a mask but the last."""
    run = write_run(tmp_path / "run", [SIZE] * 2)
    paint_all(run)
    rows = run.boxes.to_pydict()
    corners = zip(rows["x1"], rows["y1"], rows["x2"], rows["y2"])
    rows["mask"] = ["" if rank == 3 else encode_mask(ellipse(box)) for box, rank in zip(corners, rows["rank"])]
    run.rewrite_boxes(rows)
    return run


def mask_of(run, item, rank):
    (row,) = [row for row in run.boxes.to_pylist() if row["image_id"] == item + 1 and row["rank"] == rank]
    return decode_mask(row["mask"], SIZE[1], SIZE[0])


def test_the_decoder_reads_what_pycocotools_writes(context, quiet_server):
    page = open_page(context, quiet_server)
    rng = np.random.default_rng(0)
    shapes = [(7, 9), (1, 30), (30, 1), (120, 161), (1200, 900)]
    masks = [rng.random(shape) < 0.5 for shape in shapes[:4]] + [np.zeros((5, 5), bool), np.ones((5, 5), bool)]
    y, x = np.mgrid[:1200, :900]
    masks.append((y - 500) ** 2 + (x - 300) ** 2 < 250**2)
    for mask in masks:
        text = coco.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode()
        height, width = mask.shape
        bits = page.evaluate(
            """async ([counts, width, height]) => {
                const { decode } = await import("/static/masks.js");
                return decode(counts, width, height).bits.join("");
            }""",
            [text, width, height],
        )
        found = (np.frombuffer(bits.encode(), np.uint8) == ord("1")).reshape(mask.shape)
        np.testing.assert_array_equal(found, mask)
    # The last one again at a third of its size: every pixel is that of the image under its middle.
    small = page.evaluate(
        """async ([counts, width, height]) => {
            const { decode } = await import("/static/masks.js");
            const { width: w, height: h, bits } = decode(counts, width, height, 1 / 3);
            return [w, h, bits.join("")];
        }""",
        [text, width, height],
    )
    found = (np.frombuffer(small[2].encode(), np.uint8) == ord("1")).reshape(small[1], small[0])
    np.testing.assert_array_equal(found, mask[1::3, 1::3])


def test_the_mask_of_the_shown_candidate_is_drawn_and_can_be_hidden(context, serve, run):
    page = open_page(context, serve(run))
    np.testing.assert_array_equal(drawn(page), mask_of(run, 1, 0))
    over, under = page.locator("#mask").bounding_box(), page.locator("#picture").bounding_box()
    assert over == under
    press(page, "c")
    np.testing.assert_array_equal(drawn(page), mask_of(run, 1, 1), "another candidate, another mask")
    press(page, "4")
    assert (drawn(page) <= mask_of(run, 1, 2)).all(), "this one has none of its own: that of the box most like it"
    press(page, "1", "m")
    assert drawn(page) is None
    expect(page.locator("#masks")).to_have_attribute("aria-pressed", "false")
    page.reload()
    wait_ready(page)
    assert drawn(page) is None, "hidden stays hidden"
    page.click("#masks")
    np.testing.assert_array_equal(drawn(page), mask_of(run, shown_item(page), 0))
    page.keyboard.down("h")
    expect(page.locator("#mask")).to_be_hidden()
    page.keyboard.up("h")
    expect(page.locator("#mask")).to_be_visible()


def test_the_chosen_mask_is_exported_and_a_smaller_box_cuts_it_off(context, serve, run):
    server = serve(run)
    page = open_page(context, server)
    press(page, "2", "Enter")
    wait_saved(page, server, 2)
    *_, x2, y2 = server.json("GET", "/api/items/0")["boxes"][0]
    drag(page, SIZE, (x2, y2), (x2 - 60, y2))
    seen = drawn(page)
    press(page, "Enter")
    box = wait_saved(page, server, 4)[-1]["boxes"][0]
    rows = {row["image_id"]: row for row in reviewed_boxes(run, read_decisions(run.path)).to_pylist()}
    np.testing.assert_array_equal(decode_mask(rows[2]["mask"], SIZE[1], SIZE[0]), mask_of(run, 1, 1))
    cut = decode_mask(rows[1]["mask"], SIZE[1], SIZE[0])
    np.testing.assert_array_equal(cut, seen, "what was on screen is what is written")
    assert not cut[:, round(box[2]) :].any()
    assert cut.any()
    assert (cut <= mask_of(run, 0, 0)).all()


def test_a_box_of_ones_own_has_no_mask(context, serve, run):
    server = serve(run)
    page = open_page(context, server)
    press(page, "Delete")
    drag(page, SIZE, (300, 200), (390, 290))
    press(page, "Enter")
    wait_saved(page, server, 3)
    (row,) = [row for row in reviewed_boxes(run, read_decisions(run.path)).to_pylist() if row["image_id"] == 2]
    assert row["mask"] == ""


def test_another_label_keeps_the_mask_of_its_box_and_offers_the_others(context, serve, run):
    server = serve(run)
    page = open_page(context, server)
    press(page, "l")
    page.keyboard.type("lynx")
    page.keyboard.press("Enter")
    page.wait_for_selector("#stage[aria-busy=false][data-item='2']")
    assert drawn(page) is None
    press(page, "2")
    np.testing.assert_array_equal(drawn(page), mask_of(run, 1, 1))
    press(page, "Enter")
    wait_saved(page, server, 3)
    rows = reviewed_boxes(run, read_decisions(run.path)).to_pylist()
    (row,) = [row for row in rows if row["label"] == "lynx"]
    np.testing.assert_array_equal(decode_mask(row["mask"], SIZE[1], SIZE[0]), mask_of(run, 1, 1))


def test_a_run_without_masks_has_no_button(context, quiet_server):
    page = open_page(context, quiet_server)
    expect(page.locator("#masks")).to_be_hidden()
    press(page, "m")
    assert drawn(page) is None


def test_a_finger_hides_the_mask_on_a_phone_on_its_side(browser, serve, run):
    context = browser.new_context(viewport={"width": 844, "height": 390}, has_touch=True, is_mobile=True)
    server = serve(run)
    page = open_page(context, server)
    assert drawn(page) is not None
    page.tap("#masks")
    assert drawn(page) is None
    assert server.log() == [], "and draws no box under the button"
    assert page.locator(".box").count() == 1
    context.close()
