"""Labels that are wrong, and labels that a person adds: in the log, in the refit, in exports."""

import json
import zlib

import numpy as np
import pytest
from tests.review.learning import share_right, write_learnable_run
from tests.review.support import paint_all, write_run

from bagwise.discovery.run.folder import RunFolder
from bagwise.review.compressed import end_to_end
from bagwise.review.decisions import Conflict, ItemState, ReviewError, read_decisions
from bagwise.review.export import checked_files, export_reviewed
from bagwise.review.listing import Listing
from bagwise.review.log import DecisionLog
from bagwise.review.refit import Learner, refit
from bagwise.review.reviewed import added_classes, reviewed_labels, reviewed_run
from bagwise.review.session import ReviewSession

BOX = (10.0, 20.0, 60.0, 70.0)
FISH, SHARK = ("a.jpg", "fish"), ("a.jpg", "shark")
WHO = {"client": "me"}
OBJECT = (20.0, 20.0, 120.0, 120.0)


def say_absent(log, key, *, to=None, boxes=None, version=0, known=False):
    return log.decide(
        FISH, 1, "absent", boxes=boxes, rejected=(), version=version, key=key, to=to, known=known, client="me"
    )


def test_a_wrong_label_is_one_line_and_can_be_undone(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    assert say_absent(log, "1") == ItemState("absent", (), (), 1)
    assert json.loads(log.path.read_text())["status"] == "absent"
    log.undo("me", "2")
    assert log.state(FISH) == ItemState("open", None, (), 2)
    log.close()


def test_relabelling_changes_two_labels_in_one_line_and_undo_brings_both_back(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    say_absent(log, "1", to="shark", boxes=[BOX])
    assert len(log.path.read_text().splitlines()) == 1, "half of it can never be on disk"
    assert log.state(FISH).status == "absent"
    assert log.state(SHARK) == ItemState("open", (BOX,), (), 1, added=True)
    assert {pair for pair, _ in log.changed_since(0)} == {FISH, SHARK}
    log.close()
    log = DecisionLog(log.path)  # and after a restart
    assert log.pairs_given() == [SHARK]
    log.undo("me", "2")
    assert log.state(FISH).status == "open"
    assert not log.state(SHARK).added
    log.close()
    assert read_decisions(tmp_path)[SHARK].added is False


def test_undoing_a_relabelling_respects_what_another_window_did_with_the_new_label(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    say_absent(log, "1", to="shark", boxes=[BOX])
    log.decide(SHARK, 1, "accept", boxes=[BOX], rejected=(), version=1, client="other", key="2")
    with pytest.raises(Conflict):
        log.undo("me", "3")
    assert log.state(SHARK).status == "accepted"
    log.close()


def test_a_label_that_is_there_already_is_not_given_twice(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.add(FISH, 1, known=True, key="1", **WHO)
    assert log.seq == 0, "the run gave it"
    log.add(SHARK, 1, known=False, key="2", **WHO)
    log.add(SHARK, 1, known=False, key="3", **WHO)
    assert log.seq == 1
    say_absent(log, "4", to="shark", boxes=[BOX])
    assert log.state(SHARK) == ItemState("open", None, (), 1, added=True), "its boxes are its own"
    log.decide(SHARK, 1, "absent", boxes=None, rejected=(), version=1, key="5", **WHO)
    log.add(SHARK, 1, known=False, key="6", **WHO)
    assert log.state(SHARK).status == "open", "given again after it was called wrong"
    log.add(FISH, 1, known=True, key="7", **WHO)
    assert log.state(FISH) == ItemState("open", None, (), 2, added=False)
    log.close()


def test_two_windows_that_relabel_differently_conflict(tmp_path):
    log = DecisionLog(tmp_path / "decisions.jsonl")
    say_absent(log, "1")
    with pytest.raises(Conflict):
        say_absent(log, "2", to="shark")
    assert say_absent(log, "3") == log.state(FISH), "saying the same is no conflict"
    log.close()


def test_logs_from_before_there_were_wrong_labels_are_read(tmp_path):
    line = {
        "seq": 1, "time": "2026-11-16T10:00:00+00:00", "action": "reject", "image_id": 1, "file": "a.jpg",
        "label": "fish", "version": 1, "status": "rejected", "boxes": [], "rejected": [], "client": "c", "key": "k",
    }  # fmt: skip
    (tmp_path / "decisions.jsonl").write_text(json.dumps(line) + "\n")
    assert read_decisions(tmp_path) == {FISH: ItemState("rejected", (), (), 1)}
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.undo("c", "2")
    assert log.state(FISH) == ItemState("open", None, (), 2)
    log.close()


@pytest.mark.parametrize("line", ["[1]", "7", '"text"', '{"also": [1]}', '{"also": {}}', "null"])
def test_a_line_of_another_shape_is_named(tmp_path, line):
    (tmp_path / "decisions.jsonl").write_text(line + "\n")
    with pytest.raises(ReviewError, match=r"line 1 of .*decisions\.jsonl is not a decision"):
        read_decisions(tmp_path)


@pytest.fixture
def run(tmp_path):
    run = write_run(tmp_path / "run", [(160, 120)] * 4)
    paint_all(run)
    return run


def files_of(run):
    return run.images["file"].to_pylist()


def test_labels_classes_and_boxes_of_a_run_as_a_person_left_it(run):
    dog, cat, *_ = files_of(run)
    decisions = {
        (dog, "dog"): ItemState("absent", (), (), 1),
        (dog, "wolf"): ItemState("accepted", (BOX,), (), 1, added=True),
        (cat, "dog"): ItemState("open", None, (), 1, added=True),
        (cat, "lynx"): ItemState("open", None, (), 2),  # added and taken back
        ("gone.jpg", "ghost"): ItemState("open", None, (), 1, added=True),
    }
    assert reviewed_labels(run, decisions)[:2] == [["wolf"], ["cat", "dog"]]
    assert added_classes(run, decisions) == ["wolf"]
    view = reviewed_run(run, decisions)
    assert view.classes == ["cat", "dog", "wolf"]
    first = [row for row in view.boxes.to_pylist() if row["image_id"] == 1]
    assert [(row["label"], row["x1"], row["confidence"]) for row in first] == [("wolf", 10.0, 1.0)]
    assert run.classes == ["cat", "dog"], "the run itself is as it was"
    assert RunFolder(run.path).images.equals(run.images)


def test_exports_honour_labels(run, tmp_path):
    dog, cat, *_ = files_of(run)
    decisions = {
        (dog, "dog"): ItemState("absent", (), (), 1),
        (cat, "cat"): ItemState("absent", (), (), 1),
        (cat, "wolf"): ItemState("accepted", (BOX,), (), 1, added=True),
    }
    assert checked_files(run, decisions) == ({dog, cat}, 0)
    done = export_reviewed(run, decisions, "coco", tmp_path / "coco", checked_only=True)
    written = json.loads((tmp_path / "coco" / "annotations.json").read_text())
    assert [category["name"] for category in written["categories"]] == ["cat", "dog", "wolf"]
    assert [(item["image_id"], item["category_id"]) for item in written["annotations"]] == [(2, 3)]
    assert done.images == 2
    assert not any("no box" in note for note in done.notes), "an image whose label was wrong is background"
    yolo = export_reviewed(run, decisions, "yolo", tmp_path / "yolo", checked_only=True)
    assert yolo.images == 2, "background images teach a detector, too"


def test_an_added_label_that_nobody_checked_holds_its_image_back(run, tmp_path):
    dog = files_of(run)[0]
    accepted = {(dog, "dog"): ItemState("accepted", (BOX,), (), 1)}
    assert checked_files(run, accepted) == ({dog}, 0)
    assert checked_files(run, {**accepted, (dog, "cat"): ItemState(version=1, added=True)}) == (set(), 1)


def request(action, **more):
    return {"action": action, "boxes": None, "rejected": [], "version": 0, "client": "me", **more}


def test_items_of_added_labels_keep_their_numbers(run):
    session = ReviewSession(run)
    with_wolf = session.decide(0, request("absent", to="  big   wolf ", boxes=[BOX], key="1"))
    assert with_wolf["status"] == "absent"
    assert with_wolf["also"]["item"] == 4
    assert with_wolf["also"]["boxes"] == (BOX,)
    assert with_wolf["classes"] == ["cat", "dog", "big wolf"]
    assert session.decide(1, request("add", to="dog", key="2"))["also"]["item"] == 5
    news = session.changes(0)
    assert {number: row[1] for number, row in news["items"]} == {0: 1, 4: 2, 5: 1}
    assert [row[8] for row in json.loads(zlib.decompress(session.index()))["items"]] == [1] * 6
    session.undo({"client": "me", "key": "3"})
    assert [row[8] for row in json.loads(zlib.decompress(session.index()))["items"]] == [1] * 5 + [0], (
        "taken back: not listed, its number kept"
    )
    session.close()
    again = ReviewSession(RunFolder(run.path))
    assert again.items.pairs == session.items.pairs
    assert [row[8] for row in json.loads(zlib.decompress(again.index()))["items"]] == [1] * 5 + [0]
    again.close()


def test_an_index_that_grew_piece_by_piece_is_that_of_a_new_session(run, monkeypatch):
    monkeypatch.setattr("bagwise.review.listing.ROWS_PER_PIECE", 3)
    session = ReviewSession(run)
    for number in range(12):
        item = number % 4
        if number in (5, 7):
            session.decide(item, request("add", to=f"new {number}", key=f"{number}"))
        else:
            kind = {"action": "accept", "boxes": [[1, 1, 20 + number, 30]]} if number % 2 else {"action": "reject"}
            version = session.item(item)["version"]
            session.decide(item, {**request("accept", key=f"{number}"), "version": version, **kind})
        grown = json.loads(zlib.decompress(session.index()))
        _, pieces = Listing(run, session.log).rows()
        assert grown["items"] == json.loads(b"[" + zlib.decompress(end_to_end(pieces)) + b"]")
    assert len(grown["items"]) == 6
    session.close()


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\0b", 7, None])
def test_a_class_has_a_name_one_can_read(run, name):
    session = ReviewSession(run)
    with pytest.raises(ValueError, match="name of a class"):
        session.decide(0, request("add", to=name, key="1"))
    with pytest.raises(ValueError, match="already"):
        session.decide(0, request("absent", to="dog", key="1"))
    session.close()


def relabelled(run, labels):
    """The same run over images whose source had other labels."""
    images = run.images.to_pydict() | {"labels": labels}
    return RunFolder.create(run.path, run.manifest, images, run.boxes)


def test_corrected_labels_teach_what_right_ones_would_have_taught(tmp_path):
    """An image whose label is wrong is a negative of the class, one that was given a label a positive."""
    run = write_learnable_run(tmp_path / "run", steps=500)
    files, right = files_of(run), run.images["labels"].to_pylist()
    wanted = Learner(run).fit("cat", {}).model.coef_
    labels = [list(names) for names in right]
    labels[1].append("cat")
    labels[0].remove("cat")
    wrong = relabelled(run, labels)
    assert not np.array_equal(Learner(wrong).fit("cat", {}).model.coef_, wanted)
    decisions = {
        (files[1], "cat"): ItemState("absent", (), (), 1),
        (files[0], "cat"): ItemState("open", None, (), 1, added=True),
    }
    np.testing.assert_array_equal(Learner(wrong, decisions).fit("cat", decisions).model.coef_, wanted)
    refit(wrong, decisions)
    found = {row["image_id"] for row in wrong.boxes.to_pylist() if row["label"] == "cat"}
    assert found == {*range(1, 25, 2), 2}, "a wrong label keeps suggestions, in case the person thinks again"


def test_an_added_class_is_learned_and_belongs_to_the_run_from_then_on(tmp_path):
    """Dogs' images turn out to be wolves': their boxes are found under the new name."""
    run = write_learnable_run(tmp_path / "run")
    files = files_of(run)
    decisions = {}
    for i in range(1, 24, 2):
        decisions[files[i], "dog"] = ItemState("absent", (), (), 1)
        decisions[files[i], "wolf"] = ItemState("open", None, (), 1, added=True)
    refit(run, decisions)
    assert run.classes == RunFolder(run.path).classes == ["cat", "dog", "wolf"]
    assert share_right(run, "wolf") == 1
    assert len([row for row in run.boxes.to_pylist() if row["label"] == "wolf" and row["rank"] == 0]) == 12
    assert run.model_path("wolf").is_file()
    learned = Learner(run, decisions).models["wolf"]  # read back: all that belongs to a model was written
    assert learned.model is not None
    assert learned.trust == run.manifest["learnt"]["trust"]["wolf"] > 0
    assert "wolf" in RunFolder(run.path).manifest["learnt"]["calibration"]
    assert np.all(run.boxes["confidence"].to_numpy() <= 1)
    session = ReviewSession(RunFolder(run.path))  # the log is empty here: the run alone speaks
    assert session.items.classes == ["cat", "dog", "wolf"]
    session.close()
