"""Proposals and features of many images, into a store: in parallel, resumable, in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from bagwise._utils.progress import track
from bagwise._utils.threads import one_thread_to_a_task
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.regions import Features, Prepared
from bagwise.discovery.features.store import FeatureStore, Maps
from bagwise.discovery.proposals.look import Look
from bagwise.discovery.sources.images import ImageError, read_image
from bagwise.discovery.sources.imageset import Problem

R = TypeVar("R")

# The reduction is learned from the boxes of some images, spread over the set, whose half-finished work is kept
# in memory for the main pass.
SAMPLE_IMAGES = 160
BOXES_PER_SAMPLE = 48


class Proposer(Protocol):
    """An image in; boxes (n, 4) and their objectness (n,) out, or a `Look`, which has maps too."""

    def __call__(self, image: np.ndarray) -> Look | tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Half:
    """An image half done: what was seen, and what the network says of it."""

    size: tuple[int, int]
    look: Look
    prepared: Prepared


@dataclass(frozen=True)
class Done:
    """An image ready for the store."""

    half: Half
    features: np.ndarray
    cells: np.ndarray


class Extractor:
    """Fills a store.

    Parameters
    ----------
    propose : Proposer
    features : Features
    components : int
        Columns of the reduced features; 0 keeps them as they are.
    jobs : int
        Threads. The networks and the search for boxes leave Python's lock alone while they work.
    """

    sample_bytes = 200_000_000  # of the sample's half-finished work that are kept

    def __init__(self, propose: Proposer, features: Features, *, components: int, jobs: int) -> None:
        self.propose = propose
        self.features = features
        self.components = components
        self.jobs = jobs

    def fill(self, store: FeatureStore, root: Path, files: Sequence[str]) -> list[Problem]:
        """Add every file that the store does not hold yet; return those that could not be read, and why."""
        waiting = [file for file, held in zip(files, store.holds(files)) if not held]
        if not waiting:
            return []
        problems: list[Problem] = []
        with one_thread_to_a_task():
            kept = self.fit_reduction(store, root, files, problems)
            broken = {problem.file for problem in problems}
            todo = [file for file in waiting if file not in broken]
            steps = track(self.finished(root, todo, kept), total=len(todo), description="boxes and features")
            for file, done in steps:
                if isinstance(done, Problem):
                    problems.append(done)
                else:
                    look = done.half.look
                    maps = Maps(done.cells, look.edges, look.figure)
                    store.write(file, done.half.size, look.boxes, look.objectness, done.features, maps)
            store.flush()
        return problems

    def halves(self, root: Path, files: Sequence[str]) -> Iterator[tuple[str, Half | Problem]]:
        """Images half done, in order."""
        return ordered_map(lambda file: self._half(root, file), files, self.jobs)

    def finished(self, root: Path, files: Sequence[str], kept: dict[str, Half]) -> Iterator[tuple[str, Done | Problem]]:
        """Images ready for the store, in order; what is ``kept`` is half done already, and taken from there."""

        def work(file: str) -> Done:
            half = kept.pop(file, None) or self._half(root, file)
            done = Done(half, *self.features.finish(half.prepared, half.size, half.look.boxes))
            return replace(done, half=replace(half, prepared=()))

        return ordered_map(work, files, self.jobs)

    def _half(self, root: Path, file: str) -> Half:
        image = read_image(root / file)
        seen = self.propose(image)
        look = seen if isinstance(seen, Look) else Look(*seen)
        height, width = image.shape[:2]
        return Half((width, height), look, self.features.prepare(image, look.boxes))

    def fitted_to(self, sample: np.ndarray) -> Reduction:
        """The reduction learned from the averages of a sample of boxes; see `Reduction.fit`."""
        return Reduction.fit(sample, self.components)

    def fit_reduction(
        self, store: FeatureStore, root: Path, files: Sequence[str], problems: list[Problem]
    ) -> dict[str, Half]:
        """Load or learn the reduction; return the work done on the way that the store still lacks."""
        kept: dict[str, Half] = {}
        file = store.path / "reduction.npz"
        if self.components == 0:
            return kept
        if file.is_file():
            self.features.reduction = Reduction.load(file)
            return kept
        spread = _spread(list(files), SAMPLE_IMAGES)
        samples, size = [], 0
        steps = self.halves(root, spread)
        for name, half in track(steps, total=len(spread), description="a sample for the reduction"):
            if isinstance(half, Problem):
                problems.append(half)
                continue
            rows = _spread(np.arange(len(half.look.boxes)), BOXES_PER_SAMPLE)
            samples.append(self.features.averages(half.prepared, half.size, half.look.boxes, rows))
            size += sum(each.nbytes for each in half.prepared)
            if name not in store and size < self.sample_bytes:
                kept[name] = half
        if not samples:
            raise ValueError(f"none of the first {len(spread)} images could be read: {problems[0].reason}")
        sample = np.concatenate(samples)
        samples.clear()  # memory is fullest here
        self.features.reduction = self.fitted_to(sample)
        self.features.reduction.save(file)
        return kept


def ordered_map(function: Callable[[str], R], files: Iterable[str], jobs: int) -> Iterator[tuple[str, R | Problem]]:
    """Apply a function to files in threads; results in the order of the files, few of them waiting at a time.

    An image that cannot be read becomes a `Problem`; any other error ends the work.
    """

    def attempt(file: str) -> R | Problem:
        try:
            return function(file)
        except ImageError as error:
            return Problem(file, str(error))

    running: deque[tuple[str, Future[R | Problem]]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for file in files:
                running.append((file, pool.submit(attempt, file)))
                if len(running) > 2 * jobs:
                    first, future = running.popleft()
                    yield first, future.result()
            while running:
                first, future = running.popleft()
                yield first, future.result()
        finally:
            for _, future in running:
                future.cancel()


def _spread(items: Any, count: int) -> Any:
    """At most ``count`` of the items, evenly spaced."""
    if len(items) <= count:
        return items
    rows = np.linspace(0, len(items) - 1, count).round().astype(int)
    return [items[i] for i in rows] if isinstance(items, list) else items[rows]
