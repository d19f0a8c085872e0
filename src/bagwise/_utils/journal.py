"""Results kept one JSON object per line, each safe on disk before the next is begun."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def appending(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that adds an object to the file; a line that a crash left half written is ended first."""
    with path.open("a+b") as log:
        if log.seek(0, os.SEEK_END) > 0:
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(b"\n")

        def add(entry: dict[str, Any]) -> None:
            log.write(json.dumps(entry).encode() + b"\n")
            log.flush()
            os.fsync(log.fileno())

        yield add


def read_journal(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers and objects of the file, if there is one; lines that a crash cut short do not count."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            yield number, json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            continue
