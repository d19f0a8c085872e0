"""What the page must never do and always say, in a real Chromium."""

import pytest
from tests.review.support import open_page, paint_all, press, wait_ready, wait_saved, write_run

pytestmark = pytest.mark.browser


def test_names_are_never_read_as_html(context, serve, tmp_path):
    evil = "<img src=x onerror=document.title='owned'>"
    run = write_run(tmp_path / "run", [(160, 120)] * 2, labels=[(evil.replace("/", ""),), ("<b>dog</b>",)])
    paint_all(run)
    server = serve(run)
    page = open_page(context, server)
    press(page, "ArrowRight")
    assert evil in page.inner_text("#question")
    assert page.locator("#question img, .row b, #file img").count() == 0
    assert page.title() == "run · bagwise review"
    press(page, "Enter", "Enter")
    wait_saved(page, server, 2)
    assert page.title() == "run · bagwise review"
    press(page, "l")
    assert page.locator("#label-dialog b, #label-dialog img").count() == 0
    page.keyboard.type("<i>new</i>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#stage[aria-busy=false][data-item='2']")
    assert "<i>new</i>" in page.inner_text("#question")
    assert page.locator("i").count() == 0


HOSTILE = [
    "\u202egpj.exe",
    "a\u2066b\x07c\x1b[31m",
    "<script>document.title='owned'<_script>",
    '" onerror="alert(1)',
    "</title>x",
]
ALL_TEXT = "[...document.querySelectorAll('option, .row, #file, #announce')].map((e) => e.textContent + e.title)"


def test_marks_that_nobody_sees_are_shown(context, serve, tmp_path):
    """Right-to-left marks, control characters and markup in labels: on the stage, in the list, in the filters."""
    labels = [(label.replace("/", "_"),) for label in HOSTILE]
    run = write_run(tmp_path / "run", [(160, 120)] * len(labels), labels=labels)
    paint_all(run)
    page = open_page(context, serve(run))
    shown = set()
    for _ in labels:
        shown.add(page.inner_text("#question strong"))
        press(page, "ArrowRight")
    expected = {"⟨U+202E⟩gpj.exe", "a⟨U+2066⟩b⟨U+0007⟩c⟨U+001B⟩[31m", *(label for (label,) in labels[2:])}
    assert shown == expected
    texts = page.evaluate(ALL_TEXT)
    assert len(texts) > 10
    assert not any(set(text) & {"\u202e", "\u2066", "\x07", "\x1b"} for text in texts)
    assert page.locator("#app script, .row img[onerror], option script").count() == 0
    assert page.title() == "run · bagwise review"


def test_nothing_comes_from_the_network_and_the_policy_is_kept(context, serve, small_run):
    server = serve(small_run)
    page = context.new_page()
    addresses, complaints = [], []
    page.on("request", lambda request: addresses.append(request.url))
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.goto(server.url)
    wait_ready(page)
    press(page, "Enter", "?")
    assert all(address.startswith(f"http://127.0.0.1:{server.port}/") for address in addresses)
    assert complaints == []
    assert page.evaluate("document.cookie") == "", "scripts cannot read the token"


def test_a_missing_picture_is_said_so_and_can_still_be_rejected(context, serve, small_run):
    small_run.image_path(small_run.images["file"][5].as_py()).unlink()
    server = serve(small_run)
    page = open_page(context, server)
    page.wait_for_selector("#message:not([hidden])")
    assert "picture 0005.jpg does not exist" in page.inner_text("#message")
    press(page, "x")
    assert wait_saved(page, server, 1)[-1]["status"] == "rejected"


CONTRAST = """() => {
    const parse = (text) => {
        const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
        return { rgb: [r, g, b], a };
    };
    const linear = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const colour = parse(getComputedStyle(element).backgroundColor);
            if (colour.a > 0.5) return colour.rgb;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.checkVisibility({ visibilityProperty: true })) continue;
        if (element.closest(":disabled, canvas, kbd, .hidden, .skip")) continue;
        const levels = [light(parse(getComputedStyle(element).color).rgb), light(behind(element))];
        const [a, b] = levels.sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${element.tagName} ${element.className} ${element.textContent}`);
    }
    return poor;
}"""
NAMELESS = """() => [...document.querySelectorAll("button, input, select, [role=listbox], progress")]
    .filter((e) => !e.textContent.trim() && !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby"))
    .filter((e) => !e.labels?.length)
    .map((e) => e.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_enough_contrast(browser, serve, small_run, scheme):
    context = browser.new_context(color_scheme=scheme)
    page = open_page(context, serve(small_run))
    press(page, "Enter", "x", "w", "ArrowLeft")
    assert page.evaluate(CONTRAST) == []
    press(page, "r")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.activeElement.closest('dialog') !== null"), "focus is inside the dialog"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate("document.activeElement.closest('dialog') !== null"), "focus is inside the help"
    page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
