"""The embedded photographs: complete, credited, small, and boxed within their frames."""

import json
from collections import Counter

import pytest

from bagwise.datasets import photos
from bagwise.datasets.photos import DemoPhotos, load_demo_photos

CLASS_SIZES = {
    "dam": 5,
    "fish": 28,
    "hammer": 9,
    "measuringTape": 6,
    "plier": 4,
    "scissors": 4,
    "screwDriver": 3,
    "solar": 8,
    "windmill": 14,
}


@pytest.fixture(scope="module")
def demo() -> DemoPhotos:
    return load_demo_photos()


@pytest.fixture(scope="module")
def truth(demo: DemoPhotos) -> dict:
    return json.loads(demo.truth.read_text(encoding="utf-8"))


def image_files(demo: DemoPhotos) -> list[str]:
    return sorted(path.relative_to(demo.root).as_posix() for path in demo.root.glob("*/*"))


def test_every_class_is_complete(demo):
    assert Counter(name.split("/")[0] for name in image_files(demo)) == CLASS_SIZES


def test_every_photograph_opens_as_a_colour_image(demo):
    image_module = pytest.importorskip("PIL.Image")
    for name in image_files(demo):
        with image_module.open(demo.root / name) as image:
            image.load()
            assert image.mode == "RGB", name
            assert min(image.size) >= 100, name


def test_credits_name_each_photograph_once_with_a_free_licence(demo):
    assert sorted(row["file"] for row in demo.credits) == image_files(demo)
    for row in demo.credits:
        assert row["author"].strip(), row
        assert row["source"].startswith("https://"), row
        assert row["licence"] in {"Public Domain", "CC0-1.0"}, row


def test_photographs_stay_small(demo):
    total = sum(path.stat().st_size for path in demo.root.rglob("*") if path.is_file())
    assert total < 2_500_000


def test_truth_lists_every_photograph_and_all_nine_classes(demo, truth):
    assert sorted(image["file_name"] for image in truth["images"]) == image_files(demo)
    assert sorted(category["name"] for category in truth["categories"]) == sorted(CLASS_SIZES)


def test_truth_says_what_a_whole_object_is_in_every_class(truth):
    assert sorted(truth["info"]["rules"]) == sorted(CLASS_SIZES)
    assert all(rule.endswith(".") for rule in truth["info"]["rules"].values())


def test_truth_sizes_are_those_of_the_oriented_images(demo, truth):
    image_module = pytest.importorskip("PIL.Image")
    ops_module = pytest.importorskip("PIL.ImageOps")
    for entry in truth["images"]:
        with image_module.open(demo.root / entry["file_name"]) as image:
            assert ops_module.exif_transpose(image).size == (entry["width"], entry["height"]), entry


def test_truth_boxes_lie_inside_their_images(truth):
    images = {image["id"]: image for image in truth["images"]}
    names = {category["id"]: category["name"] for category in truth["categories"]}
    assert len(images) == len(truth["images"])
    assert len({box["id"] for box in truth["annotations"]}) == len(truth["annotations"])
    for box in truth["annotations"]:
        image = images[box["image_id"]]
        x, y, width, height = box["bbox"]
        assert width > 0, box
        assert height > 0, box
        assert x >= 0, box
        assert y >= 0, box
        assert x + width <= image["width"], box
        assert y + height <= image["height"], box
        assert box["area"] == width * height, box
        assert box["iscrowd"] == 0, box
        assert box["difficult"] in (0, 1), box
        # The folder is the label: a windmill image holds windmill boxes only.
        assert names[box["category_id"]] == image["file_name"].split("/")[0], box


def test_every_photograph_has_an_object_that_counts(truth):
    clear = {box["image_id"] for box in truth["annotations"] if not box["difficult"]}
    assert clear == {image["id"] for image in truth["images"]}


def test_pycocotools_reads_the_truth(demo):
    coco = pytest.importorskip("pycocotools.coco").COCO(str(demo.truth))
    labels = {category["id"]: category["name"] for category in coco.loadCats(coco.getCatIds())}
    shown = Counter(labels[key] for key in labels for _ in coco.getImgIds(catIds=[key]))
    assert shown == CLASS_SIZES


def test_no_box_is_drawn_twice(truth):
    drawn = Counter((box["image_id"], *box["bbox"]) for box in truth["annotations"])
    assert max(drawn.values()) == 1


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(photos, "files", lambda package: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"truth\.json is missing"):
        load_demo_photos()
