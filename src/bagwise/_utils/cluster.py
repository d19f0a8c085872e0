"""Work spread over the processes of a Dask cluster.

Tasks are small (a path, a name) and so are their results; whatever is large lies on storage that all workers see.
A task whose worker is lost is done again by another one, so tasks must write their files whole or not at all.
"""

from __future__ import annotations

import logging
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from bagwise._utils.optional import require

T = TypeVar("T")
R = TypeVar("R")

SECONDS_TO_CONNECT = 30
SECONDS_BETWEEN_LOOKS = 1.0
TASKS_PER_THREAD = 3  # enough that no thread waits for work, few enough that the scheduler keeps few
SILENT_AFTER = 20.0  # seconds without a heartbeat after which a worker is spoken of


class ClusterError(OSError):
    """The cluster cannot be reached, or was lost."""


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def open_cluster(
    address: str | None = None, workers: int | None = None, say: Callable[[str], None] = _to_stderr
) -> Iterator[Cluster]:
    """Connect to a scheduler, or start workers on this machine for as long as the block lasts.

    Parameters
    ----------
    address : such as "tcp://host:8786"
    workers : number of processes to start when there is no address
    say : gets a line of text when workers come or go
    """
    distributed = require("distributed", extra="cluster")
    if address is None:
        local = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
        )
        with local, distributed.Client(local) as client:
            yield Cluster(client, say)
        return
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({error}): start one, or check the address"
        ) from error
    with client:
        yield Cluster(client, say)


def scratch_folder() -> str | None:
    """On a worker its own folder for files of the moment, else None (where all temporary files go).

    Dask takes the folder away when the worker ends; that of a worker which was killed goes when the next one starts
    beside it.
    """
    distributed = require("distributed", extra="cluster")
    try:
        return distributed.get_worker().local_directory
    except ValueError:  # not on a worker
        return None


class Cluster:
    """A connection to a Dask scheduler; see `open_cluster`."""

    def __init__(self, client: Any, say: Callable[[str], None] = _to_stderr) -> None:
        self._client, self._say = client, say
        self._workers: set[str] = set()
        self._silent: set[str] = set()
        self._look()
        if not self._workers:
            client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
            self._look()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
        """Apply a function to items on the workers; yield each item and its result as they are finished.

        An error of the function ends the map. A task that loses its worker is done again by another one.
        """
        distributed = require("distributed", extra="cluster")
        waiting = iter(items)
        running: dict[Any, T] = {}
        name = f"{function.__module__}.{function.__qualname__}-{uuid.uuid4().hex[:8]}"
        number = 0
        try:
            while True:
                room = TASKS_PER_THREAD * max(1, sum(self._threads.values())) - len(running)
                for _, item in zip(range(room), waiting):
                    future = self._client.submit(function, item, key=f"{name}-{number}", pure=False)
                    running[future] = item
                    number += 1
                if not running:
                    self._look()
                    return
                with suppress(TimeoutError):
                    distributed.wait(list(running), timeout=SECONDS_BETWEEN_LOOKS, return_when="FIRST_COMPLETED")
                if time.monotonic() - self._looked >= SECONDS_BETWEEN_LOOKS:
                    self._look()
                for future in [future for future in running if future.done()]:
                    yield running[future], self._result(future)
                    del running[future]
        finally:
            self._client.cancel(list(running), force=True)

    def _result(self, future: Any) -> Any:
        distributed = require("distributed", extra="cluster")
        if future.status == "cancelled" or future.status == "lost":
            raise ClusterError(
                "the scheduler was lost: finished work is kept, and the same command resumes when it is back"
            )
        try:
            return future.result()
        except distributed.scheduler.KilledWorker as error:
            raise ClusterError(
                f"one task ended every worker that tried it, for want of memory perhaps: see their logs ({error})"
            ) from error

    def _look(self) -> None:
        """See which workers are there, and say what has changed."""
        if self._client.status != "running":
            raise ClusterError(
                "the scheduler was lost: finished work is kept, and the same command resumes when it is back"
            )
        known = self._client.scheduler_info(n_workers=-1)
        found = known["workers"]
        self._looked = time.monotonic()
        self._threads = {address: worker["nthreads"] for address, worker in found.items()}
        for address in sorted(self._workers - found.keys()):
            self._say(f"worker {address} was lost; what it had in hand is done again by the others")
        for address in sorted(found.keys() - self._workers):
            self._say(f"worker {address} joined")
        newest = max((worker["last_seen"] for worker in found.values()), default=0.0)
        silent = {address for address, worker in found.items() if newest - worker["last_seen"] > SILENT_AFTER}
        for address in sorted(silent - self._silent):
            self._say(f"worker {address} has not been heard of for {SILENT_AFTER:.0f} seconds")
        for address in sorted((self._silent - silent) & found.keys()):
            self._say(f"worker {address} is back")
        if self._workers and not found:
            self._say("no worker is left: the work resumes when one joins")
        self._workers, self._silent = set(found), silent
