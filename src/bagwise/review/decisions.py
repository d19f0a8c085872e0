"""The log of what a person decided: one JSON object per line, on disk before anyone is told it was saved.

Every line carries the whole state it leads to, so the last line about an image and a label is the truth about
that pair. Pairs are named by file and label, not by number, so a log survives a new run over the same images.
"""

import json
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

try:
    import fcntl
except ImportError:  # not a POSIX system: the log works, but cannot refuse a second server
    fcntl = None  # type: ignore[assignment]

Box = tuple[float, float, float, float]
Pair = tuple[str, str]
Status = Literal["open", "accepted", "rejected"]

LOG_NAME = "decisions.jsonl"
ACTIONS = ("accept", "reject", "edit", "reopen")
MAX_BOXES = 500


class ReviewError(ValueError):
    """A request about the review that makes no sense, said in one sentence."""


class Conflict(ReviewError):
    """Someone else decided about this image first; ``state`` is what they left."""

    def __init__(self, state: "ItemState"):
        super().__init__("this image was changed in another window; here is how it stands now")
        self.state = state


@dataclass(frozen=True)
class ItemState:
    """What is decided about one label in one image.

    ``boxes`` is None while the model's own answer stands. ``rejected`` holds boxes a person saw and passed over.
    ``version`` counts the changes, which is how two windows notice each other.
    """

    status: Status = "open"
    boxes: tuple[Box, ...] | None = None
    rejected: tuple[Box, ...] = ()
    version: int = 0


UNTOUCHED = ItemState()


@dataclass(frozen=True)
class Record:
    """One line of the log."""

    seq: int
    action: str
    pair: Pair
    image_id: int
    state: ItemState
    client: str
    key: str
    time: str
    undoes: int | None = None

    def to_line(self) -> bytes:
        values: dict[str, Any] = {
            "seq": self.seq,
            "time": self.time,
            "action": self.action,
            "image_id": self.image_id,
            "file": self.pair[0],
            "label": self.pair[1],
            "version": self.state.version,
            "status": self.state.status,
            "boxes": self.state.boxes,
            "rejected": self.state.rejected,
            "client": self.client,
            "key": self.key,
        }
        if self.undoes is not None:
            values["undoes"] = self.undoes
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Record":
        values = json.loads(line)
        if values["status"] not in ("open", "accepted", "rejected"):
            raise ValueError(f"status is {values['status']!r}")
        boxes = values["boxes"]
        state = ItemState(
            status=values["status"],
            boxes=None if boxes is None else check_boxes(boxes),
            rejected=check_boxes(values["rejected"]),
            version=int(values["version"]),
        )
        return cls(
            seq=int(values["seq"]),
            action=str(values["action"]),
            pair=(str(values["file"]), str(values["label"])),
            image_id=int(values["image_id"]),
            state=state,
            client=str(values["client"]),
            key=str(values["key"]),
            time=str(values["time"]),
            undoes=values.get("undoes"),
        )


def check_boxes(values: Any, *, width: float = math.inf, height: float = math.inf) -> tuple[Box, ...]:
    """Turn a JSON value into boxes inside an image of this size, or say what is wrong with it."""
    if not isinstance(values, list | tuple) or len(values) > MAX_BOXES:
        raise ReviewError(f"boxes must be a list of at most {MAX_BOXES} boxes")
    boxes = []
    for number, value in enumerate(values):
        right_form = isinstance(value, list | tuple) and len(value) == 4
        if not right_form or not all(type(v) in (int, float) and math.isfinite(v) for v in value):
            raise ReviewError(f"box {number} must be four finite numbers x1, y1, x2, y2")
        x1, x2 = (round(min(max(float(v), 0.0), width), 2) for v in (value[0], value[2]))
        y1, y2 = (round(min(max(float(v), 0.0), height), 2) for v in (value[1], value[3]))
        if x2 <= x1 or y2 <= y1:
            raise ReviewError(f"box {number} has no area inside the image")
        boxes.append((x1, y1, x2, y2))
    return tuple(boxes)


