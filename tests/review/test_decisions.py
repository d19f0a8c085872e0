"""The log of decisions: nothing acknowledged is ever lost, and nobody overwrites what they have not seen."""

import gc
import json
import os
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagwise.review.decisions import Conflict, ItemState, ReviewError, check_boxes, read_decisions
from bagwise.review.log import DecisionLog

PAIR = ("a b/ü.jpg", "cat")
BOX = (1.0, 2.0, 30.0, 40.0)
STEPS = ("accept", "reject", "edit", "reopen", "undo")
OTHER = (5.0, 5.0, 9.0, 9.0)


class Hand:
    """A client that numbers its requests."""

    def __init__(self, log: DecisionLog, name: str = "me"):
        self.log, self.name, self.count = log, name, 0

    def decide(self, action: str, boxes: Any = (BOX,), *, version: int, pair: tuple = PAIR, key: str = "") -> ItemState:
        self.count += 1
        key = key or f"{self.name}-{self.count}"
        return self.log.decide(
            pair, 1, action, boxes=boxes, rejected=(OTHER,), version=version, client=self.name, key=key
        )

    def undo(self, key: str = "") -> Any:
        self.count += 1
        return self.log.undo(self.name, key or f"{self.name}-{self.count}")


@pytest.fixture
def log(tmp_path: Path) -> Any:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    yield log
    log.close()


def reopened(log: DecisionLog) -> DecisionLog:
    log.close()
    return DecisionLog(log.path)


def test_a_decision_is_on_disk_when_decide_returns(log):
    state = Hand(log).decide("accept", version=0)
    assert state == ItemState("accepted", (BOX,), (OTHER,), 1)
    (line,) = log.path.read_text(encoding="utf-8").splitlines()
    written = json.loads(line)
    assert written["seq"] == 1
    assert written["file"] == "a b/ü.jpg"
    assert written["boxes"] == [list(BOX)]
    assert read_decisions(log.path.parent) == {PAIR: state}


def test_every_action_leads_where_it_should(log):
    hand = Hand(log)
    assert hand.decide("edit", version=0).status == "open"
    assert hand.decide("accept", version=1).status == "accepted"
    assert hand.decide("edit", (OTHER,), version=2) == ItemState("accepted", (OTHER,), (OTHER,), 3)
    assert hand.decide("edit", (), version=3).status == "open"
    assert hand.decide("accept", (), version=4).status == "rejected"
    assert hand.decide("reopen", None, version=5) == ItemState("open", None, (OTHER,), 6)
    assert hand.decide("reject", None, version=6) == ItemState("rejected", (), (OTHER,), 7)
    with pytest.raises(ReviewError, match="unknown"):
        hand.decide("dance", version=7)
    with pytest.raises(ReviewError, match="needs boxes"):
        hand.decide("accept", None, version=7)


def test_a_stale_version_is_a_conflict_and_changes_nothing(log):
    Hand(log, "first").decide("accept", version=0)
    with pytest.raises(Conflict) as caught:
        Hand(log, "second").decide("reject", None, version=0)
    assert caught.value.state.status == "accepted"
    assert log.seq == 1


def test_saying_the_same_twice_is_no_conflict(log):
    first = Hand(log, "first").decide("accept", version=0)
    assert Hand(log, "second").decide("accept", version=0) == first
    assert log.seq == 1


def test_a_request_sent_again_counts_once_even_after_a_restart(log):
    Hand(log).decide("accept", version=0, key="once")
    again = reopened(log)
    assert Hand(again).decide("accept", version=0, key="once").version == 1
    assert again.seq == 1
    again.close()


def test_undo_walks_back_over_restarts_and_leaves_others_alone(log):
    mine, theirs = Hand(log, "mine"), Hand(log, "theirs")
    mine.decide("edit", version=0)
    mine.decide("accept", (OTHER,), version=1)
    theirs.decide("reject", None, version=0, pair=("b.jpg", "cat"))
    log = reopened(log)
    mine = Hand(log, "mine")
    mine.count = 10
    assert mine.undo()[2] == ItemState("open", (BOX,), (OTHER,), 3)
    pair, image_id, state = mine.undo(key="u")
    assert (pair, image_id, state) == (PAIR, 1, ItemState("open", None, (), 4))
    assert mine.undo(key="u")[2] == state, "a repeated request undoes nothing more"
    assert mine.undo() is None
    assert log.state(("b.jpg", "cat")).status == "rejected"
    log.close()


