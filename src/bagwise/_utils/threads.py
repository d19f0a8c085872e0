"""Work that is parallel over tasks, not inside them."""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from bagwise._utils.optional import require


@contextmanager
def one_thread_to_a_task() -> Iterator[None]:
    """Where linear algebra and image processing start no threads of their own.

    Sums are then taken in one order, so that the same run gives the same bits whatever the machine; and where as many
    tasks run as there are cores, threads inside them would only wait for one another.
    """
    cv2 = require("cv2", extra="vision")
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        cv2.setNumThreads(before)


def one_thread_from_now_on() -> None:
    """The same for the rest of a process that does nothing but such tasks."""
    require("cv2", extra="vision").setNumThreads(1)
    threadpool_limits(1)
