"""All items of a review in brief, as the text that a page loads first.

The text is kept ready item by item, and compressed in pieces; only what was decided since is written anew. Opening a
window on fifty thousand images costs milliseconds and sends a tenth of the bytes, and nobody who is deciding meanwhile
has to wait for it.
"""

import json
import threading
from typing import Any

from bagwise._utils.words import confidence_in_words
from bagwise.discovery.run.folder import RunFolder
from bagwise.review.compressed import Piece, compressed
from bagwise.review.decisions import STATUSES, ItemState, Pair
from bagwise.review.items import Items
from bagwise.review.log import DecisionLog

ROWS_PER_PIECE = 256
STATUS_CODE = {status: code for code, status in enumerate(STATUSES)}


class Listing:
    """One row per item: image number, class number, confidence, status, version, whether a person changed the boxes,
    the first box (or nothing), the confidence in words, and whether the image has the label.

    Parameters
    ----------
    run : RunFolder
    log : DecisionLog

    Attributes
    ----------
    items : Items
        What the run and the log have to check. Labels that are added later get their numbers by `number`.
    """

    def __init__(self, run: RunFolder, log: DecisionLog):
        self.items = items = Items(run, log.pairs_given())
        self._log = log
        self._lock = threading.Lock()
        self.images = compressed(as_json([list(values) for values in zip(items.files, items.width, items.height)]))
        self._write_all()

    def row(self, item: int, state: ItemState) -> list[Any]:
        """The row of an item in this state."""
        confidence = self.items.confidence(item)
        return [
            self.items.image_id[item],
            self.items.label_index[item],
            round(confidence, 4),
            STATUS_CODE[state.status],
            state.version,
            int(state.boxes is not None),
            self.items.first_shown(item, state),
            confidence_in_words(confidence),
            int(self.items.is_listed(item, state)),
        ]

    def number(self, pair: Pair) -> int | None:
        """The item of a pair, made now if a person has just added the label; None for what is not in this run."""
        if pair not in self.items.number and self._log.state(pair).added:
            with self._lock:
                self._add_given()
        return self.items.number.get(pair)

    def _add_given(self) -> None:
        """Number the labels that were added since, in the log's order, so that a restart gives the same numbers."""
        for pair in self._log.pairs_given():
            if self.items.has_image(pair[0]):
                self.items.add(pair)
        for item in range(len(self._rows), len(self.items)):
            self._rows.append(self._text(item))
            self._stale.add(item // ROWS_PER_PIECE)

    def _text(self, item: int) -> str:
        return as_json(self.row(item, self._log.state(self.items.pairs[item])))

    def _write_all(self) -> None:
        self._times_taken_back = self._log.times_taken_back
        self._up_to = self._log.seq
        self._rows = [self._text(item) for item in range(len(self.items))]
        self._pieces: dict[int, Piece] = {}
        self._stale = set(range(-(-len(self._rows) // ROWS_PER_PIECE)))
        self._compress()

    def _compress(self) -> None:
        for number in sorted(self._stale):
            start = number * ROWS_PER_PIECE
            rows = ",".join(self._rows[start : start + ROWS_PER_PIECE])
            self._pieces[number] = compressed(rows if number == 0 else f",{rows}")
        self._stale.clear()

    def rows(self) -> tuple[int, list[Piece]]:
        """The line of the log up to which the rows tell everything, and the rows in pieces."""
        with self._lock:
            # Before what it is about: a decision made meanwhile is then told again, not missed.
            seq = self._log.seq
            if self._times_taken_back != self._log.times_taken_back:
                self._write_all()
            self._add_given()
            for pair, state in self._log.changed_since(self._up_to):
                item = self.items.number.get(pair)
                if item is not None:
                    self._rows[item] = as_json(self.row(item, state))
                    self._stale.add(item // ROWS_PER_PIECE)
            self._up_to = seq
            self._compress()
            return seq, list(self._pieces.values())


def as_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
