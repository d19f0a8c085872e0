"""Exports, read back by tools we did not write."""

import csv
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image
from tests.discovery.runs import FILES, LABELS, make_run

from bagwise.discovery.run.export import export_run
from bagwise.discovery.run.export.collect import ExportImage, flat_names, split
from bagwise.discovery.run.export.voc import whole_pixels
from bagwise.discovery.run.folder import RunFolder

TRAIN_TOOLS = "a tool to read exports back with; see the dev dependencies"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))[0]


@pytest.fixture(scope="module")
def objects(run):
    """What every reader must find: (original file, label) to box."""
    return {
        (FILES[row["image_id"] - 1], row["label"]): np.array([row[side] for side in ("x1", "y1", "x2", "y2")])
        for row in run.boxes.to_pylist()
        if row["kind"] == "object"
    }


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    for name in ("coco", "voc", "yolo", "labelstudio"):
        export_run(run, name, folder / name)
    return folder


def originals(folder: Path) -> dict[str, str]:
    with open(folder / "files.csv", encoding="utf-8", newline="") as file:
        return {row["file"]: row["original"] for row in csv.DictReader(file)}


def assert_same(found, objects, within):
    assert set(found) == set(objects)
    for key, box in objects.items():
        np.testing.assert_allclose(found[key], box, atol=within, err_msg=str(key))


# COCO


def test_pycocotools_reads_coco_and_scores_it(run, exported, objects):
    coco = pytest.importorskip("pycocotools.coco", reason=TRAIN_TOOLS)
    evaluation = pytest.importorskip("pycocotools.cocoeval", reason=TRAIN_TOOLS)
    truth = coco.COCO(str(exported / "coco" / "annotations.json"))
    assert sorted(truth.getImgIds()) == list(range(1, len(FILES) + 1))
    assert sorted(truth.getCatIds()) == [1, 2]
    names = {item["id"]: item["name"] for item in truth.loadCats(truth.getCatIds())}
    found = {}
    for item in truth.loadAnns(truth.getAnnIds()):
        x, y, w, h = item["bbox"]
        assert item["id"] >= 1
        assert 0 <= item["score"] <= 1
        assert item["area"] == pytest.approx(w * h, abs=2)
        found[truth.loadImgs(item["image_id"])[0]["file_name"], names[item["category_id"]]] = [x, y, x + w, y + h]
    assert_same(found, objects, 0.02)
    # The run's own COCO results, scored against the export of the same boxes, are perfect.
    results = truth.loadRes(str(run.path / "boxes.json"))
    judge = evaluation.COCOeval(truth, results, "bbox")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    assert judge.stats[0] == pytest.approx(1)


def test_supervision_reads_coco(run, exported, objects):
    sv = pytest.importorskip("supervision", reason=TRAIN_TOOLS)
    data = sv.DetectionDataset.from_coco(str(run.source_root.resolve()), str(exported / "coco" / "annotations.json"))
    found = {}
    for path, image, detections in data:
        file = Path(path).relative_to(run.source_root.resolve()).as_posix()
        assert image.shape[:2] == Image.open(path).size[::-1]
        for box, number in zip(detections.xyxy, detections.class_id):
            found[file, data.classes[number]] = box
    assert_same(found, objects, 0.02)


def test_labelformat_reads_coco(exported, objects):
    formats = pytest.importorskip("labelformat.formats", reason=TRAIN_TOOLS)
    reader = formats.COCOObjectDetectionInput(exported / "coco" / "annotations.json")
    assert_same(labelformat_boxes(reader, None), objects, 0.02)


def labelformat_boxes(reader, names):
    found = {}
    for label in reader.get_labels():
        file = label.image.filename if names is None else names[Path(label.image.filename).name]
        for item in label.objects:
            box = item.box
            found[file, item.category.name] = [box.xmin, box.ymin, box.xmax, box.ymax]
    return found


# PASCAL VOC


def test_supervision_reads_voc(exported, objects):
    sv = pytest.importorskip("supervision", reason=TRAIN_TOOLS)
    folder = exported / "voc"
    names = originals(folder)
    data = sv.DetectionDataset.from_pascal_voc(str(folder / "JPEGImages"), str(folder / "Annotations"))
    found = {}
    for path, _, detections in data:
        for box, number in zip(detections.xyxy, detections.class_id):
            found[names[Path(path).name], data.classes[number]] = box
    # supervision takes one pixel off the first corner as off the last; so the last may differ by one and a half.
    missing = {key: box for key, box in objects.items() if key not in found}
    assert {Path(file).suffix for file, _ in missing} <= {".webp", ".bmp"}, "supervision knows jpg and png only"
    assert_same(found, {key: box for key, box in objects.items() if key not in missing}, 1.51)


