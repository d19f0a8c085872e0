"""The protocols count the images and groups that the papers describe."""

import pytest

from bagwise.discovery.evaluation.protocols import class_views, protocol, write_labels
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics.truth import TruthBox

BOX = (0.0, 0.0, 9.0, 9.0)


def car(pose=None, difficult=False, truncated=False, label="car"):
    return TruthBox(label, BOX, difficult, truncated, pose)


TRUTH = {
    "1.jpg": [car("Left")],
    "2.jpg": [car("Left", truncated=True), car("Right")],
    "3.jpg": [car("Left", difficult=True)],
    "4.jpg": [car("Left"), car("Left"), car("Unspecified", label="cow")],
    "5.jpg": [car("Rear", label="cow")],
}


def test_classes_need_a_clear_object():
    chosen = protocol("classes", TRUTH)
    assert chosen.groups == {"car": ("car", ("1.jpg", "2.jpg", "4.jpg")), "cow": ("cow", ("4.jpg", "5.jpg"))}
    assert (chosen.pairs, chosen.images) == (5, 4)
    assert str(chosen) == "classes: 2 groups, 4 images, 5 image-group pairs"


def test_views_part_a_class(tmp_path):
    chosen = class_views("pascal06-all", TRUTH, more_than=0)
    assert chosen.groups == {
        "car Left": ("car", ("1.jpg", "4.jpg")),
        "car Right": ("car", ("2.jpg",)),
        "cow Rear": ("cow", ("5.jpg",)),
    }
    assert list(class_views("pascal06-all", TRUTH, more_than=1).groups) == ["car Left"]
    write_labels(chosen, tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text().splitlines()[:3] == ["file,label", "1.jpg,car Left", "2.jpg,car Right"]
    with pytest.raises(ValueError, match="over 5 images; here the most is 2"):
        protocol("pascal07-all", TRUTH)


def test_more_than_five_images_make_a_group():
    truth = {f"{i}.jpg": [car("Left")] + [car("Rear")] * (i < 5) for i in range(6)}
    assert list(protocol("pascal06-all", truth).groups) == ["car Left"]


def test_labels_without_an_object_drop_out():
    chosen = protocol("labels", TRUTH, labels=[("1.jpg", ["car", "cow"]), ("4.jpg", ["cow"]), ("9.jpg", ["car"])])
    assert chosen.groups == {"car": ("car", ("1.jpg",)), "cow": ("cow", ("4.jpg",))}


def test_lists_name_groups(tmp_path):
    (tmp_path / "car_left.txt").write_text("1\nimages/4.jpg 1\n\n")
    (tmp_path / "cow.txt").write_text("5.jpg\n")
    chosen = protocol("voc07-6x2", TRUTH, lists=tmp_path)
    assert chosen.groups == {"car Left": ("car", ("1.jpg", "4.jpg")), "cow": ("cow", ("5.jpg",))}
    (tmp_path / "cow.txt").write_text("5\n77\n")
    with pytest.raises(ValueError, match=r"cow.txt, line 2: the image '77' is not in the truth"):
        protocol("voc07-6x2", TRUTH, lists=tmp_path)
    (tmp_path / "boat_left.txt").write_text("5\n")
    with pytest.raises(ValueError, match="'boat_left', of which the truth has no object"):
        protocol("voc07-6x2", TRUTH, lists=tmp_path)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("voc12", "there is no protocol 'voc12'; choose one of"), ("voc07-6x2", "needs the folder of its image lists")],
)
def test_unknown_or_incomplete_names_are_refused(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        protocol(name, TRUTH)


def test_views_need_viewpoints(tmp_path):
    with pytest.raises(ValueError, match="these annotations name none"):
        protocol("pascal07-all", {"1.jpg": [car()]})
    with pytest.raises(ValueError, match="holds no image lists"):
        protocol("voc07-6x2", TRUTH, lists=tmp_path)


def test_voc07_train_has_the_counts_of_its_own_lists(data):
    """ImageSets/Main names, per class, the images with an object that is not difficult: 1 in the second column."""
    root = data / "voc07"
    truth = read_source(root, split="train").truth
    assert truth is not None
    chosen = protocol("classes", truth)
    assert len(chosen.groups) == 20
    assert chosen.images <= 2500
    for label, (_, files) in chosen.groups.items():
        clear = sum(any(item.label == label and not item.difficult for item in objects) for objects in truth.values())
        assert len(files) == clear


def test_voc06_views_are_read(data):
    truth = read_source(data / "voc06-sample").truth
    assert truth is not None
    chosen = class_views("pascal06-all", truth, more_than=0)
    assert chosen.groups["cow Right"][1][0] == "PNGImages/000037.png"
    assert all(name.split()[1] in ("Left", "Right", "Frontal", "Rear") for name in chosen.groups)
