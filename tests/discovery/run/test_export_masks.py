"""Masks in exports, read back by tools we did not write."""

import json

import cv2
import numpy as np
import pytest
from tests.discovery.runs import FILES, make_run

from bagwise._utils.rle import encode_mask
from bagwise.discovery.run.export import export_run
from bagwise.discovery.run.export.polygons import area_of, polygons_of

TOOLS = "a tool to read exports back with; see the dev dependencies"


def ellipse(box, width, height):
    """The pixels of a box's inscribed ellipse."""
    x1, y1, x2, y2 = box
    y, x = np.mgrid[:height, :width] + 0.5
    return ((x - (x1 + x2) / 2) / ((x2 - x1) / 2)) ** 2 + ((y - (y1 + y2) / 2) / ((y2 - y1) / 2)) ** 2 <= 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose every object is an ellipse."""
    run, _ = make_run(tmp_path_factory.mktemp("masks"))
    sizes = list(zip(run.images["width"].to_pylist(), run.images["height"].to_pylist()))
    rows = run.boxes.to_pylist()
    for row in rows:
        box = [row[side] for side in ("x1", "y1", "x2", "y2")]
        row["mask"] = encode_mask(ellipse(box, *sizes[row["image_id"] - 1])) if row["kind"] == "object" else ""
    run.rewrite_boxes({name: [row[name] for row in rows] for name in rows[0]})
    return run


@pytest.fixture(scope="module")
def masks(run):
    """(file, label) to mask."""
    sizes = list(zip(run.images["width"].to_pylist(), run.images["height"].to_pylist()))
    return {
        (FILES[row["image_id"] - 1], row["label"]): ellipse(
            [row[side] for side in ("x1", "y1", "x2", "y2")], *sizes[row["image_id"] - 1]
        )
        for row in run.boxes.to_pylist()
        if row["kind"] == "object"
    }


def assert_alike(found, masks, least=0.93):
    assert found
    for key, mask in found.items():
        both, either = (mask & masks[key]).sum(), (mask | masks[key]).sum()
        assert both / either > least, (key, both, either)


def test_outlines_enclose_what_the_mask_does():
    mask = np.zeros((40, 60), bool)
    mask[5:25, 10:40] = True
    mask[30:34, 50:55] = True
    large, small = polygons_of(encode_mask(mask), 60, 40)
    assert area_of(large) == 600
    assert area_of(small) == 20
    drawn = cv2.fillPoly(np.zeros((400, 600), np.uint8), [np.rint(10 * large).astype(np.int32)], 1)
    assert abs(int(drawn.sum()) - 60_000) < 3_000
    assert polygons_of("", 60, 40) == polygons_of(encode_mask(np.zeros((40, 60), bool)), 60, 40) == []


def test_pycocotools_reads_masks(run, masks, tmp_path):
    coco = pytest.importorskip("pycocotools.coco", reason=TOOLS)
    export_run(run, "coco", tmp_path / "coco")
    data = coco.COCO(str(tmp_path / "coco" / "annotations.json"))
    found = {}
    for item in data.loadAnns(data.getAnnIds()):
        file, label = data.loadImgs(item["image_id"])[0]["file_name"], data.loadCats(item["category_id"])[0]["name"]
        found[file, label] = data.annToMask(item).astype(bool)
        assert item["area"] == pytest.approx(masks[file, label].sum(), rel=0.06)
    assert set(found) == set(masks)
    assert_alike(found, masks)


def test_supervision_reads_masks_of_coco(run, masks, tmp_path):
    sv = pytest.importorskip("supervision", reason=TOOLS)
    export_run(run, "coco", tmp_path / "coco")
    data = sv.DetectionDataset.from_coco(
        str(run.source_root), str(tmp_path / "coco" / "annotations.json"), force_masks=True
    )
    found = {}
    for path, _, detections in data:
        file = str(path).split("images/", 1)[1]
        for mask, number in zip(detections.mask, detections.class_id):
            found[file, data.classes[number]] = mask
    assert_alike(found, masks)


def test_labelformat_reads_masks_of_coco(run, masks, tmp_path):
    formats = pytest.importorskip("labelformat.formats", reason=TOOLS)
    export_run(run, "coco", tmp_path / "coco")
    reader = formats.COCOInstanceSegmentationInput(tmp_path / "coco" / "annotations.json")
    found = {}
    for label in reader.get_labels():
        for item in label.objects:
            drawn = np.zeros((label.image.height, label.image.width), np.uint8)
            for outline in item.segmentation.polygons:
                cv2.fillPoly(drawn, [np.rint(np.array(outline) - 0.5).astype(np.int32)], 1)
            found[label.image.filename, item.category.name] = drawn.astype(bool)
    assert set(found) == set(masks)
    assert_alike(found, masks, 0.9)


def test_yolo_seg_keeps_the_documented_rules(run, masks, tmp_path):
    """What Ultralytics documents: a class, then three or more points in shares of the image; supervision reads them."""
    done = export_run(run, "yolo-seg", tmp_path / "yolo")
    assert any("yolo segment train" in note for note in done.notes)
    lines = [
        line.split() for path in (tmp_path / "yolo" / "labels").rglob("*.txt") for line in path.read_text().splitlines()
    ]
    assert len(lines) == len(masks)
    for number, *points in lines:
        assert number in ("0", "1")
        assert len(points) >= 6
        assert len(points) % 2 == 0
        assert all(0 <= float(value) <= 1 for value in points)
    sv = pytest.importorskip("supervision", reason=TOOLS)
    folder = tmp_path / "yolo"
    data = sv.DetectionDataset.from_yolo(
        str(folder / "images" / "train"), str(folder / "labels" / "train"), str(folder / "data.yaml"), force_masks=True
    )
    names = dict(line.split(",", 1) for line in (folder / "files.csv").read_text(encoding="utf-8").splitlines())
    found = {}
    for path, _, detections in data:
        for mask, number in zip(detections.mask, detections.class_id):
            found[names[str(path).rsplit("/", 1)[1]], data.classes[number]] = mask
    assert_alike({key: mask for key, mask in found.items() if key in masks}, masks)


def test_an_object_without_a_mask_is_its_box(tmp_path):
    run, _ = make_run(tmp_path)
    export_run(run, "yolo-seg", tmp_path / "out")
    lines = [line for path in (tmp_path / "out" / "labels").rglob("*.txt") for line in path.read_text().splitlines()]
    assert {len(line.split()) for line in lines} == {9}


def test_label_studio_polygons(run, masks, tmp_path):
    export_run(run, "labelstudio", tmp_path / "out")
    assert "<PolygonLabels" in (tmp_path / "out" / "config.xml").read_text(encoding="utf-8")
    found = {}
    for task in json.loads((tmp_path / "out" / "tasks.json").read_text(encoding="utf-8")):
        for region in task["predictions"][0]["result"]:
            if region["type"] != "polygonlabels":
                continue
            size = np.array([region["original_width"], region["original_height"]])
            points = np.array(region["value"]["points"]) * size / 100
            drawn = cv2.fillPoly(np.zeros(size[::-1], np.uint8), [np.rint(points - 0.5).astype(np.int32)], 1)
            found[task["data"]["file"], region["value"]["polygonlabels"][0]] = drawn.astype(bool)
    assert set(found) == set(masks)
    assert_alike(found, masks, 0.9)


@pytest.mark.parametrize("format", ["coco", "voc", "yolo", "yolo-seg"])
def test_nothing_found_is_not_nothing_there(tmp_path, format):
    """Of images that nobody labelled, those in which nothing was found are no background unless one says so."""
    run, _ = make_run(tmp_path, labels=(*[("cat",)] * 7, ()), labels_found=True)
    done = export_run(run, format, tmp_path / "a")
    assert done.images == 7
    assert any("nothing was found" in note for note in done.notes)
    assert export_run(run, format, tmp_path / "b", background=True).images == 8
    people, _ = make_run(tmp_path / "people", labels=(*[("cat",)] * 7, ()))
    assert export_run(people, format, tmp_path / "c").images == 8


@pytest.mark.parametrize("format", ["labelstudio", "fiftyone"])
def test_whoever_looks_for_himself_gets_every_image(tmp_path, format):
    run, _ = make_run(tmp_path, labels=(*[("cat",)] * 7, ()), labels_found=True)
    assert export_run(run, format, tmp_path / "a").images == 8
