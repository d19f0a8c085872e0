"""Every form of input, and every way in which it can be wrong."""

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("PIL")
from PIL import Image

from bagwise.discovery.sources.reading import Problem, TruthBox, read_source, read_unlabelled

DATA = Path(os.environ.get("BAGWISE_DATA", Path(__file__).parents[4] / "shared" / "data"))


def needs(folder):
    return pytest.mark.skipif(not (DATA / folder).is_dir(), reason=f"BAGWISE_DATA has no {folder}")


def photograph(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (32, 24), "green").save(path)


def test_folder_per_class(tmp_path):
    photograph(tmp_path / "cat" / "1.png")
    photograph(tmp_path / "dog" / "1.png")  # the same name in another folder is another image
    photograph(tmp_path / "dog" / "more" / "2.jpg")
    photograph(tmp_path / "猫 2" / "кот.png")
    photograph(tmp_path / ".thumbnails" / "1.png")
    photograph(tmp_path / "stray.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    images = read_source(tmp_path)
    assert images.files == ["cat/1.png", "dog/1.png", "dog/more/2.jpg", "猫 2/кот.png"]
    assert images.labels == [("cat",), ("dog",), ("dog",), ("猫 2",)]
    assert images.classes == ["cat", "dog", "猫 2"]
    assert images.truth is None
    assert [problem.file for problem in images.problems] == ["stray.png", "empty"]


def test_table_of_labels(tmp_path):
    for name in ("a/1.png", "b/1.png", "b/2.png", "3.png"):
        photograph(tmp_path / name)
    table = tmp_path / "labels.csv"
    table.write_text(
        "image,labels\n"
        "a/1.png,cat\n"
        "a/1.png,dog\n"  # a second row of one image adds to the first
        "b\\1.png,cat;bird\n"
        "2.png,dog,bird\n"  # only one file has this name, so its folder can be left out
        "1.png,cat\n"  # two files have this name
        "gone.png,cat\n"
        "../secret.png,cat\n"
        "3.png,\n"
        "\n",
        encoding="utf-8-sig",
    )
    images = read_source(tmp_path, labels=table)
    assert dict(zip(images.files, images.labels)) == {
        "a/1.png": ("cat", "dog"),
        "b/1.png": ("bird", "cat"),
        "b/2.png": ("bird", "dog"),
    }
    reasons = {problem.file: problem.reason for problem in images.problems}
    assert "names 2 files" in reasons["1.png"]
    assert "no such file" in reasons["gone.png"]
    assert "outside" in reasons["../secret.png"]
    assert "no label" in reasons["3.png"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_table_without_heading(tmp_path, delimiter):
    photograph(tmp_path / "1.png")
    (tmp_path / "labels.csv").write_text(f'1.png{delimiter}"big cat"\n')
    assert read_source(tmp_path, labels=tmp_path / "labels.csv").labels == [("big cat",)]


def test_table_that_is_not_text(tmp_path):
    (tmp_path / "labels.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ValueError, match="UTF-8"):
        read_source(tmp_path, labels=tmp_path / "labels.csv")


def voc_folder(root, annotations):
    for name, xml in annotations.items():
        photograph(root / "JPEGImages" / f"{name}.jpg")
        (root / "Annotations").mkdir(exist_ok=True)
        (root / "Annotations" / f"{name}.xml").write_text(xml)
    return root


def voc_object(name, corners, extra=""):
    tags = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), corners))
    return f"<object><name>{name}</name>{extra}<bndbox>{tags}</bndbox></object>"


def test_voc_xml(tmp_path):
    cat = voc_object("cat", (1, 1, 32, 24), "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult>")
    dog = voc_object("dog", (3, 4, 10, 10), "<pose>Unspecified</pose><difficult>1</difficult>")
    voc_folder(tmp_path, {"1": f"<annotation>{cat}{dog}</annotation>", "2": f"<annotation>{cat}</annotation>"})
    (tmp_path / "ImageSets" / "Main").mkdir(parents=True)
    (tmp_path / "ImageSets" / "Main" / "train.txt").write_text("1\n9\n")
    images = read_source(tmp_path, split="train")
    assert images.kind == "voc"
    assert images.files == ["JPEGImages/1.jpg"]
    assert images.labels == [("cat",)]
    assert images.unsure == [("dog",)]  # only a difficult dog: neither shown nor absent
    assert images.truth is not None
    assert images.truth["JPEGImages/1.jpg"] == [
        TruthBox("cat", (0, 0, 32, 24), False, True, "Left"),
        TruthBox("dog", (2, 3, 10, 10), True, None, None),
    ]
    assert [problem.file for problem in images.problems] == ["9"]
    assert len(read_source(tmp_path)) == 2
    with pytest.raises(ValueError, match="no split 'val'; its ImageSets holds: train"):
        read_source(tmp_path, split="val")


