"""One process at a time: locks that the system gives back when their holder ends, however it ends."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bagwise._utils.atomic import ASIDE

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"


class InUseError(ValueError):
    """Another process holds the lock; ``holder`` is its number, or "unknown"."""

    def __init__(self, holder: str):
        super().__init__(f"in use by another bagwise (process {holder})")
        self.holder = holder


def hold(path: Path) -> BaseFileLock:
    """Take the lock of this file name, making the file; it is held until ``release`` is called or the process ends.

    Raises
    ------
    InUseError
        When another process, or another part of this one, holds it.
    """
    from filelock import FileLock, Timeout

    # Beside the lock, not in it: on Windows nobody else can read a locked file.
    holder = path.with_name(f"{path.name}-holder")
    lock = FileLock(path, timeout=0, thread_local=False)  # a server is started and stopped by different threads
    try:
        lock.acquire()
    except Timeout:
        raise InUseError(_read(holder)) from None
    holder.write_text(str(os.getpid()), encoding="ascii")
    return lock


@contextmanager
def sole_use(folder: str | os.PathLike[str], *, sweep: bool = True) -> Iterator[Path]:
    """Hold a folder for this process, making it when it is not there.

    Parameters
    ----------
    folder : path
    sweep : bool, default True
        Clear away what a killed run left aside; not for a process of which other parts may be writing there.

    Raises
    ------
    ValueError
        When another process holds the folder.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    try:
        lock = hold(path / LOCK)
    except InUseError as error:
        raise ValueError(f"{path} is {error}: wait for it, or choose another folder") from None
    try:
        if sweep:
            _sweep(path)
        yield path
    finally:
        lock.release()


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="ascii").strip() or "unknown"
    except (OSError, UnicodeDecodeError):  # it has the lock and has not written its number yet
        return "unknown"


def _sweep(path: Path) -> None:
    """Delete files and folders that were being written when a run was killed."""
    for left in [*path.glob(f"{ASIDE}*"), *path.glob(f"*/{ASIDE}*")]:
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)
