"""Progress for long work: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 10.0


def track(items: Iterable[T], *, description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, showing on stderr how far we are.

    A terminal gets a bar with the time left; a log or a pipe gets a line every ten seconds,
    so that a file is not filled with control characters.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            yield from bar.track(items, total=total, description=description)
        return
    yield from _plain_lines(items, total, description)


def _plain_lines(items: Iterable[T], total: int | None, description: str) -> Iterator[T]:
    first = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if done == 1:
            first = now  # loops are compiled for the first item, so its time says nothing about the others
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            of = f"/{total}" if total else ""
            left = f", about {(now - first) / (done - 1) * (total - done):.0f} s left" if total and done > 1 else ""
            print(f"{description}: {done}{of}{left}", file=sys.stderr, flush=True)
