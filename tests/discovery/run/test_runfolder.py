"""The run folder keeps what it is given, and refuses what is no run."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagwise._utils.atomic import replacing
from bagwise.discovery.run.folder import RunFolder

MANIFEST = {"classes": ["cat", "größer/kleiner"], "source": {"root": "pictures", "kind": "folders"}}
IMAGES = {
    "image_id": [1, 2],
    "file": ["cat/a b.jpg", "größer/a b.jpg"],
    "width": [100, 200],
    "height": [50, 60],
    "labels": [["cat"], ["cat", "größer/kleiner"]],
}


def boxes(**changes):
    columns = {
        "image_id": [1, 1, 2],
        "label": ["cat", "cat", "größer/kleiner"],
        "rank": [0, 1, 0],
        "kind": ["object", "alternative", "object"],
        "x1": [1.0, 0.0, 10.25],
        "y1": [2.0, 0.0, 20.0],
        "x2": [31.0, 9.0, 60.5],
        "y2": [42.0, 9.0, 50.0],
        "score": [1.5, 0.5, -0.25],
        "confidence": [0.9, 0.4, 0.25],
        "objectness": [0.2, 0.1, 0.3],
    }
    return columns | changes


def test_what_is_written_is_read_back(tmp_path):
    snapshots = {name: boxes()[name] for name in ("image_id", "label", "x1", "y1", "x2", "y2")} | {"steps": [0, 100, 0]}
    RunFolder.create(tmp_path / "run", MANIFEST | {"timings": {"edges": 1.5}}, IMAGES, boxes(), snapshots)
    run = RunFolder(tmp_path / "run")
    assert run.classes == MANIFEST["classes"]
    assert run.manifest["timings"] == {"edges": 1.5}
    assert run.manifest["problems"] == []
    assert run.images.to_pydict() == IMAGES
    assert run.boxes.schema.field("rank").type == pa.int16()
    assert run.boxes["kind"].to_pylist() == boxes()["kind"]
    np.testing.assert_array_equal(run.corners()[2], np.float32([10.25, 20, 60.5, 50]))
    assert run.snapshots is not None
    assert run.snapshots["steps"].to_pylist() == [0, 100, 0]
    assert run.image_path("cat/a b.jpg") == tmp_path / "run" / "pictures" / "cat" / "a b.jpg"
    assert not list((tmp_path / "run").glob(".writing*"))


def test_coco_results_hold_the_objects_only(tmp_path):
    RunFolder.create(tmp_path, MANIFEST, IMAGES, boxes())
    assert json.loads((tmp_path / "boxes.json").read_text()) == [
        {"image_id": 1, "category_id": 1, "bbox": [1.0, 2.0, 30.0, 40.0], "score": 0.9},
        {"image_id": 2, "category_id": 2, "bbox": [10.25, 20.0, 50.25, 30.0], "score": 0.25},
    ]


def test_a_run_without_boxes_is_a_run(tmp_path):
    empty = {name: [] for name in boxes()}
    run = RunFolder.create(tmp_path, MANIFEST, IMAGES, empty)
    assert run.corners().shape == (0, 4)
    assert json.loads((tmp_path / "boxes.json").read_text()) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"image_id": [1, 1, 3]}, "names image 3, but there are 2 images"),
        ({"label": ["cat", "cat", "dog"]}, "unknown label 'dog'"),
        ({"kind": ["object", "guess", "object"]}, "unknown kind 'guess'"),
        ({"x2": [1.0, 9.0, 60.0]}, "row 0 .* is no box"),
        ({"y1": [2.0, np.nan, 3.0]}, "row 1 .* is no box"),
        ({"confidence": [0.9, 1.4, 0.1]}, "confidence outside 0 to 1"),
        ({"score": [0.9, None, 0.1]}, "1 empty value"),
    ],
)
def test_boxes_that_are_none_are_refused_and_nothing_is_written(tmp_path, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        RunFolder.create(tmp_path / "run", MANIFEST, IMAGES, boxes(**changes))
    assert not (tmp_path / "run").exists()


def test_missing_column_is_named(tmp_path):
    columns = boxes()
    del columns["objectness"]
    with pytest.raises(ValueError, match=r"boxes lacks .* objectness"):
        RunFolder.create(tmp_path, MANIFEST, IMAGES, columns)


def test_what_is_no_run_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a run folder"):
        RunFolder(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not readable as JSON"):
        RunFolder(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="format 99"):
        RunFolder(tmp_path)


def test_images_counted_wrongly_or_twice_are_refused(tmp_path):
    with pytest.raises(ValueError, match="count from 1"):
        RunFolder.create(tmp_path, MANIFEST, IMAGES | {"image_id": [0, 1]}, boxes())
    with pytest.raises(ValueError, match="twice"):
        RunFolder.create(tmp_path, MANIFEST, IMAGES | {"file": ["a", "a"]}, boxes())


@pytest.mark.parametrize("file", ["../secret.jpg", "/etc/passwd", "a/../../b", ""])
def test_image_names_stay_inside_the_source(tmp_path, file):
    run = RunFolder.create(tmp_path, MANIFEST, IMAGES, boxes())
    with pytest.raises(ValueError, match="leaves the source folder"):
        run.image_path(file)


def test_boxes_can_be_replaced(tmp_path):
    run = RunFolder.create(tmp_path, MANIFEST, IMAGES, boxes())
    run.rewrite_boxes(run.boxes.slice(0, 1))
    again = RunFolder(tmp_path)
    assert len(again.boxes) == len(run.boxes) == 1
    assert len(json.loads((tmp_path / "boxes.json").read_text())) == 1


def test_a_failed_write_leaves_the_former_file(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("before")

    def write_half():
        with replacing(target) as aside:
            aside.write_text("ha")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_runs_of_before_there_were_masks_are_read(tmp_path):
    run = RunFolder.create(tmp_path / "run", MANIFEST, IMAGES, boxes(mask=["22", "", ""]))
    assert RunFolder(run.path).boxes["mask"].to_pylist() == ["22", "", ""]
    pq.write_table(run.boxes.drop_columns("mask"), run.path / "boxes.parquet")
    assert RunFolder(run.path).boxes["mask"].to_pylist() == ["", "", ""]


def test_entries_of_the_manifest_are_replaced_on_disk_and_a_bad_one_is_not(tmp_path):
    run = RunFolder.create(tmp_path / "run", MANIFEST, IMAGES, boxes())
    run.rewrite_manifest({"classes": [*MANIFEST["classes"], "dog"]})
    assert run.classes == RunFolder(run.path).classes == [*MANIFEST["classes"], "dog"]
    assert RunFolder(run.path).manifest["created"] == run.manifest["created"]
    with pytest.raises(ValueError, match="names a class twice"):
        run.rewrite_manifest({"classes": ["cat", "cat"]})
    assert RunFolder(run.path).classes == run.classes
