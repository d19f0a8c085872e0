"""The report as a browser shows it: on a phone, in the dark, on paper, without a network."""

import pytest
from tests.discovery.runs import FILES, make_run

from bagwise.discovery.imageset import ImageSet
from bagwise.evaluation.kept import keep_evaluation
from bagwise.evaluation.runs import evaluate_run
from bagwise.report import write_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run, truth = make_run(folder)
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
