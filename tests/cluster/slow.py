"""Work for workers in tests: slow enough to be interrupted, and leaving a trace of every time it is done."""

import os
import time
import uuid
from pathlib import Path


def square(item):
    """(folder, number, seconds) -> number squared; adds a file to the folder for each time it is finished."""
    folder, number, seconds = item
    time.sleep(seconds)
    (Path(folder) / f"{number}-{os.getpid()}-{uuid.uuid4().hex[:6]}").touch()
    return number * number


def refuse(item):
    """Fails."""
    raise ValueError(f"item {item} is not wanted")


def end_worker(item):
    """Kills its process, as running out of memory would."""
    os._exit(1)
