"""What a person decided: one JSON object per line of a log, which `bagwise.review.log` writes.

Every line carries the whole state it leads to, so the last line about an image and a label is the truth about
that pair. Pairs are named by file and label, not by number, so a log survives a new run over the same images.
A line that gives an image another label changes two pairs at once: the other one stands under ``also``.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Box = tuple[float, float, float, float]
Pair = tuple[str, str]
Status = Literal["open", "accepted", "rejected", "absent"]
STATUSES: tuple[Status, ...] = get_args(Status)

LOG_NAME = "decisions.jsonl"
ACTIONS = ("accept", "reject", "absent", "edit", "reopen")
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

    "rejected" means that the object is somewhere else in the image, "absent" that the label is wrong.
    ``boxes`` is None while the model's own answer stands. ``rejected`` holds boxes a person saw and passed over.
    ``version`` counts the changes, which is how two windows notice each other. ``added`` is true for a label that the
    run did not have and a person gave.
    """

    status: Status = "open"
    boxes: tuple[Box, ...] | None = None
    rejected: tuple[Box, ...] = ()
    version: int = 0
    added: bool = False

    def to_json(self) -> dict[str, Any]:
        values = {"version": self.version, "status": self.status, "boxes": self.boxes, "rejected": self.rejected}
        return {**values, "added": True} if self.added else values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "ItemState":
        if values["status"] not in STATUSES:
            raise ValueError(f"status is {values['status']!r}")
        boxes = values["boxes"]
        return cls(
            status=values["status"],
            boxes=None if boxes is None else check_boxes(boxes),
            rejected=check_boxes(values["rejected"]),
            version=int(values["version"]),
            added=values.get("added", False) is True,
        )


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
    also: tuple[str, ItemState] | None = None  # another label of the same image, changed in the same breath

    @property
    def changes(self) -> list[tuple[Pair, ItemState]]:
        """The pairs that the line is about, and how it leaves them."""
        others = [] if self.also is None else [((self.pair[0], self.also[0]), self.also[1])]
        return [(self.pair, self.state), *others]

    def to_line(self) -> bytes:
        values: dict[str, Any] = {
            "seq": self.seq,
            "time": self.time,
            "action": self.action,
            "image_id": self.image_id,
            "file": self.pair[0],
            "label": self.pair[1],
            **self.state.to_json(),
            "client": self.client,
            "key": self.key,
        }
        if self.also is not None:
            values["also"] = {"label": self.also[0], **self.also[1].to_json()}
        if self.undoes is not None:
            values["undoes"] = self.undoes
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Record":
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("it is not a JSON object")
        also = values.get("also")
        if also is not None and not isinstance(also, dict):
            raise ValueError("'also' is not a JSON object")
        return cls(
            seq=int(values["seq"]),
            action=str(values["action"]),
            pair=(str(values["file"]), str(values["label"])),
            image_id=int(values["image_id"]),
            state=ItemState.from_json(values),
            client=str(values["client"]),
            key=str(values["key"]),
            time=str(values["time"]),
            undoes=values.get("undoes"),
            also=None if also is None else (str(also["label"]), ItemState.from_json(also)),
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


def read_records(path: Path) -> Iterator[tuple[Record, int]]:
    """Read the log: every record, and where in the file its line ends.

    A last line without its end is what a crash leaves behind. It is kept if it is whole and dropped if it is torn:
    nobody was told that it had been saved. Any other unreadable line is an error, since it means lost work.
    """
    if not path.exists():
        return
    good = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = Record.from_line(line)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    return
                raise ReviewError(
                    f"line {number} of {path} is not a decision ({error}): repair or remove that line and start again"
                ) from error
            good += len(line)
            yield record, good


def read_decisions(run: Path) -> dict[Pair, ItemState]:
    """The decisions of a run folder: (file, label) -> state, for those that a person has touched."""
    records = read_records(Path(run) / LOG_NAME)
    return {pair: state for record, _ in records for pair, state in record.changes}


def outcome(action: str, now: ItemState, boxes: Sequence[Box] | None) -> tuple[Status, tuple[Box, ...] | None]:
    """The status and the boxes that an action leads to."""
    if action == "accept":
        assert boxes is not None
        # Accepting an image from which every box was removed says that none of them is right.
        return ("accepted", tuple(boxes)) if boxes else ("rejected", ())
    if action in ("reject", "absent"):
        return ("rejected" if action == "reject" else "absent"), ()
    if action == "reopen":
        return "open", None
    assert boxes is not None
    # Moving a corner of what was accepted is a better answer, not a doubt about it.
    return ("accepted" if now.status == "accepted" and boxes else "open"), tuple(boxes)
