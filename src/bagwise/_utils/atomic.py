"""Files and folders that appear whole or not at all: written beside their place, then renamed into it.

What is renamed has reached the disk before, and the new name reaches it before the writer continues: neither a crash
nor a power cut leaves an empty or half-written file behind a name that counts.
"""

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

# How the names of files begin that are still being written.
ASIDE = ".writing-"

# On Windows a file that a virus scanner or an indexer is reading cannot be replaced; they let go soon.
PATIENCE = (0.01, 0.05, 0.2, 0.5, 1.0) if sys.platform == "win32" else ()

# File systems write what is asked for at the same time in one go: a folder of many files is ten times faster so.
SYNCED_AT_ONCE = 16


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; rename it to ``path`` when the block ends well.

    A reader never sees half a file, and a crash leaves the former file as it was.

    Examples
    --------
    >>> with replacing("notes.txt") as aside:  # doctest: +SKIP
    ...     aside.write_text("all of it")
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _name_aside(target.parent, target.suffix)
    aside.touch(exist_ok=False)  # as public as any other file: the system takes the umask off
    try:
        yield aside
        _to_disk(aside)
        _rename(aside, target)
    except OSError as error:
        _tell(error, target)
        raise
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; rename it to ``path`` when the block ends well.

    There must not be a folder of that name yet.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = _name_aside(target.parent)
    aside.mkdir()
    try:
        yield aside
        inside = [path for path in aside.rglob("*") if not path.is_symlink()]  # what a link leads to is not ours
        with ThreadPoolExecutor(SYNCED_AT_ONCE) as pool:
            list(pool.map(_to_disk, inside))
        sync_folder(aside)
        _rename(aside, target)
    except OSError as error:
        _tell(error, target)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically, with the same line ends on every system."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def sync_folder(path: Path) -> None:
    """See to it that the names in a folder survive a power cut, where a system lets folders be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tell(error: OSError, target: Path) -> None:
    """Make a sentence of NumPy's "4560 requested and 3968 written"; other errors say themselves what is wrong."""
    if error.errno is None and " requested and " in str(error):
        text = f"{target} could not be written whole ({error}): is there no space left on its disk?"
        raise OSError(text) from error


def _name_aside(folder: Path, suffix: str = "") -> Path:
    return folder / f"{ASIDE}{secrets.token_hex(6)}{suffix}"


def _to_disk(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    # Windows flushes only what it may write; elsewhere reading will do, also for links to files that are read-only.
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename(aside: Path, target: Path) -> None:
    for wait in PATIENCE:
        try:
            os.replace(aside, target)
            break
        except PermissionError:
            time.sleep(wait)
    else:
        os.replace(aside, target)
    sync_folder(target.parent)