def test_undo_does_not_take_back_another_windows_later_word(log):
    mine, theirs = Hand(log, "mine"), Hand(log, "theirs")
    mine.decide("accept", version=0)
    theirs.decide("reject", None, version=1)
    with pytest.raises(Conflict):
        mine.undo()
    assert log.state(PAIR).status == "rejected"
    assert mine.undo() is None


def test_changed_since_names_each_pair_once(log):
    hand = Hand(log)
    hand.decide("edit", version=0)
    hand.decide("accept", version=1)
    hand.decide("accept", version=0, pair=("b.jpg", "dog"))
    assert {pair for pair, _ in log.changed_since(0)} == {PAIR, ("b.jpg", "dog")}
    assert [pair for pair, _ in log.changed_since(2)] == [("b.jpg", "dog")]
    assert log.changed_since(3) == []


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_a_torn_last_line_is_dropped_and_work_goes_on(log, cut):
    hand = Hand(log)
    hand.decide("accept", version=0)
    whole = log.path.read_bytes()
    hand.decide("accept", version=0, pair=("b.jpg", "dog"))
    log.close()
    torn = log.path.read_bytes()[: -cut - 1]
    log.path.write_bytes(torn)
    assert set(read_decisions(log.path.parent)) == {PAIR}, "readers cope without repairing"
    again = DecisionLog(log.path)
    assert log.path.read_bytes() == whole
    Hand(again, "later").decide("reject", None, version=0, pair=("b.jpg", "dog"))
    again.close()
    assert read_decisions(log.path.parent)[("b.jpg", "dog")].status == "rejected"


def test_a_whole_last_line_without_its_end_is_kept(log):
    Hand(log).decide("accept", version=0)
    log.close()
    log.path.write_bytes(log.path.read_bytes().rstrip(b"\n"))
    again = DecisionLog(log.path)
    Hand(again, "later").decide("reject", None, version=1)
    again.close()
    assert read_decisions(log.path.parent)[PAIR].version == 2


def test_damage_in_the_middle_is_an_error_that_names_the_line(log):
    Hand(log).decide("accept", version=0)
    log.close()
    log.path.write_bytes(b"{}\n" + log.path.read_bytes())
    with pytest.raises(ReviewError, match="line 1 of"):
        DecisionLog(log.path)


def test_a_full_disk_leaves_no_half_line(log, monkeypatch):
    hand = Hand(log)
    hand.decide("accept", version=0)
    before = log.path.read_bytes()

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            hand.decide("reject", None, version=1)
    assert log.path.read_bytes() == before
    assert hand.decide("reject", None, version=1).status == "rejected"


def test_a_second_server_on_the_same_run_is_refused(log):
    with pytest.raises(ReviewError, match="already under review"):
        DecisionLog(log.path)


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ("no", "list"),
        ([[1, 2, 3]], "four finite"),
        ([[1, 2, float("nan"), 4]], "four finite"),
        ([[1, 2, "3", 4]], "four finite"),
        ([[True, 2, 3, 4]], "four finite"),
        ([[5, 5, 5, 9]], "no area"),
        ([[200, 5, 300, 9]], "no area"),
        ([BOX] * 501, "at most"),
    ],
)
def test_bad_boxes_get_a_sentence(boxes, message):
    with pytest.raises(ReviewError, match=message):
        check_boxes(boxes, width=100, height=100)


def test_boxes_are_cut_to_the_image():
    assert check_boxes([[-5, -5, 500.123456, 50]], width=100, height=80) == ((0.0, 0.0, 100.0, 50.0),)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["accept", "reject", "edit", "reopen", "undo"]), st.integers(0, 2)), max_size=25)
)
def test_replaying_the_log_gives_the_state_it_was_written_from(tmp_path_factory, steps):
    log = DecisionLog(tmp_path_factory.mktemp("log") / "decisions.jsonl")
    hand = Hand(log)
    pairs = [(f"{i}.jpg", "cat") for i in range(3)]
    history: list[dict] = [log.states()]
    for action, which in steps:
        if action == "undo":
            hand.undo()
            history = history[:-1] or history
        else:
            boxes = None if action in ("reject", "reopen") else (BOX,)
            hand.decide(action, boxes, version=log.state(pairs[which]).version, pair=pairs[which])
            history.append(log.states())
        expected = {pair: (state.status, state.boxes) for pair, state in history[-1].items()}
        now = {pair: (state.status, state.boxes) for pair, state in log.states().items()}
        untouched = ("open", None)
        assert all(now[pair] == expected.get(pair, untouched) for pair in now)
    states = log.states()
    again = reopened(log)
    assert again.states() == states
    again.close()