def test_labelformat_reads_voc(exported, objects):
    formats = pytest.importorskip("labelformat.formats", reason=TRAIN_TOOLS)
    reader = formats.PascalVOCObjectDetectionInput(exported / "voc" / "Annotations", "cat,dog")
    found = labelformat_boxes(reader, originals(exported / "voc"))
    # It takes VOC's one-based inclusive corners as they stand.
    assert_same({key: np.array(box) - [1, 1, 0, 0] for key, box in found.items()}, objects, 0.51)


def test_our_own_reader_reads_voc(exported, objects):
    from bagwise.discovery.sources.reading import read_source

    names = originals(exported / "voc")
    data = read_source(exported / "voc", split="trainval")
    assert data.problems == []
    found = {(names[Path(file).name], item.label): item.box for file, items in data.truth.items() for item in items}
    assert_same(found, objects, 0.51)


def test_whole_pixels_stay_inside_and_are_never_empty():
    boxes = np.array([[0, 0, 10, 5], [9.7, 4.7, 10, 5], [0.2, 0.2, 0.3, 0.3], [3.4, 1.6, 7.5, 2.4]])
    assert whole_pixels(boxes, 10, 5).tolist() == [[1, 1, 10, 5], [10, 5, 10, 5], [1, 1, 1, 1], [4, 3, 8, 3]]


# YOLO


@pytest.mark.parametrize("part", ["train", "val"])
def test_supervision_reads_yolo(exported, objects, part):
    sv = pytest.importorskip("supervision", reason=TRAIN_TOOLS)
    folder = exported / "yolo"
    names = originals(folder)
    data = sv.DetectionDataset.from_yolo(
        str(folder / "images" / part), str(folder / "labels" / part), str(folder / "data.yaml")
    )
    assert data.classes == ["cat", "dog"]
    found = {}
    for path, _, detections in data:
        for box, number in zip(detections.xyxy, detections.class_id):
            found[names[Path(path).name], data.classes[number]] = box
    here = {names[path.name] for path in (folder / "images" / part).iterdir()}
    readable = {file for file in here if Path(file).suffix in (".jpg", ".png")}
    expected = {key: box for key, box in objects.items() if key[0] in {file for file, _ in found} | readable}
    assert expected
    assert_same(found, expected, 0.02)


def test_labelformat_reads_yolo(exported, objects):
    formats = pytest.importorskip("labelformat.formats", reason=TRAIN_TOOLS)
    folder = exported / "yolo"
    found = {}
    for part in ("train", "val"):
        reader = formats.YOLOv8ObjectDetectionInput(folder / "data.yaml", part)
        found |= labelformat_boxes(reader, originals(folder))
    # labelformat finds labels through the images it can open by extension
    missing = {key for key in objects if key not in found}
    assert {Path(file).suffix for file, _ in missing} <= {".bmp", ".webp"}
    assert_same(found, {key: box for key, box in objects.items() if key not in missing}, 0.02)