def test_voc_bad_annotations_are_named_and_the_rest_goes_on(tmp_path):
    good = voc_object("cat", (1, 1, 32, 24))
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    voc_folder(
        tmp_path,
        {
            "bomb": f"{bomb}<annotation>{voc_object('&b;', (1, 1, 32, 24))}</annotation>",
            "cut": f"<annotation>{good}",
            "empty-box": f"<annotation>{good}{voc_object('cat', (9, 9, 4, 4))}</annotation>",
            "nameless": "<annotation><object><bndbox/></object></annotation>",
            "words": f"<annotation>{voc_object('cat', ('a', 1, 32, 24))}</annotation>",
        },
    )
    images = read_source(tmp_path)
    assert images.files == ["JPEGImages/empty-box.jpg"]
    reasons = {Path(problem.file).stem: problem.reason for problem in images.problems}
    assert set(reasons) == {"bomb", "cut", "empty-box", "nameless", "words"}
    assert "document type" in reasons["bomb"]
    assert "encloses nothing" in reasons["empty-box"]


@needs("voc06-sample")
def test_voc_2006_text():
    images = read_source(DATA / "voc06-sample", split="sample")
    assert len(images) == 14
    assert not images.problems
    assert images.truth is not None
    assert images.truth["PNGImages/000037.png"] == [
        TruthBox("cow", (75, 65, 566, 430), False, False, "Right"),
        TruthBox("cow", (344, 66, 498, 139), True, True, None),
    ]
    assert set(images.classes) <= {
        "bicycle", "bus", "car", "cat", "cow", "dog", "horse", "motorbike", "person", "sheep"
    }  # fmt: skip


@needs("voc07-pose-sample")
def test_voc_2007_sample_has_pose_and_truncated():
    images = read_source(DATA / "voc07-pose-sample")
    assert images.truth is not None
    boxes = [box for boxes in images.truth.values() for box in boxes]
    assert {box.truncated for box in boxes} == {True, False}
    assert "Left" in {box.pose for box in boxes}


@needs("voc07")
def test_voc_2007_train():
    images = read_source(DATA / "voc07", split="train")
    assert len(images) == 2500
    assert len(images.classes) == 20
    assert images.problems == [Problem("009623", "there is no image of this name in JPEGImages")]
    # The published lists of each class: 1 shown, 0 only difficult, -1 absent.
    for label in images.classes:
        lines = (DATA / "voc07" / "ImageSets" / "Main" / f"{label}_train.txt").read_text().splitlines()
        listed = {f"JPEGImages/{name}.jpg": int(flag) for name, flag in map(str.split, lines)}
        for file, sure, unsure in zip(images.files, images.labels, images.unsure):
            assert listed[file] == (1 if label in sure else 0 if label in unsure else -1)


def coco_document(**changes):
    document = {
        "images": [{"id": 1, "file_name": "1.png"}, {"id": 2, "file_name": "gone.png"}],
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 7, "bbox": [2, 3, 10, 5]},
            {"id": 2, "image_id": 1, "category_id": 9, "bbox": [0, 0, 5, 5], "iscrowd": 1},
            {"id": 3, "image_id": 1, "category_id": 7, "bbox": [0, 0, 0, 5]},
            {"id": 4, "image_id": 5, "category_id": 7, "bbox": [0, 0, 5, 5]},
        ],
    }
    return json.dumps(document | changes)


def test_coco(tmp_path):
    photograph(tmp_path / "images" / "1.png")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_val.json").write_text(coco_document())
    for images in (
        read_source(tmp_path),
        read_source(tmp_path, split="val"),
        read_source(tmp_path / "images", labels=tmp_path / "annotations" / "instances_val.json"),
    ):
        name = images.files[0]
        assert name.endswith("1.png")
        assert images.labels == [("cat",)]
        assert images.unsure == [("dog",)]
        assert images.truth == {name: [TruthBox("cat", (2, 3, 12, 8)), TruthBox("dog", (0, 0, 5, 5), True)]}
        assert [problem.file for problem in images.problems] == ["gone.png", name, "annotation 4"]


@pytest.mark.parametrize("text", ["{", "[]", coco_document(images=None), coco_document(categories=[{"id": 1}])])
def test_coco_that_is_none(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json is not"):
        read_source(tmp_path / "a.json")


def test_nothing_left_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no usable labelled image: put the images of each class into a folder"):
        read_source(tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        read_source(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no split"):
        read_source(tmp_path, split="train")


def test_unlabelled(tmp_path):
    photograph(tmp_path / "b" / "2.png")
    photograph(tmp_path / "1.png")
    assert read_unlabelled(tmp_path).files == ["1.png", "b/2.png"]
    assert read_unlabelled(tmp_path / "1.png").files == ["1.png"]
    (tmp_path / "c").mkdir()
    with pytest.raises(ValueError, match="holds no image"):
        read_unlabelled(tmp_path / "c")
