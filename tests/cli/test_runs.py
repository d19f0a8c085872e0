"""check, evaluate, report, export, protocol and tables from the command line."""

import json

import pytest
from tests.discovery.runs import FILES, make_run
from typer.testing import CliRunner

from bagwise.cli import app


@pytest.fixture
def call():
    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def run(tmp_path):
    """A run and, in truth.json, the COCO file of its true boxes."""
    run, truth = make_run(tmp_path)
    categories = {"cat": 1, "dog": 2}
    boxes = [(i, item) for i, file in enumerate(FILES, start=1) for item in truth[file]]
    document = {
        "images": [{"id": i, "file_name": file, "width": 300, "height": 300} for i, file in enumerate(FILES, start=1)],
        "categories": [{"id": number, "name": name} for name, number in categories.items()],
        "annotations": [
            {
                "id": number,
                "image_id": i,
                "category_id": categories[item.label],
                "bbox": [item.box[0], item.box[1], item.box[2] - item.box[0], item.box[3] - item.box[1]],
            }
            for number, (i, item) in enumerate(boxes, start=1)
        ],
    }
    (tmp_path / "images" / "truth.json").write_text(json.dumps(document))
    return run


def test_from_run_to_report_and_tables(call, run, tmp_path):
    truth = tmp_path / "images" / "truth.json"
    said = call("evaluate", run.path, "--truth", truth, "--protocol", "classes").stdout
    assert "CorLoc, per-class" in said
    assert "kept in" in said
    assert (run.path / "evaluation.json").exists()
    assert "report written to" in call("report", run.path, "-o", tmp_path / "page.html").stdout
    assert "verdict-" in (tmp_path / "page.html").read_text(encoding="utf-8")
    said = call("tables", "discovery", run.path, "-o", tmp_path / "tables.md").stdout
    assert said.startswith("**Table 4.")
    assert (tmp_path / "tables.md").read_text().strip() == said.strip()


def test_evaluate_prints_what_it_keeps_as_json(call, run, tmp_path):
    said = call("evaluate", run.path, "--truth", tmp_path / "images" / "truth.json", "--json").stdout
    figures = json.loads(said)
    assert figures == json.loads((run.path / "evaluation.json").read_text(encoding="utf-8"))
    assert figures["corloc"]["per-class"]["mean"]["of"] == 10


def test_truth_is_found_through_the_run(call, run, tmp_path):
    """The file of true boxes need not lie beside the images."""
    moved = tmp_path / "elsewhere" / "truth.json"
    moved.parent.mkdir()
    (tmp_path / "images" / "truth.json").rename(moved)
    assert "CorLoc, per-class" in call("evaluate", run.path, "--truth", moved).stdout


def test_export_replaces_a_folder_when_told_to(call, run, tmp_path):
    call("export", run.path, "-o", tmp_path / "out")
    with pytest.raises(ValueError, match="or replace it with --force"):
        call("export", run.path, "-f", "yolo", "-o", tmp_path / "out")
    call("export", run.path, "-f", "yolo", "-o", tmp_path / "out", "--force")
    assert (tmp_path / "out" / "data.yaml").exists()


def test_check_prints_every_detail_as_json(call, tmp_path):
    root = tmp_path / "photos"
    for label in ("cat", "dog"):
        (root / label).mkdir(parents=True)
        for number in range(7):
            (root / label / f"{number} öde.jpg").write_bytes(b"")
    result = call("check", root, "--json")
    assert result.exit_code == 1, "something is wrong"
    document = json.loads(result.stdout)
    assert (document["kind"], document["images"], document["classes"]) == ("folders", 14, ["cat", "dog"])
    (unreadable,) = [finding for finding in document["findings"] if "cannot be read" in finding["sentence"]]
    assert unreadable["severity"] == "wrong"
    assert len(unreadable["details"]) == 14, "the text shows five, a script wants all"
    assert unreadable["details"][0].startswith("cat/0 öde.jpg: ")


@pytest.mark.parametrize("format", ["coco", "voc", "yolo", "labelstudio", "fiftyone"])
def test_export(call, run, tmp_path, format):
    said = call("export", run.path, "--format", format, "-o", tmp_path / format).stdout
    assert said.startswith("10 boxes in 8 images written to")
    assert any((tmp_path / format).iterdir())


def test_what_a_reviewer_rejected_is_not_exported(call, run, tmp_path):
    from bagwise.review.log import DecisionLog

    log = DecisionLog(run.decisions_path)
    for number, action in ((1, "reject"), (2, "accept")):
        log.decide(
            (FILES[number - 1], "cat"),
            number,
            action,
            boxes=[(1.0, 2.0, 30.0, 40.0)] if action == "accept" else None,
            rejected=[],
            version=0,
            client="me",
            key=action,
        )
    log.close()
    call("export", run.path, "-o", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "annotations.json").read_text(encoding="utf-8"))
    assert not [item for item in document["annotations"] if item["image_id"] == 1]
    (mine,) = [item for item in document["annotations"] if item["image_id"] == 2]
    assert mine["bbox"] == [1, 2, 29, 38]
    assert mine["score"] == 1
    said = call("export", run.path, "--checked-only", "-o", tmp_path / "checked").stdout
    assert said.startswith("1 box in 2 images written to")


def test_protocol_writes_labels_that_discover_reads(call, run, tmp_path):
    from bagwise.discovery.sources.reading import read_source

    out = tmp_path / "labels.csv"
    said = call("protocol", "classes", "--truth", tmp_path / "images" / "truth.json", "-o", out).stdout
    assert said.startswith("classes: 2 groups, 8 images, 10 image-group pairs")
    images = read_source(tmp_path / "images", labels=out)
    assert images.files == sorted(FILES)
    assert images.labels[images.files.index("both/photo one.jpg")] == ("cat", "dog")


def test_mistakes_are_told(call, run, tmp_path):
    with pytest.raises(ValueError, match="not a run folder"):
        call("report", tmp_path)
    with pytest.raises(ValueError, match="there is no format"):
        call("export", run.path, "--format", "csv", "-o", tmp_path / "out")
    assert call("export", run.path, "-o", tmp_path / "o", "--min-confidence", "7").exit_code == 2
