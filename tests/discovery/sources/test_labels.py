"""Labels as people have them: tables of every kind, image folders, exports of other tools, images of nothing."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("PIL")
from PIL import Image

from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.localize import files_with
from bagwise.discovery.learning.models import examples
from bagwise.discovery.sources.reading import read_source, read_unlabelled

FILES = ("a.png", "b.png", "c.png", "more/d.png")


@pytest.fixture
def root(tmp_path):
    """A folder of images without classes."""
    folder = tmp_path / "images"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 24), "green").save(folder / name)
    return folder


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def labelled(images):
    return dict(zip(images.files, images.labels))


SHOWN = {"a.png": ("fish",), "b.png": ("fish", "windmill"), "c.png": (), "more/d.png": ("windmill",)}
TABLES = {
    "one-hot": "image,fish,windmill\na.png,1,0\nb.png,1,1\nc.png,0,0\nmore/d.png,0,1\n",
    "one-hot, words": "image;fish;windmill\na.png;yes;no\nb.png;YES;Yes\nc.png;no;no\nd.png;no;yes\n",
    "one-hot, floats and an id": "id,path,fish,windmill\n"
    "7,a.png,1.0,0.0\n8,b.png,1.0,1.0\n9,c.png,0.0,0.0\n11,d.png,0.0,1.0\n",
    "one or minus one": "image,fish,windmill\na.png,1,-1\nb.png,1,1\nc.png,-1,-1\nd.png,-1,1\n",
    "a list in a cell": 'file,labels\na.png,fish\nb.png,"fish, windmill"\nc.png,none\nd.png,windmill\n',
    "lists as pandas writes them": "file,labels\na.png,['fish']\n"
    "b.png,\"['fish', 'windmill']\"\nc.png,[]\nd.png,['windmill']\n",
    "semicolons and bars": "file,labels\na.png,fish\nb.png,fish;windmill\nc.png,Negative\nd.png,windmill|windmill\n",
    "an id first": "number,file,label\n1,a.png,fish\n2,b.png,fish\n2,b.png,windmill\n3,c.png,none\n4,d.png,windmill\n",
    "an id first, no heading": "1,a.png,fish\n2,b.png,fish;windmill\n3,c.png,none\n4,d.png,windmill\n",
    "columns beside the labels": "file,width,label 1,label 2,photographer\n"
    "a.png,640,fish,,Ann\nb.png,640,fish,windmill,Bo\nc.png,480,none,,Bo\nd.png,1,windmill,,Cy\n",
    "names without extension": "id,species\na,fish\nb,fish;windmill\nc,background\nmore/d,windmill\n",
    "an index without a name": ",file,fish,windmill\n0,a.png,1,0\n1,b.png,1,1\n2,c.png,0,0\n3,d.png,0,1\n",
    "more semicolons than commas": "a.png,fish\nb.png,fish;windmill;fish\nc.png,none\nd.png,windmill\n",
    "more semicolons than commas at once": "b.png,fish;windmill;fish\na.png,fish\nc.png,none\nd.png,windmill\n",
    "tabs": "file\tlabel\na.png\tfish\nb.png\tfish,windmill\nc.png\tno_label\nd.png\twindmill\n",
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(root, kind):
    images = read_source(root, labels=write(root.parent, "labels.csv", TABLES[kind]))
    assert labelled(images) == SHOWN
    assert images.classes == ["fish", "windmill"]
    assert images.negatives == ["c.png"]
    assert images.problems == []
    assert images.told() == "4 images, 2 classes, 1 image of none of them"


LINES = {
    "label or labels": [
        {"file": "a.png", "label": "fish"},
        {"file": "b.png", "labels": ["fish", "windmill"]},
        {"file": "c.png", "labels": []},
        {"file": "d.png", "label": "windmill", "labels": None},
    ],
    "one-hot": [
        {"image": "a.png", "fish": True, "windmill": False},
        {"image": "b.png", "fish": 1, "windmill": 1},
        {"image": "c.png", "fish": 0, "windmill": 0},
        {"image": "d.png", "fish": False, "windmill": True},
    ],
}


@pytest.mark.parametrize("kind", LINES)
def test_json_lines(root, kind):
    text = "\n".join(map(json.dumps, LINES[kind])) + "\n\n"
    images = read_source(root, labels=write(root.parent, "labels.jsonl", text))
    assert labelled(images) == SHOWN
    assert images.kind == "jsonl"


def test_an_empty_cell_of_a_class_says_nothing(root):
    table = write(root.parent, "labels.csv", "file,fish,windmill\na.png,1,0\nb.png,,1\nc.png,0,\nd.png,0,1\n")
    images = read_source(root, labels=table)
    assert labelled(images) == {"a.png": ("fish",), "b.png": ("windmill",), "c.png": (), "more/d.png": ("windmill",)}
    assert images.unsure == [(), ("fish",), ("windmill",), ()]
    assert images.negatives == []


BAD_TABLES = {
    "file,fish,windmill\na.png,1,0\nb.png,1,1\nc.png,0,maybe\n": "row 4 of .*: the column 'windmill' says 'maybe'",
    "file,fish\na.png,1\nb.png,0\nc.png,-1\n": "row 4 of labels.csv: the column 'fish' says '-1'",
    "file,width,height\na.png,640,480\nb.png,1024,768\n": "no column of labels .*file, width, height.*name one 'label'",
    "a.png\nb.png\n": "labels.csv has no column of labels .it has no heading",
    "": "is empty",
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_bad_tables_name_the_row(root, text):
    with pytest.raises(ValueError, match=BAD_TABLES[text]):
        read_source(root, labels=write(root.parent, "labels.csv", text))


@pytest.mark.parametrize(
    ("line", "reason"),
    [("{", "row 2 of labels.jsonl is not JSON"), ("[1]", "row 2 of labels.jsonl is not an object"), (None, "is empty")],
)
def test_bad_json_lines_name_the_row(root, line, reason):
    text = "" if line is None else f'{{"file": "a.png", "label": "fish"}}\n{line}\n'
    with pytest.raises(ValueError, match=reason):
        read_source(root, labels=write(root.parent, "labels.jsonl", text))


def test_rows_that_cannot_be_used_are_named(root):
    table = write(root.parent, "labels.csv", "file,label\na.png,fish\ngone.png,fish\nb.png,\n\nc.png,none;fish\n")
    images = read_source(root, labels=table)
    assert labelled(images) == {"a.png": ("fish",), "c.png": ("fish",)}
    reasons = {problem.file: problem.reason for problem in images.problems}
    assert reasons["gone.png"].endswith("(row 3 of labels.csv)")
    assert reasons["b.png"].startswith("row 4 of labels.csv gives it no label; if it shows none of the classes")
    assert reasons["c.png"] == "is labelled 'none' beside fish: taken as fish"


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
def test_hugging_face_image_folder(root, name):
    rows = [
        {"file_name": file, "label": ";".join(shown) or "none", "text": "a picture"} for file, shown in SHOWN.items()
    ]
    text = (
        pd.DataFrame(rows).to_csv(index=False) if name.endswith("csv") else "\n".join(json.dumps(row) for row in rows)
    )
    write(root, name, text)
    assert labelled(read_source(root)) == SHOWN
    assert labelled(read_source(root.parent, split="images")) == SHOWN
    assert labelled(read_source(root.parent)) == SHOWN, "the only part need not be named"
    (root.parent / "test").mkdir()
    write(root.parent / "test", name, text)
    with pytest.raises(ValueError, match=r"choose one with --split \(images, test\)"):
        read_source(root.parent)


def test_another_metadata_file_does_not_hide_class_folders(root):
    write(root, "metadata.csv", "camera,year\nA,1999\n")
    assert labelled(read_source(root)) == {"more/d.png": ("more",)}


def test_class_folders_in_parts(root):
    assert labelled(read_source(root.parent, split="images")) == {"more/d.png": ("more",)}


def test_parts_are_no_classes(root):
    """A folder of train and test, each with its class folders, as image folders of Hugging Face have them."""
    for part in ("train", "test"):
        (root.parent / "parts" / part / "fish").mkdir(parents=True)
        shutil.copy(root / "a.png", root.parent / "parts" / part / "fish" / f"{part}.png")
    with pytest.raises(ValueError, match="has the parts test, train with folders of their own"):
        read_source(root.parent / "parts")
    assert labelled(read_source(root.parent / "parts", split="test")) == {"fish/test.png": ("fish",)}
    shutil.rmtree(root.parent / "parts" / "test")
    only = read_source(root.parent / "parts")
    assert (labelled(only), only.root.name) == ({"fish/train.png": ("fish",)}, "train")


def test_an_index_of_two_rows_is_no_class(root):
    one = write(root.parent, "a.csv", "id,file,fish\n0,a.png,1\n1,b.png,0\n")
    assert read_source(root, labels=one).classes == ["fish"]
    two = write(root.parent, "b.csv", "file,windmill,fish\na.png,0,1\nb.png,1,0\n")
    assert read_source(root, labels=two).classes == ["fish", "windmill"]


def test_a_spreadsheet_is_named_as_such(root):
    with pytest.raises(ValueError, match=r"labels\.xlsx is a spreadsheet: save it as CSV"):
        read_source(root, labels=write(root.parent, "labels.xlsx", "PK"))


@pytest.mark.parametrize("form", ["numbers", "names", "objects"])
def test_fiftyone(root, form):
    root.rename(root.parent / "data")
    classes = ["fish", "windmill"]

    def target(shown):
        each = [classes.index(label) if form != "names" else label for label in shown]
        if form == "objects":
            each = [{"label": label, "confidence": 0.5} for label in each]
        return each[0] if len(each) == 1 else each

    labels = {name.removesuffix(".png"): target(shown) for name, shown in SHOWN.items()}
    document = {"classes": classes if form != "names" else None, "labels": labels}
    write(root.parent, "labels.json", json.dumps(document))
    images = read_source(root.parent)
    assert labelled(images) == SHOWN
    assert images.kind == "fiftyone"
    assert labelled(read_source(root.parent / "data", labels=root.parent / "labels.json")) == SHOWN


def test_fiftyone_entries_that_cannot_be_used(root):
    file = write(root.parent, "labels.json", json.dumps({"classes": ["fish"], "labels": {"a": 0, "b": None}}))
    images = read_source(root, labels=file)
    assert labelled(images) == {"a.png": ("fish",)}
    assert images.problems[0].file == "b.png"
    write(root.parent, "labels.json", json.dumps({"classes": ["fish"], "labels": {"a": 0, "b": 3}}))
    with pytest.raises(ValueError, match=r"the entry 'b' of labels\.json is 3, which is none of the 1 classes"):
        read_source(root, labels=file)


def test_other_exports_of_fiftyone(root):
    """Class folders, of which one holds what has no label; and its own form, which may hold anything."""
    for name, folder in (("a.png", "fish"), ("b.png", "_unlabeled")):
        (root / folder).mkdir()
        (root / name).rename(root / folder / name)
    images = read_source(root)
    assert images.classes == ["fish", "more"]
    assert "_unlabeled/b.png" in {problem.file for problem in images.problems}
    write(root, "samples.json", "{}")
    write(root, "metadata.json", "{}")
    with pytest.raises(ValueError, match=r"is a FiftyOneDataset.*from_fiftyone"):
        read_source(root)


def coco(root, annotations):
    document = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(FILES)],
        "categories": [{"id": 1, "name": "fish"}, {"id": 2, "name": "windmill"}],
        "annotations": [{"image_id": image, "category_id": category, **more} for image, category, more in annotations],
    }
    return write(root.parent, "coco.json", json.dumps(document))


def test_coco_without_boxes(root):
    file = coco(root, [(0, 1, {}), (1, 1, {"bbox": None}), (1, 2, {"bbox": []}), (3, 2, {})])
    images = read_source(root, labels=file)
    assert labelled(images) == SHOWN
    assert images.truth is None, "there is nothing to compare boxes with"
    assert images.problems == []


def test_coco_with_some_boxes(root):
    file = coco(root, [(0, 1, {"bbox": [1, 2, 3, 4]}), (1, 1, {}), (1, 2, {"bbox": [0, 0, 0, 0]}), (3, 2, {})])
    images = read_source(root, labels=file)
    assert labelled(images) == SHOWN | {"b.png": ("fish",)}
    assert images.truth is not None
    assert [len(boxes) for boxes in images.truth.values()] == [1, 0, 0, 0]
    assert [problem.file for problem in images.problems] == ["b.png"], "its box encloses nothing"


@pytest.mark.parametrize(("folder", "negative"), [("Background", None), ("clutter", ["clutter"])])
def test_negative_folder(root, folder, negative):
    for name, of in (("a.png", "fish"), ("b.png", "windmill"), ("c.png", folder)):
        (root / of).mkdir()
        (root / name).rename(root / of / name)
    images = read_source(root, negative=negative)
    assert images.classes == ["fish", "more", "windmill"]
    assert images.negatives == [f"{folder}/c.png"]
    with FeatureStore(root.parent / "store", {}) as everything:
        for file in images.files:
            everything.write(file, (9, 9), np.ones((1, 4)), np.ones(1), np.ones((1, 2)))
    for label in images.classes:
        _, absent = examples(images, everything, label, seed=0)
        assert f"{folder}/c.png" in absent, "a negative example of every class"
        assert f"{folder}/c.png" not in files_with(images, everything, label), "never answered"
    assert folder in read_source(root, negative=[]).classes, "unless all labels are classes"


def test_negative_folder_beside_a_table(root):
    """A one-hot table of what is shown, and a folder of images that show nothing of it."""
    (root / "None of these").mkdir()
    (root / "c.png").rename(root / "None of these" / "c.png")
    text = "image,fish,windmill\na.png,1,0\nb.png,1,1\n"
    images = read_source(root, labels=write(root.parent, "labels.csv", text))
    assert labelled(images) == {"a.png": ("fish",), "b.png": ("fish", "windmill"), "None of these/c.png": ()}
    assert images.negatives == ["None of these/c.png"]
    images = read_source(root, labels=write(root.parent, "labels.csv", text), negative=["more"])
    assert images.negatives == ["more/d.png"]
    named = write(root.parent, "labels.csv", f"{text}None of these/c.png,0,1\n")
    assert read_source(root, labels=named).negatives == [], "what the table says stands"


def test_negative_that_nobody_carries(root):
    with pytest.raises(ValueError, match="no image is labelled 'clutter'; the labels are: more"):
        read_source(root, negative=["clutter"])


def test_labels_from_python(root):
    several = {"a.png": "fish", "b.png": ["fish", "windmill"], "c.png": [], "more/d.png": ("windmill",)}
    assert labelled(read_source(root, several)) == SHOWN
    assert labelled(read_source([root / name for name in FILES], list(several.values()))) == SHOWN
    frame = pd.DataFrame({"file": FILES, "fish": [1, 1, 0, 0], "windmill": [False, True, False, True]})
    assert labelled(read_source(root, frame)) == SHOWN
    lists = pd.DataFrame({"file": FILES, "labels": [["fish"], ["fish", "windmill"], [], ["windmill"]]})
    assert labelled(read_source(root, lists)) == SHOWN
    assert read_unlabelled([root / "b.png", root / "more" / "d.png"]).files == ["b.png", "more/d.png"]


def test_mistakes_from_python(root):
    with pytest.raises(ValueError, match="2 images and 1 labels"):
        read_source([root / "a.png", root / "b.png"], ["fish"])
    with pytest.raises(ValueError, match="a list of labels needs a list of images"):
        read_source(root, ["fish"])
    with pytest.raises(ValueError, match="need labels"):
        read_source([root / "a.png"])
    with pytest.raises(ValueError, match="the list of images is empty"):
        read_source([], [])
