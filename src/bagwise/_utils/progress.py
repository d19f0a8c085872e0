"""Progress for long work: a bar on a terminal or in a notebook, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from importlib.util import find_spec
from typing import TypeVar

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_BARS = 0.5


def track(items: Iterable[T], *, description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, showing on stderr how far we are.

    A terminal gets a bar with the time left (where rich is installed), and so does a notebook, in plain characters; a
    log or a pipe gets a line every ten seconds, so that a file is not filled with control characters.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            yield from bar.track(items, total=total, description=description)
        return
    if _in_notebook() and total:
        yield from _notebook_bar(items, total, description)
        return
    yield from _plain_lines(items, total, description)


def _in_notebook() -> bool:
    """Whether this code runs in a notebook's kernel; that a package was imported says nothing."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _notebook_bar(items: Iterable[T], total: int, description: str) -> Iterator[T]:
    """A line that is written over: notebooks understand the carriage return."""
    first = last = time.monotonic()
    print(f"\r{description} {_bar(0, total)}", end="", file=sys.stderr, flush=True)
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_BARS or done == total:
            last = now
            left = (now - first) / done * (total - done)
            told = f"{left:.0f} s left " if done < total else f"{now - first:.0f} s      "
            print(f"\r{description} {_bar(done, total)}, {told}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr, flush=True)


def _bar(done: int, total: int, width: int = 30) -> str:
    full = width * done // total
    return f"[{'#' * full}{'.' * (width - full)}] {done}/{total}"


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