def test_decisions_that_arrive_together_are_flushed_together(log, monkeypatch):
    flush, flushes = os.fsync, []

    def slow(handle: int) -> None:
        flushes.append(handle)
        time.sleep(0.02)
        flush(handle)

    monkeypatch.setattr(os, "fsync", slow)
    hands = [Hand(log, f"hand {i}") for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        done = [pool.submit(hand.decide, "accept", version=0, pair=(hand.name, "cat")) for hand in hands for _ in "1"]
        assert all(future.result().version == 1 for future in done)
    assert len(flushes) < 8
    assert len(log.path.read_bytes().splitlines()) == 16 == log.seq


def test_a_flush_that_fails_takes_back_what_nobody_was_told(log, monkeypatch):
    """Every waiting window hears of it, and what was acknowledged before stays."""
    Hand(log, "early").decide("accept", version=0)
    before = log.path.read_bytes()
    both_written = threading.Barrier(2)

    def fail(handle: int) -> None:
        both_written.wait(10)
        raise OSError(5, "Input/output error")

    answers = []

    def decide(name: str) -> None:
        try:
            answers.append(Hand(log, name).decide("accept", version=0, pair=(name, "cat")))
        except OSError as error:
            answers.append(error)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        first = threading.Thread(target=decide, args=("first",))
        first.start()
        while len(log.path.read_bytes().splitlines()) < 2:
            time.sleep(0.001)
        second = threading.Thread(target=decide, args=("second",))
        second.start()
        while len(log.path.read_bytes().splitlines()) < 3:
            time.sleep(0.001)
        patched.setattr(os, "fsync", lambda handle: None)  # the replay's own flush
        both_written.wait(10)
        first.join(10)
        second.join(10)
    assert [type(answer) for answer in answers] == [OSError, OSError], answers
    assert log.path.read_bytes() == before
    assert set(log.states()) == {PAIR}
    assert log.seq == 1
    assert log.times_taken_back == 1
    assert Hand(log, "later").decide("accept", version=0, pair=("first", "cat")).version == 1
    assert log.seq == 2


def test_a_line_is_not_counted_before_it_is_on_disk(log, monkeypatch):
    """A page that was told of line 2 asks for what came after it: after a crash that must not be another line 2."""
    seen = []
    flush = os.fsync

    def look(handle: int) -> None:
        seen.append(log.seq)
        flush(handle)

    monkeypatch.setattr(os, "fsync", look)
    hand = Hand(log)
    hand.decide("accept", version=0)
    hand.decide("reject", None, version=1)
    assert seen == [0, 1]


def test_memory_does_not_grow_with_the_number_of_decisions(log, monkeypatch):
    from bagwise.review import log as module

    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(module, "REMEMBERED_KEYS", 50)
    monkeypatch.setattr(module, "UNDO_STEPS", 20)
    monkeypatch.setattr(module, "UNDO_CLIENTS", 3)
    hands = [Hand(log, f"hand {i}") for i in range(5)]

    def work(rounds: int) -> int:
        for _ in range(rounds):
            for hand in hands:
                pair = (f"{hand.name}.jpg", "cat")
                hand.decide("edit", version=log.state(pair).version, pair=pair)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    work(40)
    tracemalloc.start()
    try:
        first = work(40)
        assert work(400) - first < 30_000
    finally:
        tracemalloc.stop()
    assert hands[0].undo() is None, "the window that was quiet longest"
    for version in range(25):
        hands[4].decide("edit", version=version, pair=("other.jpg", "cat"))
    assert [hands[4].undo() is not None for _ in range(21)] == [True] * 20 + [False]