def read_records(path: Path) -> tuple[list[Record], int]:
    """Read the log and the number of bytes that are whole lines.

    A last line without its end is what a crash leaves behind. It is kept if it is whole and dropped if it is torn:
    nobody was told that it had been saved. Any other unreadable line is an error, since it means lost work.
    """
    data = path.read_bytes() if path.exists() else b""
    records: list[Record] = []
    good = 0
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        terminated = line.endswith(b"\n")
        try:
            record = Record.from_line(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            if not terminated:
                break
            raise ReviewError(
                f"line {number} of {path} is not a decision ({error}): repair or remove that line and start again"
            ) from error
        records.append(record)
        good += len(line)
    return records, good


def read_decisions(run: Path) -> dict[Pair, ItemState]:
    """The decisions of a run folder: (file, label) -> state, for those that a person has touched."""
    records, _ = read_records(Path(run) / LOG_NAME)
    return {record.pair: record.state for record in records}


class DecisionLog:
    """The open log of one run: one writer, any number of threads.

    Parameters
    ----------
    path : Path
        The file, created when the first decision is made.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        self._lock = threading.Lock()
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 (open for as long as the review)
        try:
            self._claim()
            records, good = read_records(self.path)
            self._heal(good)
        except BaseException:
            self._file.close()
            raise
        self._states: dict[Pair, ItemState] = {}
        self._records: list[Record] = []
        self._before: dict[int, ItemState] = {}
        self._undoable: dict[str, list[int]] = {}
        self._keys: set[str] = set()
        for record in records:
            self._apply(record)

    def _claim(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ReviewError(
                f"{self.path.parent} is already under review by another process: use its page or stop it"
            ) from error

    def _heal(self, good: int) -> None:
        """Cut a torn last line off, and end a whole one, so that the next line starts on its own."""
        self._file.truncate(good)
        if good:
            with open(self.path, "rb") as file:
                file.seek(good - 1)
                ended = file.read(1) == b"\n"
            if not ended:
                self._file.write(b"\n")
        os.fsync(self._file.fileno())

    def _apply(self, record: Record) -> None:
        self._before[record.seq] = self._states.get(record.pair, UNTOUCHED)
        self._states[record.pair] = record.state
        self._records.append(record)
        self._keys.add(record.key)
        stack = self._undoable.setdefault(record.client, [])
        if record.undoes is None:
            stack.append(len(self._records) - 1)
        elif stack:
            stack.pop()

    def _append(self, record: Record) -> None:
        size = os.fstat(self._file.fileno()).st_size
        line = record.to_line()
        try:
            if self._file.write(line) != len(line):
                raise OSError(f"the disk that holds {self.path} is full")
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(size)  # half a line would spoil the next one
            raise
        self._apply(record)

    @property
    def seq(self) -> int:
        """The number of the last line; 0 for an empty log."""
        return self._records[-1].seq if self._records else 0

    def state(self, pair: Pair) -> ItemState:
        return self._states.get(pair, UNTOUCHED)

    def states(self) -> dict[Pair, ItemState]:
        with self._lock:
            return dict(self._states)

    def changed_since(self, seq: int) -> list[tuple[Pair, ItemState]]:
        """The pairs that changed after line ``seq``, each once, as they stand now."""
        with self._lock:
            pairs: dict[Pair, None] = {}
            for record in reversed(self._records):
                if record.seq <= seq:
                    break
                pairs[record.pair] = None
            return [(pair, self._states[pair]) for pair in pairs]

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
    ) -> ItemState:
        """Append one decision and return the state it leads to.

        ``version`` is the one the caller saw; another means that someone was faster, and raises `Conflict`.
        ``key`` names the request: sent twice, because the first answer was lost, it counts once.
        """
        if action not in ACTIONS:
            raise ReviewError(f"the action {action!r} is unknown: use one of {', '.join(ACTIONS)}")
        if action in ("accept", "edit") and boxes is None:
            raise ReviewError(f"the action {action!r} needs boxes")
        with self._lock:
            now = self.state(pair)
            if key in self._keys:
                return now
            status, kept = _outcome(action, now, boxes)
            after = ItemState(status, kept, tuple(rejected), now.version + 1)
            if version != now.version:
                if replace(after, version=now.version) == now:
                    return now  # both windows said the same: nothing is lost
                raise Conflict(now)
            self._append(Record(self.seq + 1, action, pair, image_id, after, client, key, _timestamp()))
            return after

    def undo(self, client: str, key: str) -> tuple[Pair, int, ItemState] | None:
        """Take back the last change this client made; None when it has made none.

        What another client has changed since stays: that raises `Conflict`.
        """
        with self._lock:
            if key in self._keys:
                done = next(record for record in reversed(self._records) if record.key == key)
                return done.pair, done.image_id, self.state(done.pair)
            stack = self._undoable.get(client, [])
            if not stack:
                return None
            last = self._records[stack[-1]]
            now = self.state(last.pair)
            if not self._is_latest(last):
                stack.pop()
                raise Conflict(now)
            before = replace(self._before[last.seq], version=now.version + 1)
            record = Record(
                self.seq + 1, "undo", last.pair, last.image_id, before, client, key, _timestamp(), undoes=last.seq
            )
            self._append(record)
            return last.pair, last.image_id, before

    def _is_latest(self, record: Record) -> bool:
        """Whether nothing but undone work lies between this record and now."""
        return replace(self.state(record.pair), version=0) == replace(record.state, version=0)

    def close(self) -> None:
        self._file.close()


def _outcome(action: str, now: ItemState, boxes: Sequence[Box] | None) -> tuple[Status, tuple[Box, ...] | None]:
    if action == "accept":
        assert boxes is not None
        # Accepting an image from which every box was removed says that the object is not there.
        return ("accepted", tuple(boxes)) if boxes else ("rejected", ())
    if action == "reject":
        return "rejected", ()
    if action == "reopen":
        return "open", None
    assert boxes is not None
    # Moving a corner of what was accepted is a better answer, not a doubt about it.
    return ("accepted" if now.status == "accepted" and boxes else "open"), tuple(boxes)


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
