"""The open log of a review: every decision is on disk before anyone is told that it was saved.

Decisions that arrive together reach the disk together, with one flush, so that many windows wait no longer than one.
Memory grows with the number of images, not with the number of decisions.
"""

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bagwise._utils.atomic import sync_folder
from bagwise._utils.lock import InUseError, hold
from bagwise.review.decisions import (
    ACTIONS,
    UNTOUCHED,
    Box,
    Conflict,
    ItemState,
    Pair,
    Record,
    ReviewError,
    outcome,
    read_records,
)

# A page sends a request again until it is answered; by the time so many others came, it was.
REMEMBERED_KEYS = 100_000
# How far back a window can undo, and how many windows can.
UNDO_STEPS = 1000
UNDO_CLIENTS = 200


class _Step(NamedTuple):
    """A change that its client can take back; ``before`` is how the pairs that it is about stood."""

    record: Record
    before: list[ItemState]


class DecisionLog:
    """The log of one run: one process, any number of threads.

    Parameters
    ----------
    path : Path
        The file, created when absent.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        self._lock = threading.Lock()  # of everything below
        self._flushing = threading.Lock()  # taken before the other one
        try:
            self._held = hold(self.path.with_name(f".{self.path.stem}.lock"))
        except InUseError as error:
            raise ReviewError(
                f"{self.path.parent} is already under review by another process ({error.holder}): "
                "use its page or stop it"
            ) from None
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 (open for as long as the review)
        try:
            self._replay()
            self._durable_size, self._durable_seq = self._size, self._seq
            sync_folder(self.path.parent)
        except BaseException:
            self.close()
            raise
        # Bytes that were on disk each time a flush failed and what came after them was taken back.
        self._taken_back: list[int] = []

    def _replay(self) -> None:
        """Read the file as it is, cut a torn last line off, and end a whole one."""
        self._states: dict[Pair, ItemState] = {}
        self._changed: dict[Pair, int] = {}  # the last line about each pair, in the order of lines
        self._given: dict[Pair, None] = {}  # labels that a person added, in that order
        self._undoable: OrderedDict[str, deque[_Step]] = OrderedDict()
        self._keys: OrderedDict[str, tuple[Pair, int]] = OrderedDict()
        self._seq = self._size = 0
        for record, end in read_records(self.path):
            self._apply(record)
            self._size = end
        self._file.truncate(self._size)
        if self._size:
            with open(self.path, "rb") as file:
                file.seek(self._size - 1)
                ended = file.read(1) == b"\n"
            if not ended:
                self._size += self._file.write(b"\n")
        os.fsync(self._file.fileno())

    def _apply(self, record: Record) -> None:
        before = [self.state(pair) for pair, _ in record.changes]
        self._seq = record.seq
        for pair, state in record.changes:
            self._states[pair] = state
            self._changed.pop(pair, None)
            self._changed[pair] = record.seq
            if state.added:
                self._given[pair] = None
        self._keys[record.key] = record.pair, record.image_id
        if len(self._keys) > REMEMBERED_KEYS:
            self._keys.popitem(last=False)
        steps = self._undoable.setdefault(record.client, deque(maxlen=UNDO_STEPS))
        self._undoable.move_to_end(record.client)
        if len(self._undoable) > UNDO_CLIENTS:
            self._undoable.popitem(last=False)
        if record.undoes is None:
            steps.append(_Step(record, before))
        elif steps:
            steps.pop()

    def _append(self, record: Record) -> None:
        line = record.to_line()
        try:
            if self._file.write(line) != len(line):
                raise OSError(f"the disk that holds {self.path} is full")
        except OSError:
            self._file.truncate(self._size)  # half a line would spoil the next one
            raise
        self._size += len(line)
        self._apply(record)

    def _ticket(self) -> tuple[int, int]:
        """What has to be on disk before the present state may be told."""
        return len(self._taken_back), self._size

    def _wait_for_disk(self, ticket: tuple[int, int]) -> None:
        """Flush the file up to the ticket, or find that another thread has done so meanwhile."""
        round_, size = ticket
        with self._flushing:
            if round_ < len(self._taken_back) and size > self._taken_back[round_]:
                raise OSError(f"{self.path} could not be written to disk: the decision was not saved")
            if size <= self._durable_size:
                return
            with self._lock:
                reached = self._size, self._seq
            try:
                os.fsync(self._file.fileno())
            except OSError:
                with self._lock:
                    # Nobody was told about what came after the last flush: it never happened.
                    self._taken_back.append(self._durable_size)
                    self._file.truncate(self._durable_size)
                    self._replay()
                raise
            self._durable_size, self._durable_seq = reached

    @property
    def seq(self) -> int:
        """The number of the last line that is on disk; 0 for an empty log."""
        return self._durable_seq

    @property
    def times_taken_back(self) -> int:
        """How often a disk that failed made lines vanish that someone may have seen."""
        return len(self._taken_back)

    def state(self, pair: Pair) -> ItemState:
        return self._states.get(pair, UNTOUCHED)

    def states(self) -> dict[Pair, ItemState]:
        with self._lock:
            return dict(self._states)

    def pairs_given(self) -> list[Pair]:
        """Every pair that a person ever added, taken back or not, in that order."""
        with self._lock:
            return list(self._given)

    def changed_since(self, seq: int) -> list[tuple[Pair, ItemState]]:
        """The pairs that changed after line ``seq``, each once, as they stand now."""
        with self._lock:
            found = []
            for pair, last in reversed(self._changed.items()):
                if last <= seq:
                    break
                found.append((pair, self._states[pair]))
            return found

    def decide(
        self,
        pair: Pair,
        image_id: int,
        action: str,
        *,
        boxes: Sequence[Box] | None,
        rejected: Sequence[Box],
        version: int,
        client: str,
        key: str,
        to: str | None = None,
        known: bool = False,
    ) -> ItemState:
        """Append one decision and return the state it leads to.

        ``version`` is the one the caller saw; another means that someone was faster, and raises `Conflict`.
        ``key`` names the request: sent twice, because the first answer was lost, it counts once.
        With the action "absent", ``to`` names the label that is right instead: the image gets it, with the boxes, to
        be checked next. ``known`` says that the run gave the image that label already.
        """
        if action not in ACTIONS:
            raise ReviewError(f"the action {action!r} is unknown: use one of {', '.join(ACTIONS)}")
        if action in ("accept", "edit") and boxes is None:
            raise ReviewError(f"the action {action!r} needs boxes")
        with self._lock:
            after = self._decided(pair, image_id, action, boxes, rejected, version, client, key, to, known)
            ticket = self._ticket()
        self._wait_for_disk(ticket)
        return after

    def _decided(
        self,
        pair: Pair,
        image_id: int,
        action: str,
        boxes: Sequence[Box] | None,
        rejected: Sequence[Box],
        version: int,
        client: str,
        key: str,
        to: str | None,
        known: bool,
    ) -> ItemState:
        now = self.state(pair)
        if key in self._keys:
            return now
        status, kept = outcome(action, now, boxes)
        after = ItemState(status, kept, tuple(rejected), now.version + 1, now.added)
        if version != now.version:
            if to is None and replace(after, version=now.version) == now:
                return now  # both windows said the same: nothing is lost
            raise Conflict(now)
        also = None if to is None else (to, self._with_label((pair[0], to), boxes or None, known))
        self._append(Record(self._seq + 1, action, pair, image_id, after, client, key, _timestamp(), also=also))
        return after

    def add(self, pair: Pair, image_id: int, *, known: bool, client: str, key: str) -> ItemState:
        """Give an image a label; one that it has already stays as it is."""
        with self._lock:
            now = self.state(pair)
            after = now if key in self._keys else self._with_label(pair, None, known)
            if after != now:
                self._append(Record(self._seq + 1, "add", pair, image_id, after, client, key, _timestamp()))
            ticket = self._ticket()
        self._wait_for_disk(ticket)
        return after

    def _with_label(self, pair: Pair, boxes: Sequence[Box] | None, known: bool) -> ItemState:
        """The state of a label that a person gives an image: to be checked, unless the image has it already."""
        now = self.state(pair)
        if now.status != "absent" and (known or now.added):
            return now
        return ItemState("open", None if boxes is None else tuple(boxes), (), now.version + 1, added=not known)

    def undo(self, client: str, key: str) -> tuple[Pair, int, ItemState] | None:
        """Take back the last change this client made; None when it has made none.

        What another client has changed since stays: that raises `Conflict`.
        """
        with self._lock:
            done = self._undone(client, key)
            ticket = self._ticket()
        self._wait_for_disk(ticket)
        return done

    def _undone(self, client: str, key: str) -> tuple[Pair, int, ItemState] | None:
        if key in self._keys:
            pair, image_id = self._keys[key]
            return pair, image_id, self.state(pair)
        steps = self._undoable.get(client)
        if not steps:
            return None
        last = steps[-1].record
        now = [self.state(pair) for pair, _ in last.changes]
        # Nothing but undone work may lie between that change and now.
        if any(replace(state, version=0) != replace(after, version=0) for state, (_, after) in zip(now, last.changes)):
            steps.pop()
            raise Conflict(now[0])
        before = [replace(old, version=state.version + 1) for old, state in zip(steps[-1].before, now)]
        also = None if last.also is None else (last.also[0], before[1])
        self._append(
            Record(
                self._seq + 1, "undo", last.pair, last.image_id, before[0], client, key, _timestamp(),
                undoes=last.seq, also=also,
            )
        )  # fmt: skip
        return last.pair, last.image_id, before[0]

    def close(self) -> None:
        """Let another process review the run."""
        self._file.close()
        self._held.release()


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
