"""Decisions as constraints, and a model that learns from them."""

import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.review.learning import share_right, write_learnable_run

from bagwise import Bags
from bagwise._utils.lock import sole_use
from bagwise.discovery.learning.localize import localize, rivals_of
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.review.constraints import NEGATIVES, SAME_BOX, Constraints, constraints_of
from bagwise.review.decisions import ItemState
from bagwise.review.refit import NEGATIVE_WEIGHT, POSITIVE_WEIGHT, Learner, refit, training_set
from bagwise.review.session import ReviewSession

OBJECT = (20.0, 20.0, 120.0, 120.0)
DECOY = (180.0, 100.0, 300.0, 220.0)
BOXES = np.array(
    [
        [20, 20, 120, 120],  # the object
        [22, 22, 120, 122],  # nearly the object
        [20, 20, 70, 70],  # a part of it
        [180, 100, 300, 220],  # elsewhere
        [185, 100, 300, 220],  # nearly the same place
        [0, 0, 320, 240],  # everything
        [20, 20, 120, 90],  # most of it: neither right nor surely wrong
    ],
    dtype=np.float32,
)
SCORES = np.array([1, 5, 3, 2, 2.5, 0, 4], dtype=float)


def accepted(*boxes, rejected=()):
    return ItemState("accepted", boxes, rejected, 1)


def test_an_undecided_image_stays_a_bag_of_possibilities():
    for state in (ItemState(), ItemState("open", (OBJECT,), (DECOY,), 2)):
        known = constraints_of(BOXES, SCORES, state)
        assert known.possible.tolist() == list(range(7))
        assert len(known.positive) == len(known.negative) == 0


def test_a_confirmed_box_is_positive_and_what_lies_elsewhere_is_not():
    known = constraints_of(BOXES, SCORES, accepted(OBJECT))
    assert known.positive.tolist() == [0]
    assert known.negative.tolist() == [2, 4, 5], "best-scored first, one of those that are nearly the same"
    assert len(known.possible) == 0


def test_a_drawn_box_is_represented_by_the_proposal_nearest_to_it():
    known = constraints_of(BOXES, SCORES, accepted((23.0, 23.0, 121.0, 123.0)))
    assert known.positive.tolist() == [1]


def test_a_drawn_box_no_proposal_covers_leaves_the_image_a_bag_of_what_is_near():
    known = constraints_of(BOXES, SCORES, accepted((60.0, 20.0, 160.0, 120.0)))
    assert len(known.positive) == 0
    assert known.possible.tolist() == [0, 1, 6], "overlaps of more than .3"


def test_several_confirmed_boxes_are_each_positive():
    known = constraints_of(BOXES, SCORES, accepted(OBJECT, DECOY))
    assert known.positive.tolist() == [0, 3]
    assert known.negative.tolist() == [2, 5]


def test_boxes_passed_over_are_negative_even_where_they_overlap_somewhat():
    without = constraints_of(BOXES, SCORES, accepted(OBJECT))
    part = (20.0, 20.0, 84.0, 84.0)  # overlap with the object: .41
    boxes = np.vstack([BOXES, np.array([part], dtype=np.float32)])
    scores = np.append(SCORES, 9.0)
    assert 7 not in constraints_of(boxes, scores, accepted(OBJECT)).negative
    assert constraints_of(boxes, scores, accepted(OBJECT, rejected=(part,))).negative[0] == 7
    assert len(without.negative) <= NEGATIVES


def test_a_rejected_image_still_holds_its_object_somewhere_else():
    known = constraints_of(BOXES, SCORES, ItemState("rejected", (), (OBJECT,), 1))
    assert len(known.positive) == 0
    assert known.negative.tolist() == [1], "the best of those that are nearly the rejected box"
    overlap_rows = {0, 1, 6}
    assert set(known.possible.tolist()) == set(range(7)) - overlap_rows
    assert SAME_BOX == 0.5


def test_the_training_set_is_made_of_bags_of_one_and_untouched_images():
    instances = np.arange(14, dtype=float)[:, None]
    bags = Bags.from_arrays(instances, [0, 4, 8, 11, 14], prior=np.arange(14) / 10)
    nothing = np.array([], dtype=int)
    found = [
        Constraints(np.array([1]), np.array([0, 3]), nothing),
        Constraints(nothing, np.array([2]), np.array([0, 1])),
        None,
        None,
    ]
    chosen, y, weight = training_set(bags, found, n_shown=3)
    assert [bag.ravel().tolist() for bag in chosen] == [[1], [0], [3], [4, 5], [6], [8, 9, 10], [11, 12, 13]]
    assert y.tolist() == [True, False, False, True, False, True, False]
    assert weight.tolist() == [POSITIVE_WEIGHT, *[NEGATIVE_WEIGHT] * 2, 1, NEGATIVE_WEIGHT, 1, 1]
    np.testing.assert_allclose(chosen.prior, chosen.instances.ravel() / 10)


def test_three_decisions_teach_what_labels_alone_cannot(tmp_path):
    """Every cat comes with a striking sofa; the labels fit both, three looks tell them apart."""
    run = write_learnable_run(tmp_path / "run")
    before = run.boxes
    assert share_right(run, "cat") == 0
    files = run.images["file"].to_pylist()
    refit(run, {(files[i], "cat"): accepted(OBJECT, rejected=(DECOY,)) for i in (0, 2, 4)})
    assert share_right(run, "cat", besides={1, 3, 5}) == 1
    assert share_right(run, "dog") == 1
    dogs = [row for row in before.to_pylist() if row["label"] == "dog"]
    assert [row for row in run.boxes.to_pylist() if row["label"] == "dog"] == dogs, "a class not reviewed is left alone"
    assert pq.read_table(run.path / "review" / "boxes-discovered.parquet").equals(before)


