"""Damage led by coverage: what reached lines of bagwise that nothing had reached before is damaged further."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.mutations import damaged

import bagwise

SOURCE = str(Path(bagwise.__file__).parent)
MOST_KEPT = 64 * 1024  # bytes; longer files are not damaged further


class Reached:
    """Which steps from line to line of bagwise were taken: a tracer for `sys.settrace`."""

    def __init__(self) -> None:
        self.steps: set[tuple[int | None, int, str]] = set()
        self._last: int | None = None
        self._ours: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        ours = self._ours.get(file)
        if ours is None:
            ours = self._ours[file] = file.startswith(SOURCE)
        return self._line if ours else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        here = frame.f_lineno
        self.steps.add((self._last, here, frame.f_code.co_filename))
        self._last = here
        return self._line

    def run(self, function: Callable[..., bool], *arguments: Any) -> tuple[bool, bool]:
        """What the function gives for the arguments, and whether it took a step that none had taken."""
        before, self._last = len(self.steps), None
        sys.settrace(self)
        try:
            result = function(*arguments)
        finally:
            sys.settrace(None)
        return result, len(self.steps) > before


class Corpus:
    """Files to damage: the good one, and every damaged one that led somewhere new."""

    def __init__(self, good: bytes, rng: random.Random) -> None:
        self.files = [good]
        self._rng = rng

    def next(self) -> bytes:
        """A new damaged file."""
        good = self._rng.random() < 0.3
        return damaged(self.files[0] if good else self._rng.choice(self.files), self._rng)

    def keep(self, data: bytes) -> None:
        """Remember a file that led somewhere new."""
        if len(data) <= MOST_KEPT:
            self.files.append(data)
