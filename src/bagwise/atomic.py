"""Files that appear whole or not at all: written beside their place, then renamed into it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# How the names of files begin that are still being written.
ASIDE = ".writing-"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the folder of ``path``; rename it to ``path`` when the block ends well.

    A reader never sees half a file, and a crash leaves the former file as it was.

    Examples
    --------
    >>> with replacing("notes.txt") as aside:  # doctest: +SKIP
    ...     aside.write_text("all of it")
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=ASIDE, suffix=target.suffix, dir=target.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        with open(aside, "rb+") as file:
            os.fsync(file.fileno())  # so that a power cut does not leave an empty file behind the new name
        aside.chmod(0o666 & ~_umask())  # mkstemp makes private files; ours are as public as any other
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically, with the same line ends on every system."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value
