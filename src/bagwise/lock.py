"""One run at a time in a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bagwise.atomic import ASIDE

LOCK = ".lock"


@contextmanager
def sole_use(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Hold a folder for this process, making it when it is not there, and clear away what a killed run left aside.

    The system gives the lock back when the process ends, however it ends: nothing is left to be removed by hand.

    Raises
    ------
    ValueError
        When another process holds the folder.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK).open("a+", encoding="ascii") as file:
        if not _try_lock(file):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ValueError(
                f"{path} is in use by another bagwise (process {holder}): wait for it, or choose another folder"
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        _sweep(path)
        yield path


def _sweep(path: Path) -> None:
    """Delete files and folders that were being written when a run was killed."""
    for left in [*path.glob(f"{ASIDE}*"), *path.glob(f"*/{ASIDE}*")]:
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)


def _try_lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        lock = lambda: msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined] # noqa: E731
    else:
        lock = lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # noqa: E731
    try:
        lock()
    except OSError:
        return False
    return True
