"""Arrays of a store: numbers in 8 bits, and only so many arrays open at a time, because each keeps a file open."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

import numpy as np

FEWEST, MOST = 128, 4096


class OpenArrays:
    """Memory-mapped arrays of shards; those that were not asked for longest are closed.

    Parameters
    ----------
    most : int, optional
        How many stay open; by default half of the files that the system lets a process open.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = half_of_the_files() if most is None else most
        self._open: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, shard: str, name: str, read: Callable[[str, str], np.ndarray]) -> np.ndarray:
        """An array of a shard, which ``read(shard, name)`` opens."""
        key = (shard, name)
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        array = read(shard, name)  # may fetch it from far away: others need not wait
        with self._lock:
            self._open[key] = array
            while len(self._open) > self._most:
                self._open.popitem(last=False)
        return array


def half_of_the_files() -> int:
    """Half of the files that a process may have open, within reason."""
    try:
        import resource
    except ModuleNotFoundError:  # only POSIX systems have it
        return MOST
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if allowed == resource.RLIM_INFINITY else min(MOST, max(FEWEST, allowed // 2))


def quantise(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows as 8-bit integers times one scale each.

    Returns
    -------
    values : int8 array (n, d)
    scales : float32 array (n,)
    """
    largest = np.abs(features).max(axis=1, initial=0)
    scales = (np.where(largest > 0, largest, 1.0) / 127).astype(np.float32)
    return np.rint(features / scales[:, None]).astype(np.int8), scales
