"""What there is to check, and the boxes that come out of it."""

import numpy as np
import pytest

from bagwise.discovery.run.folder import BOXES, RunFolder, corners
from bagwise.review.decisions import ItemState
from bagwise.review.items import Items
from bagwise.review.reviewed import reviewed_boxes


@pytest.fixture
def run(tmp_path):
    """Two images; the second has two classes, one of them without a box. Rows in no order."""
    rows = [
        (2, "cat", 1, "alternative", 1, 1, 9, 9, 0.1, 0.2, 0.3),
        (1, "dog", 0, "object", 0, 0, 50, 40, 2.0, 0.9, 0.8),
        (2, "cat", 0, "object", 5, 5, 20, 20, 1.0, 0.6, 0.4),
        (1, "dog", 1, "object", 10, 10, 30, 30, 0.5, 0.7, 0.2),
        (1, "dog", 2, "alternative", 2, 2, 60, 60, 0.4, 0.3, 0.1),
    ]
    boxes = {name: [row[i] for row in rows] for i, name in enumerate(BOXES.names[:-1])}
    images = {
        "image_id": [1, 2],
        "file": ["a/1.jpg", "b/1.jpg"],
        "width": [100, 80],
        "height": [90, 70],
        "labels": [["dog"], ["cat", "dog"]],
    }
    return RunFolder.create(tmp_path / "run", {"classes": ["cat", "dog"], "source": {"root": "."}}, images, boxes)


def test_every_label_of_every_image_is_an_item_even_without_a_box(run):
    items = Items(run)
    assert items.pairs == [("a/1.jpg", "dog"), ("b/1.jpg", "cat"), ("b/1.jpg", "dog")]
    assert [items.confidence(i) for i in range(3)] == pytest.approx([0.9, 0.6, 0.0])
    assert items.size(2) == (80, 70)
    dog = items.suggestion(0)
    assert dog.objects == ((0, 0, 50, 40), (10, 10, 30, 30))
    assert dog.candidates == (*dog.objects, (2, 2, 60, 60))
    assert items.suggestion(1).objects == ((5, 5, 20, 20),)
    assert items.suggestion(2).objects == ()
    assert items.suggestion(2).candidates == items.suggestion(1).candidates, "what the other label's model would try"


def test_new_boxes_from_a_refit_replace_the_old(run):
    table = run.boxes.to_pydict()
    table["rank"] = [0 if rank == 1 else 1 if rank == 0 else rank for rank in table["rank"]]
    run.rewrite_boxes(table)
    items = Items(run)
    assert items.suggestion(0).candidates[0] == (10, 10, 30, 30)
    assert items.suggestion(1).candidates[0] == (1, 1, 9, 9)
    assert items.confidence(1) == pytest.approx(0.2)


def test_reviewed_boxes_put_the_persons_word_in_place_of_the_models(run):
    decisions = {
        ("a/1.jpg", "dog"): ItemState("accepted", ((10, 10, 30, 30), (70, 70, 80, 80)), (), 1),
        ("b/1.jpg", "cat"): ItemState("rejected", (), (), 1),
        ("gone.jpg", "cat"): ItemState("accepted", ((1, 1, 2, 2),), (), 1),
    }
    boxes = reviewed_boxes(run, decisions)
    assert boxes["image_id"].to_pylist() == [1, 1]
    assert corners(boxes).tolist() == [[10, 10, 30, 30], [70, 70, 80, 80]]
    assert boxes["rank"].to_pylist() == [0, 1]
    assert boxes["confidence"].to_pylist() == [1, 1]
    np.testing.assert_allclose(boxes["score"].to_numpy(), [0.5, 0])


def test_what_is_undecided_keeps_the_models_boxes(run):
    decisions = {
        ("a/1.jpg", "dog"): ItemState("open", ((1, 1, 5, 5),), (), 1),
        ("b/1.jpg", "cat"): ItemState("accepted", ((6, 6, 7, 7),), (), 1),
    }
    boxes = reviewed_boxes(run, decisions)
    assert sorted(zip(boxes["image_id"].to_pylist(), boxes["rank"].to_pylist())) == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert reviewed_boxes(run, {}).equals(run.boxes)
