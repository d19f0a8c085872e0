"""The report: one file that needs nothing else, says what is known, and is safe to open."""

import base64
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.discovery.runs import FILES, make_run, paint_images

from bagwise._utils.rle import encode_mask
from bagwise.discovery.evaluation.kept import keep_evaluation
from bagwise.discovery.evaluation.runs import evaluate_run
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.report import write_report
from bagwise.report.charts import Line, line_chart
from bagwise.report.pictures import BUDGET, Answer, per_row, rows_of_gallery
from bagwise.review.log import DecisionLog

VOID = {"meta", "img"}  # the rest of the page closes what it opens


class Page(HTMLParser):
    """Every element, and whether they nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text, self.texts = [], [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def said(self):
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run, truth = make_run(folder)
    images = ImageSet(folder / "images", list(FILES), [()] * len(FILES), truth)
    keep_evaluation(run, evaluate_run(run, images), truth)
    return run


@pytest.fixture(scope="module")
def page(evaluated):
    path = write_report(evaluated)
    assert path == evaluated.path / "report.html"
    return Page(path.read_text(encoding="utf-8"))


def test_nothing_is_fetched_and_nothing_runs(evaluated, page):
    text = (evaluated.path / "report.html").read_text(encoding="utf-8")
    addresses = [value for _, attrs in page.elements for key, value in attrs.items() if key in ("src", "href")]
    assert all(value.startswith(("data:image/jpeg;base64,", "#")) for value in addresses)
    assert not re.search(r"https?://|url\(|@import", text)
    assert page.all("script") == page.all("link") == page.all("iframe") == []
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_links_lead_somewhere(page):
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    assert {link["href"][1:] for link in page.all("a")} <= ids


def test_pictures_are_small_upright_and_told(page):
    pictures = page.all("img")
    assert pictures
    for attrs in pictures:
        image = Image.open(io.BytesIO(base64.b64decode(attrs["src"].split(",")[1])))
        assert max(image.size) <= 320
        assert image.width / image.height == pytest.approx(int(attrs["width"]) / int(attrs["height"]), rel=0.02)
        assert any(file in attrs["alt"] for file in FILES)
    for attrs in page.all("svg"):
        assert attrs.get("aria-hidden") == "true" or attrs.get("aria-label") or "swatch" in attrs["class"]


def test_figures_of_the_evaluation_are_shown(evaluated, page):
    evaluation = json.loads((evaluated.path / "evaluation.json").read_text(encoding="utf-8"))
    for name in ("per-class", "any-class"):
        assert f"{100 * evaluation['corloc'][name]['mean']['value']:.1f}%" in page.said
    assert "Calibration of the confidence" in page.said
    assert "Images with a right box" in page.said
    assert "after 2000 steps" in page.said
    assert len([item for item in page.all("rect") if item.get("class") == "true"]) > 10
    assert "wrong" in page.said or "right" in page.said


def test_the_computing_time_is_that_of_all_parts(page):
    assert page.texts[page.texts.index("computing time") - 1] == "6.0 s"


def test_settings_timings_hashes_and_problems_are_shown(page):
    for text in ("0.003", "EfficientNet-Lite0", "ab" * 32, "1.25", "cat/broken.jpg", "the file is empty"):
        assert text in page.said


def test_boxes_stand_where_the_run_has_them(evaluated, page):
    drawn = {
        tuple(float(item[key]) for key in ("x", "y", "width", "height"))
        for item in page.all("rect")
        if item.get("class") == "found"
    }
    first = [row for row in evaluated.boxes.to_pylist() if row["rank"] == 0]
    for row in first:
        x1, y1, x2, y2 = (row[side] for side in ("x1", "y1", "x2", "y2"))
        assert any(np.allclose(box, (x1, y1, x2 - x1, y2 - y1), atol=0.06) for box in drawn)


def test_names_and_labels_are_never_markup(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    files = ["a/<script>alert(1)<!--.png", 'b/" onload="alert(1)".png']
    sizes = paint_images(tmp_path / "images", files)
    problems = [{"file": "<script>", "reason": "</td><script>alert(2)</script>"}]
    run, _ = make_run(
        tmp_path,
        files=files,
        labels=[(evil,), ("'\"><script>",)],
        sizes=sizes,
        root=str(tmp_path / "images"),
        problems=problems,
        settings={"<b>": "<i>"},
    )
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert page.all("script") == page.all("i") == []
    assert all("onerror" not in attrs and "onload" not in attrs for _, attrs in page.elements)
    assert evil in page.said


def test_a_run_that_was_not_evaluated_says_how(tmp_path):
    run, _ = make_run(tmp_path, steps=())
    path = write_report(run, tmp_path / "elsewhere" / "page.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert "bagwise evaluate RUN --truth FOLDER" in page.said
    assert "right" not in {word for text in page.texts for word in text.split()}
    assert "learning" not in {attrs.get("id") for attrs in page.all("section")}
    assert not [item for item in page.all("rect") if item.get("class") == "true"]


def test_a_moved_image_leaves_a_gap_and_a_run_without_boxes_a_page(tmp_path):
    run, _ = make_run(tmp_path)
    shutil.rmtree(run.source_root / "dog")
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert "image not found" in page.said
    empty = RunFolder.create(run.path, run.manifest, run.images, run.boxes.slice(0, 0))
    assert "Nothing was found for this class" in Page(write_report(empty).read_text(encoding="utf-8")).said


def test_the_page_stays_small_whatever_the_run(tmp_path):
    """400 classes and 1200 answers share a handful of pictures; the gallery keeps to its budget."""
    sizes = paint_images(tmp_path / "images", ["one.png"])
    root = tmp_path / "images"
    files = [f"{number}.png" for number in range(1200)]
    for file in files:
        (root / file).symlink_to(root / "one.png")
    labels = [(f"class {number % 400}",) for number in range(1200)]
    run, _ = make_run(
        tmp_path, files=files, labels=labels, sizes=sizes * 1200, root=str(root), alternatives=0, steps=(0, 9)
    )
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert len(page.all("img")) <= BUDGET + 8
    assert "The 80 classes with the most images, of 400" in page.said
    test_links_lead_somewhere(page)


def answer(confidence, right=None):
    return Answer(f"{confidence}.jpg", 10, 10, "a", np.array([0, 0, 5, 5]), confidence, right)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 7, 40])
def test_no_answer_is_shown_twice(count):
    answers = [answer(value) for value in np.linspace(1, 0, count)]
    rows = rows_of_gallery(answers, 3)
    shown = [item.file for chosen in rows.values() for item in chosen]
    assert len(shown) == len(set(shown)) == min(count, 9)
    if count == 40:
        assert [round(item.confidence, 2) for item in rows["Least confident"]] == [0, 0.03, 0.05]
        assert all(abs(item.confidence - 0.5) < 0.05 for item in rows["In between"])


def test_the_budget_is_shared_by_the_classes():
    assert per_row(1) == per_row(10) == 6
    assert per_row(20) == 4
    assert per_row(81) == 0
    assert all(per_row(n) * 3 * n <= BUDGET for n in range(1, 500))


def test_a_logarithmic_axis_puts_a_factor_at_one_distance():
    svg = line_chart(
        [Line("a", [(1, 0), (10, 0.5), (100, 1)])],
        title="t",
        x_label="x",
        y_label="y",
        ticks=[1, 100],
        logarithmic=True,
    )
    path = re.search(r'class="curve" d="M([^"]+)"', svg)[1]
    (x1, y1), (x2, y2), (x3, y3) = ([float(value) for value in point.split()] for point in path.split("L"))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)


def test_style_serves_phones_dark_rooms_and_paper():
    from bagwise import report

    style = (Path(report.__file__).parent / "style.css").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    assert "@media (max-width" in style


def test_headings_speak_of_confidence_because_the_last_row_may_be_right(page):
    rows = rows_of_gallery([answer(0.9, right=True)] * 9, 3)
    assert list(rows) == ["Most confident", "In between", "Least confident"]
    assert "Most confident" in page.texts
    assert not {"Best", "Worst"} & set(page.texts)


def test_what_a_person_decided_is_counted(tmp_path):
    run, _ = make_run(tmp_path)
    assert "Checked by a person" not in Page(write_report(run).read_text(encoding="utf-8")).said
    log = DecisionLog(run.decisions_path)
    decided = {"client": "me", "rejected": (), "version": 0}
    log.decide((FILES[0], "cat"), 1, "accept", boxes=[(1.0, 2.0, 30.0, 40.0)], key="1", **decided)
    log.decide((FILES[1], "cat"), 2, "reject", boxes=None, key="2", **decided)
    log.decide((FILES[2], "cat"), 3, "absent", boxes=None, key="3", to="lynx", **decided)
    log.add((FILES[3], "cat"), 4, known=False, client="me", key="4")
    log.decide(("gone.jpg", "cat"), 9, "absent", boxes=None, key="5", **decided)
    log.close()
    text = write_report(run).read_text(encoding="utf-8")
    said = "3 of 12 labels checked: 1 accepted, 1 with the object elsewhere, 1 wrong; 2 added."
    assert said in Page(text).said
    section = text[text.index('id="review"') :]
    section = section[: section.index("</section>")]
    rows = re.findall(r"<tr>(.*?)</tr>", section)[1:]
    assert [re.findall(r"<td>(.*?)</td>", row) for row in rows] == [
        ["cat", "1", "1", "1", "3", "1"],
        ["dog", "0", "0", "0", "5", "0"],
        ["lynx", "0", "0", "0", "1", "1"],
    ]


def test_images_of_a_class_are_those_that_a_person_left_it(tmp_path):
    run, _ = make_run(tmp_path)

    def images_of_cat():
        text = write_report(run).read_text(encoding="utf-8")
        section = text[text.index('id="classes"') :]
        return int(re.findall(r"cat(?:</a>)?</td><td>(\d+)</td>", section)[0])

    before = images_of_cat()
    log = DecisionLog(run.decisions_path)
    log.decide((FILES[0], "cat"), 1, "absent", boxes=None, rejected=(), version=0, client="me", key="1")
    log.close()
    assert images_of_cat() == before - 1


def test_masks_are_drawn_over_the_images(tmp_path):
    run, _ = make_run(tmp_path, steps=())
    rows = run.boxes.to_pydict()
    sizes = {row["image_id"]: (row["height"], row["width"]) for row in run.images.to_pylist()}
    shape = np.zeros(sizes[1], dtype=bool)
    shape[10:40, 20:90] = True
    rows["mask"] = [
        encode_mask(shape) if number == 1 and not rank else "" for number, rank in zip(rows["image_id"], rows["rank"])
    ]
    run.rewrite_boxes(rows)
    page = Page(write_report(RunFolder(run.path)).read_text(encoding="utf-8"))
    (drawn,) = [attrs for attrs in page.all("img") if attrs.get("class") == "mask"]
    assert drawn["src"].startswith("data:image/png;base64,")
    data = base64.b64decode(drawn["src"].split(",")[1])
    assert len(data) < 3000
    alpha = np.array(Image.open(io.BytesIO(data)).convert("RGBA"))[..., 3] > 0
    np.testing.assert_array_equal(alpha, shape)
    classes = [attrs.get("class", "") for attrs in page.all("svg")]
    assert [name for name in classes if "swatch" in name] == ["swatch found", "swatch mask"]


def test_no_answer_is_certain(tmp_path):
    run, _ = make_run(tmp_path, steps=())
    rows = run.boxes.to_pydict() | {"confidence": [0.99996] * len(run.boxes)}
    run.rewrite_boxes(rows)
    page = Page(write_report(run).read_text(encoding="utf-8"))
    head, rest = page.said.split("Confidence of the answers")
    assert "100%" not in head, "neither in the cards nor in the table"
    assert ">99%" in head
    assert "100%" not in rest.split("Galleries")[1]
