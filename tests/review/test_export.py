"""What a person checked, and nothing else, in every format."""

import csv
import json

import pytest
from tests.discovery.runs import FILES, make_run

from bagwise.review.decisions import ItemState, ReviewError
from bagwise.review.export import export_reviewed

BOX = (1.0, 2.0, 30.0, 40.0)
ACCEPTED, REJECTED = ItemState("accepted", (BOX,), (), 1), ItemState("rejected", (), (), 1)
CAT, NO_CAT, TWO_LABELS = FILES[0], FILES[1], FILES[6]


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)[0]


def images_in(folder, format):
    """The original names of the images that the export lists."""
    if format == "coco":
        document = json.loads((folder / "annotations.json").read_text(encoding="utf-8"))
        listed = {image["id"]: image["file_name"] for image in document["images"]}
        assert {item["image_id"] for item in document["annotations"]} <= set(listed)
        return sorted(listed.values())
    if format == "labelstudio":
        return sorted(task["data"]["file"] for task in json.loads((folder / "tasks.json").read_text(encoding="utf-8")))
    with (folder / "files.csv").open(encoding="utf-8", newline="") as file:
        names = {row["file"]: row["original"] for row in csv.DictReader(file)}
    pictures = folder / ("JPEGImages" if format == "voc" else "images")
    assert {path.name for path in pictures.rglob("*") if path.is_file()} == set(names)
    labels = folder / ("Annotations" if format == "voc" else "labels")
    assert len([path for path in labels.rglob("*") if path.is_file()]) == len(names)
    return sorted(names.values())


@pytest.mark.parametrize("format", ["coco", "voc", "yolo", "labelstudio"])
def test_unchecked_images_are_not_listed(run, tmp_path, format):
    decisions = {(CAT, "cat"): ACCEPTED, (NO_CAT, "cat"): REJECTED, (TWO_LABELS, "cat"): ACCEPTED}
    done = export_reviewed(run, decisions, format, tmp_path / "one", checked_only=True)
    # Without a box, an image is a counterexample to what its label says, so the training formats leave it out.
    without_box = [] if format in ("voc", "yolo") else [NO_CAT]
    assert images_in(tmp_path / "one", format) == sorted([CAT, *without_box])
    assert (done.images, done.boxes) == (1 + len(without_box), 1)
    assert done.notes[0] == "1 image left out, of which only some labels are checked"
    decisions[TWO_LABELS, "dog"] = ACCEPTED
    done = export_reviewed(run, decisions, format, tmp_path / "two", checked_only=True)
    assert images_in(tmp_path / "two", format) == sorted([CAT, TWO_LABELS, *without_box])
    assert done.boxes == 3
    everything = export_reviewed(run, decisions, format, tmp_path / "all")
    assert len(images_in(tmp_path / "all", format)) == everything.images == len(FILES) - 1 + len(without_box)


def test_images_without_a_box_are_spoken_of(run, tmp_path):
    done = export_reviewed(run, {(NO_CAT, "cat"): REJECTED}, "coco", tmp_path / "coco")
    assert "1 image with a label but no box for it" in done.notes[-1]
    done = export_reviewed(run, {(NO_CAT, "cat"): REJECTED}, "voc", tmp_path / "voc")
    assert "1 image with a label but no box for it left out" in done.notes[0]


def test_nothing_checked_is_nothing_to_export(run, tmp_path):
    with pytest.raises(ReviewError, match=r"no image has been checked with all its labels \(1 in part\)"):
        export_reviewed(run, {(TWO_LABELS, "cat"): ACCEPTED}, "coco", tmp_path / "out", checked_only=True)
    edited = {(CAT, "cat"): ItemState("open", (BOX,), (), 1)}
    with pytest.raises(ReviewError, match=r"no image has been checked with all its labels$"):
        export_reviewed(run, edited, "coco", tmp_path / "out", checked_only=True)
    with pytest.raises(ValueError, match="no image has an object to write"):
        export_reviewed(run, {(NO_CAT, "cat"): REJECTED}, "yolo", tmp_path / "out", checked_only=True)
    rejected = {(row["file"], label): REJECTED for row in run.images.to_pylist() for label in row["labels"]}
    with pytest.raises(ReviewError, match="every box was rejected"):
        export_reviewed(run, rejected, "coco", tmp_path / "out")
    assert not (tmp_path / "out").exists()
