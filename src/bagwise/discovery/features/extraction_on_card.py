"""Proposals and features of many images with a graphics card: networks and averages there, the search for boxes here.

Windows of images pass three stages side by side: threads decode them, the networks see them on the card, threads or
processes search for boxes. What the networks said waits on the card until the boxes are known. One thread speaks to the
card, about many images at once, because threads that each launch hundreds of kernels spend their time handing Python's
lock around.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from bagwise.discovery.features.extraction import Done, Extractor, Half
from bagwise.discovery.features.on_card import CardRoiFeatures
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.regions import Prepared
from bagwise.discovery.proposals.edges_on_card import Padded
from bagwise.discovery.proposals.look import Look, Looker
from bagwise.discovery.proposals.look_on_card import CardLooker
from bagwise.discovery.sources.images import ImageError, read_image
from bagwise.discovery.sources.imageset import Problem

T = TypeVar("T")

WINDOW = 128  # images, among which few have a size of their own; their maps take a gigabyte of the card
READ_AHEAD = 2  # windows that are decoded before the card asks for them
SEARCHED_BESIDE = 2  # windows that are searched for boxes while the card is at later ones
CORES_OF_THE_CARD = 2  # are left to the thread that speaks to the card, and to the one that writes
READERS = 0.4  # of the jobs, where others search: decoding takes a tenth of the time that the search takes
WRITTEN_BESIDE = 2  # windows that are done and wait to be written


@dataclass(frozen=True)
class _Read:
    """A decoded image, and what the edge network is shown of it, if that runs on the card too."""

    image: np.ndarray
    ready: Padded | None = None


@dataclass(frozen=True)
class _Seen:
    """An image that the networks have seen, and whose boxes are being searched."""

    size: tuple[int, int]
    look: Future[Look]
    prepared: Prepared


class CardExtractor(Extractor):
    """An `Extractor` that uses a graphics card.

    Parameters
    ----------
    propose : Looker
    features : CardRoiFeatures
    components, jobs
        As of `Extractor`; the threads decode images and search for boxes.

    Attributes
    ----------
    search : Executor, optional
        Searches for boxes in place of the threads.
    """

    propose: Looker
    features: CardRoiFeatures
    search: Executor | None = None
    sample_bytes = 1_500_000_000  # these lie on the card

    def halves(self, root: Path, files: Sequence[str]) -> Iterator[tuple[str, Half | Problem]]:
        for window in self._windows(root, files, {}):
            yield from window

    def finished(self, root: Path, files: Sequence[str], kept: dict[str, Half]) -> Iterator[tuple[str, Done | Problem]]:
        for window in _ahead(map(self._finish, self._windows(root, files, kept)), WRITTEN_BESIDE):
            yield from window

    def fitted_to(self, sample: np.ndarray) -> Reduction:
        return Reduction.fit(sample, self.components, self.features.algebra)

    def _windows(
        self, root: Path, files: Sequence[str], kept: dict[str, Half]
    ) -> Iterator[list[tuple[str, Half | Problem]]]:
        """Images half done, some at a time, in order."""
        waiting = deque(list(files[start : start + WINDOW]) for start in range(0, len(files), WINDOW))
        read: deque[dict[str, Future[_Read | Problem]]] = deque()
        seen: deque[dict[str, _Seen | Problem]] = deque()
        threads = self.jobs - CORES_OF_THE_CARD if self.search is None else int(READERS * self.jobs)
        pool = ThreadPoolExecutor(max(1, threads))

        def taken() -> list[tuple[str, Half | Problem]]:
            done = {file: _half(each) for file, each in seen.popleft().items()}
            return [(file, done[file] if file in done else kept.pop(file)) for file in order.popleft()]

        order: deque[list[str]] = deque()
        try:
            while waiting or read:
                while waiting and len(read) < READ_AHEAD:
                    order.append(waiting.popleft())
                    new = [file for file in order[-1] if file not in kept]
                    read.append({file: pool.submit(self._read, root / file, file) for file in new})
                seen.append(self._see(pool, {file: each.result() for file, each in read.popleft().items()}))
                if len(seen) > SEARCHED_BESIDE:
                    yield taken()
            while seen:
                yield taken()
        finally:
            for each in chain.from_iterable(window.values() for window in seen):
                if isinstance(each, _Seen):
                    each.look.cancel()
            pool.shutdown(cancel_futures=True)

    def _read(self, path: Path, file: str) -> _Read | Problem:
        try:
            image = read_image(path)
        except ImageError as error:
            return Problem(file, str(error))
        return _Read(image, self.propose.ready(image) if isinstance(self.propose, CardLooker) else None)

    def _see(self, pool: ThreadPoolExecutor, images: dict[str, _Read | Problem]) -> dict[str, _Seen | Problem]:
        """Show images to the networks, and begin to search for their boxes."""
        readable = {file: image for file, image in images.items() if not isinstance(image, Problem)}
        pixels = [each.image for each in readable.values()]
        sizes = [(image.shape[1], image.shape[0]) for image in pixels]
        looks: list[Future[Look]]
        search = self.search or pool
        if isinstance(self.propose, CardLooker):
            ready = [each.ready for each in readable.values()]
            begun = self.propose.begin(ready)
            prepared = self.features.prepare_all(pixels)  # the card is busy with that while maps are copied
            maps = self.propose.finish(ready, begun)
            looks = [search.submit(self.propose.look, each, size) for each, size in zip(maps, sizes)]
        else:
            looks = [search.submit(self.propose, image) for image in pixels]
            prepared = self.features.prepare_all(pixels)
        seen = dict(zip(readable, map(_Seen, sizes, looks, prepared)))
        return {file: image if isinstance(image, Problem) else seen[file] for file, image in images.items()}

    def _finish(self, window: list[tuple[str, Half | Problem]]) -> list[tuple[str, Done | Problem]]:
        halves = [half for _, half in window if not isinstance(half, Problem)]
        finished = self.features.finish_all(
            [half.prepared for half in halves], [half.size for half in halves], [half.look.boxes for half in halves]
        )
        done = iter([Done(Half(half.size, half.look, ()), *vectors) for half, vectors in zip(halves, finished)])
        return [(file, half if isinstance(half, Problem) else next(done)) for file, half in window]


def _half(seen: _Seen | Problem) -> Half | Problem:
    return seen if isinstance(seen, Problem) else Half(seen.size, seen.look.result(), seen.prepared)


def _ahead(items: Iterable[T], count: int) -> Iterator[T]:
    """The items, of which some are made in a thread before they are asked for."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, iterator, end) for _ in range(count))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(thread.submit(next, iterator, end))
                yield item  # type: ignore[misc]
        finally:
            for future in waiting:
                future.cancel()