def test_what_was_rejected_often_is_not_proposed_again(tmp_path):
    run = write_learnable_run(tmp_path / "run")
    files = run.images["file"].to_pylist()
    refit(run, {(files[i], "cat"): ItemState("rejected", (), (DECOY,), 1) for i in range(0, 16, 2)})
    left = [row for row in run.boxes.to_pylist() if row["label"] == "cat" and row["rank"] == 0 and row["image_id"] > 16]
    assert len(left) == 4
    assert all((row["x1"], row["y1"]) != DECOY[:2] for row in left)


def test_without_decisions_there_is_nothing_to_learn(tmp_path):
    run = write_learnable_run(tmp_path / "run", images=6)
    with pytest.raises(ValueError, match="nothing new to learn"):
        refit(run, {(run.images["file"][0].as_py(), "cat"): ItemState("open", (OBJECT,), (), 1)})


def test_a_session_refits_in_the_background_and_says_what_changed(tmp_path):
    run = write_learnable_run(tmp_path / "run")
    session = ReviewSession(run)
    generation = session.generation
    for item in (0, 2, 4):
        session.decide(
            item,
            {
                "action": "accept",
                "boxes": [OBJECT],
                "rejected": [DECOY],
                "version": 0,
                "client": "me",
                "key": str(item),
            },
        )
    assert session.start_refit() == {"state": "running"}
    until = time.monotonic() + 30
    while session.changes(0)["refit"]["state"] == "running" and time.monotonic() < until:
        time.sleep(0.02)
    news = session.changes(0)
    assert news["refit"]["state"] == "done", news["refit"]
    assert news["refit"]["changed"] == 9
    assert news["refit"]["open"] == 21
    assert news["generation"] != generation
    assert session.item(6)["objects"] == (OBJECT,)
    assert session.item(0)["boxes"] == (OBJECT,), "what was decided stays"
    session.start_refit()
    while session.changes(0)["refit"]["state"] == "running" and time.monotonic() < until:
        time.sleep(0.02)
    assert "nothing new to learn" in session.changes(0)["refit"]["error"]
    session.close()


def test_a_refit_that_fails_says_why_and_can_be_tried_again(small_run):
    session = ReviewSession(small_run)
    for _ in range(2):
        session.start_refit()
        until = time.monotonic() + 30
        while session.changes(0)["refit"]["state"] == "running" and time.monotonic() < until:
            time.sleep(0.02)
        assert "does not say how it was learned" in session.changes(0)["refit"]["error"]
    session.close()


@pytest.mark.slow
def test_two_hundred_images_of_four_hundred_boxes_take_less_than_five_seconds(tmp_path):
    run = write_learnable_run(tmp_path / "run", images=200, boxes=400, dimension=256, steps=8000)
    files = run.images["file"].to_pylist()
    decisions = {(file, "cat"): accepted(OBJECT, rejected=(DECOY,)) for file in files[0:40:2]}
    decisions |= {(file, "dog"): accepted(OBJECT) for file in files[1:40:2]}
    refit(run, decisions)  # compiled by now
    started = time.process_time()
    refit(run, decisions)
    # Processor time of both threads together: the wall clock of a busy machine says nothing.
    assert time.process_time() - started < 10
    assert share_right(run, "cat", besides=set(range(1, 41))) > 0.9


def test_other_classes_of_an_image_count_as_they_did_in_the_run(tmp_path):
    learner = Learner(write_learnable_run(tmp_path / "run", steps=500))
    files = learner.images.files
    learner.images = ImageSet(learner.images.root, files, [("cat", "dog")] * len(files))
    scores = {}
    for rivalry in (True, False):
        learner.settings = replace(learner.settings, rivalry=rivalry)
        rivals = rivals_of(learner.images, list(learner.models.values()), "cat") if rivalry else None
        answers = learner.answers("cat")
        assert answers == list(localize(learner.store, learner.models["cat"], files, rivals=rivals))
        scores[rivalry] = [answer.score for answer in answers]
    assert scores[True] != scores[False]


def test_a_refit_waits_for_nobody_and_disturbs_nobody(tmp_path):
    """It takes the lock that discovery takes, and leaves alone what another part of the review is writing."""
    run = write_learnable_run(tmp_path / "run", images=6)
    before = {path: path.read_bytes() for path in run.path.rglob("*.*") if path.is_file()}
    decisions = {(run.images["file"][0].as_py(), "cat"): accepted(OBJECT)}
    with sole_use(run.path), pytest.raises(ValueError, match=r"in use by another bagwise \(process \d+\)"):
        refit(run, decisions)
    assert {path: path.read_bytes() for path in before} == before
    (run.path / "exports" / ".writing-abc").mkdir(parents=True)
    refit(run, decisions)
    assert (run.path / "exports" / ".writing-abc").exists()


def test_a_run_that_was_made_again_is_not_overwritten(tmp_path):
    run = write_learnable_run(tmp_path / "run", images=6)
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(run.manifest["created"], "2030-01-01T00:00:00+00:00"))
    boxes = (run.path / "boxes.parquet").read_bytes()
    with pytest.raises(ValueError, match="made again since this review began"):
        refit(run, {(run.images["file"][0].as_py(), "cat"): accepted(OBJECT)})
    assert (run.path / "boxes.parquet").read_bytes() == boxes


def test_masks_of_new_answers_go_into_the_run(tmp_path):
    learner = Learner(write_learnable_run(tmp_path / "run", steps=500))
    answers = [replace(answer, mask="22") for answer in learner.answers("cat")]
    table = learner.table(answers)
    assert set(table["mask"].to_pylist()) == {"22"}
    learner.run.rewrite_boxes(table)
    assert RunFolder(learner.run.path).boxes.equals(table)
