"""One review under way: the run, the decisions so far, and the model that learns from them."""

import hashlib
import threading
import time
from datetime import datetime
from itertools import chain, count
from typing import Any

from bagwise.discovery.runfolder import RunFolder
from bagwise.review.decisions import DecisionLog, ItemState, Pair, ReviewError, check_boxes
from bagwise.review.items import Items
from bagwise.review.pictures import Pictures

STATUS_CODE = {"open": 0, "accepted": 1, "rejected": 2}
Answer = dict[str, Any]


class ReviewSession:
    """What the page asks for, without a word about HTTP.

    Parameters
    ----------
    run : RunFolder
    """

    def __init__(self, run: RunFolder):
        self.run = run
        self.generation = self._boxes_written()  # of the boxes shown: it changes when they do, also across restarts
        self.items = Items(run)
        self.log = DecisionLog(run.decisions_path)
        self.pictures = Pictures(run, run.path / "review" / "thumbnails")
        # Part of the pictures' addresses, so that a browser never shows one run's pictures for another's.
        identity = f"{run.path.resolve()} {run.manifest['created']}"
        self._picture_key = hashlib.sha256(identity.encode()).hexdigest()[:12]
        self._refit_lock = threading.Lock()
        self._refit_answer: Answer = {"state": "idle"}
        self._learnt_up_to = 0  # the line of the log; a class without a later one would learn nothing new

    def _boxes_written(self) -> str:
        return str((self.run.path / "boxes.parquet").stat().st_mtime_ns)

    def index(self) -> Answer:
        """All items in brief: enough to list, filter and sort them without asking again.

        ``items`` holds one row per item: image number, class number, confidence, status, version, whether a person
        changed the boxes, and the first box (or nothing).
        """
        # Before what they are about: a decision made or a refit ended meanwhile is then told again, not missed.
        seq, generation = self.log.seq, self.generation
        states = self.log.states()
        rows = [self._row(item, states.get(pair)) for item, pair in enumerate(self.items.pairs)]
        images = [list(values) for values in zip(self.items.files, self.items.width, self.items.height)]
        return {
            "run": self.run.path.resolve().name,
            "key": self._picture_key,
            "classes": self.items.classes,
            "images": images,
            "items": rows,
            "seq": seq,
            "generation": generation,
            "refit": self._refit_answer,
            "can_refit": self.run.store_path.exists(),
        }

    def _row(self, item: int, state: ItemState | None) -> list:
        state = state or self.log.state(self.items.pairs[item])
        return [
            int(self.items.image_id[item]),
            int(self.items.label_index[item]),
            round(self.items.confidence(item), 4),
            STATUS_CODE[state.status],
            state.version,
            int(state.boxes is not None),
            self.items.first_shown(item, state),
        ]

    def item(self, item: int) -> Answer:
        """One item in full."""
        self._check_item(item)
        state = self.log.state(self.items.pairs[item])
        suggestion = self.items.suggestion(item)
        return {
            "item": item,
            "row": self._row(item, state),
            "version": state.version,
            "status": state.status,
            "boxes": self.items.shown_boxes(item, state),
            "rejected": state.rejected,
            "objects": suggestion.objects,
            "candidates": suggestion.candidates,
        }

    def decide(self, item: int, request: Answer) -> Answer:
        """Carry one decision out; see `DecisionLog.decide`."""
        self._check_item(item)
        width, height = self.items.size(item)
        boxes = request.get("boxes")
        self.log.decide(
            self.items.pairs[item],
            int(self.items.image_id[item]),
            _text(request, "action"),
            boxes=None if boxes is None else check_boxes(boxes, width=width, height=height),
            rejected=check_boxes(request.get("rejected", []), width=width, height=height),
            version=_whole_number(request, "version"),
            client=_text(request, "client"),
            key=_text(request, "key"),
        )
        return self.item(item)

    def undo(self, request: Answer) -> Answer:
        """Take the client's last change back; ``item`` is None when there is none."""
        undone = self.log.undo(_text(request, "client"), _text(request, "key"))
        if undone is None or undone[0] not in self.items.number:
            return {"item": None}
        return self.item(self.items.number[undone[0]])

    def changes(self, since: int) -> Answer:
        """What happened after line ``since`` of the log."""
        seq, generation = self.log.seq, self.generation
        changed = [
            [self.items.number[pair], self._row(self.items.number[pair], state)]
            for pair, state in self.log.changed_since(since)
            if pair in self.items.number
        ]
        return {"seq": seq, "generation": generation, "refit": self._refit_answer, "items": changed}

    def start_refit(self) -> Answer:
        """Learn from the decisions in the background; one refit at a time."""
        if not self._refit_lock.acquire(blocking=False):
            raise ReviewError("a refit is already under way")
        self._refit_answer = {"state": "running"}
        threading.Thread(target=self._refit, name="refit", daemon=True).start()
        return self._refit_answer

    def _refit(self) -> None:
        from bagwise.review.refit import refit

        try:
            started = time.perf_counter()
            seq, states = self.log.seq, self.log.states()
            before = self._open_answers(states)
            refit(self.run, states, {label for (_, label), _ in self.log.changed_since(self._learnt_up_to)})
            self._learnt_up_to = seq
            self.items.read_boxes(self.run.boxes)
            self.generation = self._boxes_written()
            after = self._open_answers(states)
            self._refit_answer = {
                "state": "done",
                "seconds": round(time.perf_counter() - started, 2),
                "open": len(after),
                "changed": sum(before[item] != answer for item, answer in after.items()),
                "finished": time.time(),
            }
        except Exception as error:  # the page shows it; a dead thread would leave the person waiting for ever
            self._refit_answer = {"state": "failed", "error": str(error) or type(error).__name__}
        finally:
            self._refit_lock.release()

    def _open_answers(self, states: dict[Pair, ItemState]) -> dict[int, Any]:
        open_items = [
            i for i, pair in enumerate(self.items.pairs) if pair not in states or states[pair].status == "open"
        ]
        return {item: self.items.suggestion(item).objects[:1] for item in open_items}

    def export(self, request: Answer) -> Answer:
        """Write the boxes as they stand to a new folder under the run, by the exporters of `bagwise export`."""
        from bagwise.discovery.export import FORMATS
        from bagwise.review.export import export_reviewed

        name = _text(request, "format")
        if name not in FORMATS:
            raise ReviewError(f"there is no format {name!r}: use one of {', '.join(FORMATS)}")
        now = f"{name}-{datetime.now():%Y-%m-%d-%H%M%S}"
        names = chain([now], (f"{now}-{n}" for n in count(2)))  # two within a second are two exports all the same
        out = next(path for path in (self.run.path / "exports" / name for name in names) if not path.exists())
        checked_only = request.get("checked_only") is True
        done = export_reviewed(self.run, self.log.states(), name, out, checked_only=checked_only)
        return {"path": str(done.path), "images": done.images, "boxes": done.boxes, "notes": done.notes}

    def _check_item(self, item: int) -> None:
        if not 0 <= item < len(self.items):
            raise ReviewError(f"there is no item {item}: this run has {len(self.items)}")

    def close(self) -> None:
        self.log.close()


def _text(request: Answer, name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 100:
        raise ReviewError(f"{name} must be a short text")
    return value


def _whole_number(request: Answer, name: str) -> int:
    value = request.get(name)
    if type(value) is not int:
        raise ReviewError(f"{name} must be a whole number")
    return value
