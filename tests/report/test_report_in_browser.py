"""The report as a browser shows it: on a phone, in the dark, on paper, without a network."""

import numpy as np
import pytest
from tests.discovery.runs import FILES, make_run

from bagwise._utils.rle import encode_mask
from bagwise.discovery.evaluation.kept import keep_evaluation
from bagwise.discovery.evaluation.runs import evaluate_run
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.report import write_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run, truth = make_run(folder)
    rows, sizes = run.boxes.to_pydict(), run.images.to_pylist()
    rows["mask"] = [
        encode_mask(np.ones((sizes[i - 1]["height"], sizes[i - 1]["width"]), bool)) for i in rows["image_id"]
    ]
    run.rewrite_boxes(rows)
    images = ImageSet(folder / "images", list(FILES), [()] * len(FILES), truth)
    keep_evaluation(run, evaluate_run(run, images), truth)
    return write_report(run).as_uri()


@pytest.fixture
def open_page(browser, address):
    contexts = []

    def open_(**settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_nothing_sticks_out_and_nothing_is_fetched(open_page, address, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in page.asked if not url.startswith("data:")] == [address]
    assert page.said == []  # not even a complaint of the content-security policy


def test_pictures_are_there_and_boxes_lie_over_them(open_page):
    page = open_page(viewport={"width": 1000, "height": 800})
    page.evaluate("for (const image of document.images) image.loading = 'eager'")
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    off = page.evaluate(
        """[...document.querySelectorAll('.frame')].filter(frame => frame.querySelector('img')).map(frame => {
            const image = frame.querySelector('img').getBoundingClientRect();
            const cover = frame.querySelector('svg').getBoundingClientRect();
            return Math.max(...['left', 'top', 'right', 'bottom'].map(side => Math.abs(image[side] - cover[side])));
        })"""
    )
    assert len(off) > 10
    assert max(off) < 1.5


def test_masks_lie_over_their_images(open_page):
    page = open_page(viewport={"width": 390, "height": 844})
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    off = page.evaluate(
        """[...document.querySelectorAll('img.mask')].map(mask => {
            const [over, image] = [mask, mask.previousElementSibling].map(each => each.getBoundingClientRect());
            return Math.max(...['left', 'top', 'right', 'bottom'].map(side => Math.abs(image[side] - over[side])));
        })"""
    )
    assert len(off) == 10, "one for each answer"
    assert max(off) < 1.5


def luminance(page, selector, property):
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{property}")
    red, green, blue = (int(value) for value in colour[4:-1].split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_dark_rooms_and_paper(open_page):
    page = open_page(color_scheme="dark")
    assert luminance(page, "body", "backgroundColor") < 60
    assert luminance(page, "body", "color") > 200
    page.emulate_media(media="print")
    assert luminance(page, "body", "backgroundColor") > 240
    assert luminance(page, "body", "color") < 30
    light = open_page(color_scheme="light")
    assert luminance(light, "body", "backgroundColor") > 240


def test_names_made_of_markup_and_hidden_marks_are_text(browser, tmp_path):
    """Labels and file names that would run, fetch or turn the page round show as what they are."""
    from tests.review.support import paint_all, write_run

    title = "document.title='owned'"
    labels = [f"<img src=x onerror={title}>", "\u202egpj.exe\x1b[31m", f'"><script>{title}<_script>']
    run = write_run(tmp_path / "run", [(160, 120)] * 6, labels=[(label,) for label in labels * 2])
    paint_all(run)
    page = browser.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    address = write_report(run).as_uri()
    page.goto(address)
    text = page.inner_text("body")
    assert "<img src=x onerror=" in text
    assert "⟨U+202E⟩gpj.exe⟨U+001B⟩[31m" in text
    assert not set(page.content()) & {"\u202e", "\x1b"}
    assert "owned" not in page.title()
    assert page.locator("img[onerror], script").count() == 0
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert said == []
    page.close()
