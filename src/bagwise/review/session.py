"""One review under way: the run, the decisions so far, and the model that learns from them."""

import hashlib
import threading
import time
from datetime import datetime
from itertools import chain, count
from typing import Any

from bagwise.discovery.run.folder import RunFolder
from bagwise.review.compressed import compressed, end_to_end
from bagwise.review.decisions import UNTOUCHED, ItemState, Pair, ReviewError, check_boxes
from bagwise.review.items import Items
from bagwise.review.listing import Listing, as_json
from bagwise.review.log import DecisionLog
from bagwise.review.pictures import Pictures

LONGEST_LABEL = 100
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
        self.log = DecisionLog(run.decisions_path)
        try:
            self._listing = Listing(run, self.log)
        except BaseException:
            self.log.close()
            raise
        self.pictures = Pictures(run, run.path / "review" / "thumbnails")
        # Part of the pictures' addresses, so that a browser never shows one run's pictures for another's.
        identity = f"{run.path.resolve()} {run.manifest['created']}"
        self._picture_key = hashlib.sha256(identity.encode()).hexdigest()[:12]
        self._refit_lock = threading.Lock()
        self._refit_answer: Answer = {"state": "idle"}
        self._learned_up_to = 0  # the line of the log; a class without a later one would learn nothing new

    @property
    def items(self) -> Items:
        """What there is to check; after a refit another object, with the same numbers."""
        return self._listing.items

    def _boxes_written(self) -> str:
        return str((self.run.path / "boxes.parquet").stat().st_mtime_ns)

    def index(self) -> bytes:
        """All items in brief, as compressed JSON: enough to list, filter and sort them without asking again."""
        generation = self.generation  # before the rows: a refit that ends meanwhile is then told again, not missed
        seq, rows = self._listing.rows()
        brief = {
            "run": self.run.path.resolve().name,
            "key": self._picture_key,
            "classes": self.items.classes,
            "seq": seq,
            "generation": generation,
            "refit": self._refit_answer,
            "can_refit": self.run.store_path.exists(),
        }
        head, between = compressed(f'{as_json(brief)[:-1]},"images":'), compressed(',"items":[')
        return end_to_end([head, self._listing.images, between, *rows, compressed("]}")])

    def item(self, item: int) -> Answer:
        """One item in full."""
        self._check_item(item)
        state = self.log.state(self.items.pairs[item])
        suggestion = self.items.suggestion(item)
        return {
            "item": item,
            "row": self._listing.row(item, state),
            "version": state.version,
            "status": state.status,
            "boxes": self.items.shown_boxes(item, state),
            "rejected": state.rejected,
            "objects": suggestion.objects,
            "candidates": suggestion.candidates,
            "masks": suggestion.masks,
        }

    def decide(self, item: int, request: Answer) -> Answer:
        """Carry one decision out; see `DecisionLog.decide` and `DecisionLog.add`.

        "absent" with ``to`` gives the image that label instead, "add" gives it as well; the answer then holds the
        item of the other label under ``also``.
        """
        self._check_item(item)
        width, height = self.items.size(item)
        boxes, action = request.get("boxes"), _text(request, "action")
        pair, image_id = self.items.pairs[item], self.items.image_id[item]
        who = {"client": _text(request, "client"), "key": _text(request, "key")}
        to = None
        if action == "add" or (action == "absent" and request.get("to") is not None):
            to = _label(request)
        if to == pair[1]:
            raise ReviewError(f"the image has the label {to!r} already: choose another")
        other = (pair[0], to) if to is not None else None
        known = other is not None and self.items.number.get(other, len(self.items)) < self.items.n_of_run
        if action == "add" and other is not None:
            self.log.add(other, image_id, known=known, **who)
            return self._with_also(item, other)
        self.log.decide(
            pair,
            image_id,
            action,
            boxes=None if boxes is None else check_boxes(boxes, width=width, height=height),
            rejected=check_boxes(request.get("rejected", []), width=width, height=height),
            version=_whole_number(request, "version"),
            to=to,
            known=known,
            **who,
        )
        return self.item(item) if other is None else self._with_also(item, other)

    def _with_also(self, item: int, other: Pair) -> Answer:
        number = self._listing.number(other)
        if number is None:  # undone by another window meanwhile
            return self.item(item)
        return {**self.item(item), "also": self.item(number), "classes": self.items.classes}

    def undo(self, request: Answer) -> Answer:
        """Take the client's last change back; ``item`` is None when there is none."""
        undone = self.log.undo(_text(request, "client"), _text(request, "key"))
        number = None if undone is None else self._listing.number(undone[0])
        return {"item": None} if number is None else self.item(number)

    def changes(self, since: int) -> Answer:
        """What happened after line ``since`` of the log."""
        seq, generation = self.log.seq, self.generation
        numbered = [(self._listing.number(pair), state) for pair, state in self.log.changed_since(since)]
        changed = [[number, self._listing.row(number, state)] for number, state in numbered if number is not None]
        answer = {"seq": seq, "generation": generation, "refit": self._refit_answer, "items": changed}
        return {**answer, "classes": self.items.classes} if changed else answer

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
            refit(self.run, states, {label for (_, label), _ in self.log.changed_since(self._learned_up_to)})
            self._learned_up_to = seq
            self._listing = Listing(self.run, self.log)  # the same numbers, other boxes, maybe more classes
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
        now = [states.get(pair, UNTOUCHED) for pair in self.items.pairs]
        open_items = [i for i, each in enumerate(now) if each.status == "open" and self.items.is_listed(i, each)]
        return {item: self.items.suggestion(item).objects[:1] for item in open_items}

    def export(self, request: Answer) -> Answer:
        """Write the boxes as they stand to a new folder under the run, by the exporters of `bagwise export`."""
        from bagwise.discovery.run.export import FORMATS
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


def _label(request: Answer) -> str:
    """The name of a class, as a person typed it."""
    value = request.get("to")
    label = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(label) <= LONGEST_LABEL or not label.isprintable():
        raise ReviewError(f"the name of a class must be a text of at most {LONGEST_LABEL} characters")
    return label


def _whole_number(request: Answer, name: str) -> int:
    value = request.get(name)
    if type(value) is not int:
        raise ReviewError(f"{name} must be a whole number")
    return value