def test_yolo_keeps_the_documented_rules(exported, objects):
    """What Ultralytics documents: labels beside images, five numbers a row, in [0, 1], classes below nc."""
    yaml = pytest.importorskip("yaml", reason=TRAIN_TOOLS)
    folder = exported / "yolo"
    data = yaml.safe_load((folder / "data.yaml").read_text(encoding="utf-8"))
    assert data["names"] == {0: "cat", 1: "dog"}
    assert data["nc"] == 2
    assert "path" not in data  # so it is taken from where data.yaml lies
    names, found = originals(folder), {}
    for part in ("train", "val"):
        images = sorted((folder / data[part]).rglob("*.*"))
        assert images
        for image in images:
            label = Path(str(image).replace("/images/", "/labels/")).with_suffix(".txt")
            width, height = Image.open(image).size
            rows = [line.split() for line in label.read_text(encoding="utf-8").splitlines()]
            assert len({tuple(row) for row in rows}) == len(rows)
            for row in rows:
                assert len(row) == 5
                number, (cx, cy, w, h) = int(row[0]), map(float, row[1:])
                assert all(0 <= value <= 1 for value in (cx, cy, w, h))
                box = [(cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height]
                found[names[image.name], data["names"][number]] = box
    assert_same(found, objects, 0.02)


# Label Studio


def test_label_studio_tasks_keep_the_documented_form(run, exported, objects):
    tasks = json.loads((exported / "labelstudio" / "tasks.json").read_text(encoding="utf-8"))
    assert len(tasks) == len(FILES)
    found = {}
    for task in tasks:
        url = urlsplit(task["data"]["image"])
        assert url.path == "/data/local-files/"
        (served,) = parse_qs(url.query)["d"]
        path = run.source_root.resolve().parent / served  # as Label Studio joins it with the document root
        with Image.open(path) as image:
            width, height = image.size
        (prediction,) = task["predictions"]
        for region in prediction["result"]:
            assert (region["original_width"], region["original_height"]) == (width, height)
            value = region["value"]
            x, y = value["x"] * width / 100, value["y"] * height / 100
            box = [x, y, x + value["width"] * width / 100, y + value["height"] * height / 100]
            found[path.relative_to(run.source_root.resolve()).as_posix(), *value["rectanglelabels"]] = box
            assert 0 <= region["score"] <= 1
    assert_same(found, objects, 0.02)


def test_label_studio_says_what_to_set(run, tmp_path):
    notes = "\n".join(export_run(run, "labelstudio", tmp_path / "out").notes)
    assert "export LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true" in notes
    assert f"export LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={run.source_root.resolve().parent}" in notes


# Tools that need their own environment: a variable names its Python.


def test_the_sdk_of_label_studio_accepts_the_tasks(exported):
    found = read_elsewhere("BAGWISE_LABEL_STUDIO_PYTHON", "label_studio.py", exported / "labelstudio")
    assert found == {"tasks": len(FILES), "regions": sum(map(len, LABELS)), "errors": []}


def test_the_loader_of_ultralytics_reads_yolo(exported, objects, tmp_path):
    folder = tmp_path / "moved"  # the loader leaves a cache beside the labels
    shutil.copytree(exported / "yolo", folder)
    rows = read_elsewhere("BAGWISE_ULTRALYTICS_PYTHON", "ultralytics_boxes.py", folder / "data.yaml")
    names = originals(folder)
    assert_same({(names[file], label): box for file, label, box in rows}, objects, 0.02)


@pytest.mark.parametrize("name", ["coco", "voc", "yolo"])
def test_datumaro_reads(run, exported, objects, name, tmp_path):
    folder = exported / name
    if name == "coco":  # datumaro wants the images beside the annotations
        shutil.copytree(run.source_root, tmp_path / "images" / "train")
        (tmp_path / "annotations").mkdir()
        (tmp_path / "annotations" / "instances_train.json").write_bytes((folder / "annotations.json").read_bytes())
        folder = tmp_path
    rows = read_elsewhere("BAGWISE_DATUMARO_PYTHON", "datumaro_boxes.py", folder, name)
    if name != "coco":
        stems = {Path(new).stem: old for new, old in originals(folder).items()}
    else:
        stems = {str(Path(file).with_suffix("")): file for file in FILES}
    found = {(stems[item], label): box for item, label, box in rows}
    shift = [1, 1, 0, 0] if name == "voc" else [0, 0, 0, 0]
    assert_same({key: np.array(box) - shift for key, box in found.items()}, objects, 1.51 if name == "voc" else 0.02)


def read_elsewhere(variable, script, *arguments):
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} does not name a Python that has the tool")
    path = Path(__file__).parents[1] / "readers" / script
    done = subprocess.run([python, path, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# What all formats share


def test_names_without_folders_stay_apart():
    names = flat_names(["a/b.jpg", "a__b.jpg", "a/b.png", "A/B.jpg", "c.jpg", "x\ny.jpg", "x y.jpg"])
    assert names == {
        "a/b.jpg": "a__b.jpg",
        "a__b.jpg": "a__b-2.jpg",
        "a/b.png": "a__b-3.png",
        "A/B.jpg": "A__B-4.jpg",
        "c.jpg": "c.jpg",
        "x\ny.jpg": "x_y.jpg",
        "x y.jpg": "x_y-2.jpg",
    }


def test_the_split_holds_every_class_and_does_not_change():
    def image(number, label):
        return ExportImage(number, f"{number}.jpg", 9, 9, (label,), (), np.empty((0, 4)), np.empty(0))

    images = [image(number, "a" if number < 50 else "b" if number < 52 else "c") for number in range(53)]
    parts = split(images)
    assert Counter(item.labels[0] for item in parts["val"]) == {"a": 10, "b": 1}
    assert {item.image_id for item in parts["val"]} == {item.image_id for item in split(images[::-1])["val"]}
    assert len(parts["train"]) + len(parts["val"]) == 53


def test_doubtful_boxes_and_the_images_left_without_are_left_out(run, tmp_path):
    rows = run.boxes.to_pylist()
    sure = [row for row in rows if row["kind"] == "object" and row["confidence"] >= 0.5]
    assert 0 < len(sure) < len(LABELS)
    done = export_run(run, "yolo", tmp_path / "yolo", min_confidence=0.5)
    whole = [i for i, labels in enumerate(LABELS, 1) if {r["label"] for r in sure if r["image_id"] == i} == set(labels)]
    assert done.images == len(whole) < len({row["image_id"] for row in sure}), "one has a box for one of its two labels"
    assert done.boxes == sum(row["image_id"] in whole for row in sure)
    images = [path for path in (tmp_path / "yolo" / "images").rglob("*") if path.is_file()]
    assert len(images) == len(whole)
    assert "training would take it for background" in done.notes[0]
    with pytest.raises(ValueError, match="no image has an object to write: lower --min-confidence"):
        export_run(run, "voc", tmp_path / "voc", min_confidence=1)
    assert not (tmp_path / "voc").exists()


def test_reviewed_boxes_take_the_place_of_the_runs_own(run, tmp_path):
    export_run(run, "coco", tmp_path / "out", boxes=run.boxes.slice(0, 1))
    assert len(json.loads((tmp_path / "out" / "annotations.json").read_text(encoding="utf-8"))["annotations"]) == 1


def test_boxes_are_clipped_to_their_image(tmp_path):
    run, _ = make_run(tmp_path)
    boxes = run.boxes.slice(0, 1).to_pydict() | {"x1": [-50.0], "y1": [-3.0], "x2": [9999.0], "y2": [9999.0]}
    run.rewrite_boxes(boxes)
    export_run(run, "coco", tmp_path / "out")
    (item,) = json.loads((tmp_path / "out" / "annotations.json").read_text(encoding="utf-8"))["annotations"]
    first = run.images.slice(0, 1).to_pylist()[0]
    assert item["bbox"] == [0, 0, first["width"], first["height"]]


@pytest.mark.parametrize("name", ["voc", "yolo"])
def test_images_held_sideways_are_turned_upright(tmp_path, name):
    run, _ = make_run(tmp_path)
    path = run.image_path(FILES[0])
    sideways = Image.open(path).transpose(Image.Transpose.ROTATE_90)  # as a camera stores a picture held sideways
    mark = Image.Exif()
    mark[0x0112] = 6  # turn it a quarter clockwise to look at it
    upright = Image.open(path).copy()
    sideways.save(path, exif=mark)
    export_run(run, name, tmp_path / "out")
    (copy,) = (tmp_path / "out").rglob("cat__photo_one.jpg")
    with Image.open(copy) as image:
        assert image.size == upright.size
        assert image.getexif().get(0x0112, 1) == 1
        assert np.abs(np.asarray(image, int) - np.asarray(upright, int)).mean() < 20
    others = {file.name for file in (tmp_path / "out").rglob("*.png")}
    assert others == {"cat__Кошка_№3.png"}


def test_a_folder_with_something_in_it_is_not_written_to(run, tmp_path):
    (tmp_path / "precious.txt").write_text("keep me")
    with pytest.raises(ValueError, match="not an empty folder"):
        export_run(run, "coco", tmp_path)
    with pytest.raises(ValueError, match="there is no format 'csv'"):
        export_run(run, "csv", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_missing_image_leaves_nothing_behind(tmp_path):
    run, _ = make_run(tmp_path)
    run.image_path(FILES[3]).unlink()
    with pytest.raises(FileNotFoundError):
        export_run(RunFolder(run.path), "voc", tmp_path / "out" / "voc")
    assert list((tmp_path / "out").iterdir()) == []


def test_heic_is_exported_as_jpeg(tmp_path):
    """Detectors and browsers cannot read what telephones write."""
    heif = pytest.importorskip("pillow_heif", reason="HEIC needs the extra heic")
    heif.from_pillow(Image.new("RGB", (60, 40), "red")).save(tmp_path / "a.heic")
    corners = {"x1": [1.0], "y1": [2.0], "x2": [30.0], "y2": [20.0]}
    scores = {key: [0.5] for key in ("score", "confidence", "objectness")}
    run = RunFolder.create(
        tmp_path / "run",
        {"classes": ["cat"], "source": {"root": str(tmp_path)}},
        {"image_id": [1], "file": ["a.heic"], "width": [60], "height": [40], "labels": [["cat"]]},
        {"image_id": [1], "label": ["cat"], "rank": [0], "kind": ["object"], **corners, **scores},
    )
    export_run(run, "voc", tmp_path / "out")
    with Image.open(tmp_path / "out" / "JPEGImages" / "a.jpg") as picture:
        assert (picture.format, picture.size) == ("JPEG", (60, 40))
