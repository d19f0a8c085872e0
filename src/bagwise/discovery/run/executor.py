"""Where a run's work is done: on the threads or processes of this machine, or on the workers of a Dask cluster.

All do the same tasks on the same blocks of data, one thread to a task, so the answer is the same to the bit.
"""

from __future__ import annotations

import ctypes
import sys
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from bagwise._utils.cluster import Cluster, scratch_folder
from bagwise._utils.progress import track
from bagwise._utils.threads import one_thread_from_now_on, one_thread_to_a_task
from bagwise.discovery.features.extraction_on_card import CORES_OF_THE_CARD, CardExtractor
from bagwise.discovery.features.remote import RemoteStore, is_url, place_of, publish_file
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.learn import learned
from bagwise.discovery.learning.models import ClassModel
from bagwise.discovery.run import shards
from bagwise.discovery.run.settings import Settings, default_jobs
from bagwise.discovery.run.tasks import LearnTask, UnseenTask, ask_about_unseen, learn
from bagwise.discovery.sources.imageset import ImageSet, Problem

# Threads are started at once and share all memory, but wait for Python's lock between compiled loops: a third of the
# time that it takes to find a class in an image. From this many on, that is longer than starting processes.
PROCESSES_FROM = 8
IDLE = 60  # seconds without work after which a process ends; the next task starts it again

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[FeatureStore, T], R]


class Executor(Protocol):
    """Fills the feature store of a run and maps work over tasks beside it."""

    store: FeatureStore
    network: str  # hash of the backbone's file

    def extract(self, images: ImageSet, say: Callable[[str], None], reduction_from: Path | None) -> list[Problem]:
        """Add every image that the store does not hold yet; return what was left out."""

    def map(self, work: Work[T, R], tasks: Sequence[T], what: str) -> list[R]:
        """Results of ``work(store, task)`` in the order of the tasks."""

    def learn(self, tasks: Sequence[LearnTask]) -> list[ClassModel]:
        """The classes, in the order of the tasks."""


def make_executor(
    folder: Path,
    settings: Settings,
    jobs: int | None,
    cluster: Cluster | None,
    store_at: str | None,
    processes: ProcessPoolExecutor | None = None,
) -> Executor:
    """This machine, with the processes that are started already, or the cluster when there is one."""
    if cluster is not None:
        return OnCluster(cluster, folder / "store", settings, store_at)
    return ThisMachine(folder / "store", settings, jobs or default_jobs(), processes)


def start_beside_card(device: str, jobs: int | None, cluster: Cluster | None) -> ProcessPoolExecutor | None:
    """Start processes that search for boxes beside a card; none where there is no card, or threads serve better."""
    if device == "cpu" or cluster is not None:
        return None
    processes = _processes(jobs or default_jobs(), spare=CORES_OF_THE_CARD)
    if processes is not None:
        processes.submit(one_thread_from_now_on)
    return processes


def _processes(jobs: int, spare: int = 0) -> ProcessPoolExecutor | None:
    """Processes for that many jobs but a few, which are started with the first task.

    loky's, as joblib has them: unlike those of the standard library they need no guard around the user's script.
    """
    if jobs < PROCESSES_FROM:
        return None
    return ProcessPoolExecutor(max(1, jobs - spare), timeout=IDLE, initializer=one_thread_from_now_on)


class ThisMachine:
    """Threads of this process; where there are many cores and much to do with what is stored, processes."""

    def __init__(self, path: Path, settings: Settings, jobs: int, processes: ProcessPoolExecutor | None = None) -> None:
        self._settings, self._jobs = settings, jobs
        self._processes = processes or _processes(jobs)
        self._features: Any = settings.make_features()
        self.network = self._features.backbone.sha256
        self.store = FeatureStore(path, settings.store_settings(self._features.backbone))

    def extract(self, images: ImageSet, say: Callable[[str], None], reduction_from: Path | None) -> list[Problem]:
        reduction = self.store.path / shards.REDUCTION
        if reduction_from is not None and self._settings.components and not reduction.exists():
            publish_file(reduction_from / shards.REDUCTION, str(self.store.path), shards.REDUCTION)
        extractor = self._settings.make_extractor(self._features, self._jobs)
        if isinstance(extractor, CardExtractor):
            extractor.search = self._processes
        with self.store:
            problems = extractor.fill(self.store, images.root, images.files)
        del extractor
        self._features = None
        _give_back_memory()
        return problems

    def map(self, work: Work[T, R], tasks: Sequence[T], what: str) -> list[R]:
        if self._processes is not None and len(tasks) > self._jobs:
            done = self._processes.map(partial(_in_process, self.store.path, work), tasks)
            return list(track(done, total=len(tasks), description=what))
        with one_thread_to_a_task(), ThreadPoolExecutor(self._jobs) as pool:
            done = pool.map(lambda task: work(self.store, task), tasks)
            return list(track(done, total=len(tasks), description=what))

    def learn(self, tasks: Sequence[LearnTask]) -> list[ClassModel]:
        if tasks and tasks[0].on_card:
            from bagwise.discovery.learning.on_card import fit_lessons

            self._ready_for_tasks()
            lessons, prior = [task.lesson(self.store) for task in tasks], tasks[0].prior
            with one_thread_to_a_task():  # what is left for this processor is small
                models = fit_lessons(self.store, lessons, prior)
            unseen = [
                UnseenTask(lesson, fold, model, prior)
                for lesson, made in zip(lessons, models)
                for fold, model in enumerate(made[1:])
            ]
            said = iter(self.map(ask_about_unseen, unseen, "learning"))
            return [
                learned(lesson, made, prior, [next(said) for _ in made[1:]]) for lesson, made in zip(lessons, models)
            ]
        return self.map(learn, tasks, "learning")

    def _ready_for_tasks(self) -> None:
        """Have each process import what tasks need, while the card learns: to search for boxes they needed less."""
        if self._processes is not None:
            for _ in range(self._jobs):
                self._processes.submit(_nothing)


def _nothing() -> None:
    """What a process can do only once it has imported this module, and so all that tasks need."""


def _in_process(store: Path, work: Work[T, R], task: T) -> R:
    # Opened for this task alone, which takes milliseconds: processes live on, and would hold the files open.
    return work(FeatureStore(store), task)


def _give_back_memory() -> None:
    """Return what the networks' threads have freed to the system: glibc keeps it, and learning needs room next."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


class OnCluster:
    """Workers of a Dask cluster, which see the store in a shared folder or at a URL."""

    def __init__(self, cluster: Cluster, folder: Path, settings: Settings, store_at: str | None) -> None:
        self._cluster, self._settings = cluster, settings
        self._place, self._folder = place_of(store_at or folder), folder
        self._run = uuid.uuid4().hex
        backbone = replace(settings, device="cpu").open_backbone()  # only its name is needed; cards are at the workers
        self.network = backbone.sha256
        self._store_settings = settings.store_settings(backbone)
        self.store = self._open()

    def _open(self) -> FeatureStore:
        """This process's own view of the store: the folder itself, or a mirror of what it needs of a URL."""
        if is_url(self._place):
            return RemoteStore(self._place, self._folder, self._store_settings)
        return FeatureStore(self._place, self._store_settings)

    def extract(self, images: ImageSet, say: Callable[[str], None], reduction_from: Path | None) -> list[Problem]:
        problems = shards.fill(self._cluster, self._place, self._settings, images, self.store, say, reduction_from)
        self.store = self._open()
        self.store.consolidate()
        return problems

    def learn(self, tasks: Sequence[LearnTask]) -> list[ClassModel]:
        return self.map(learn, tasks, "learning")

    def map(self, work: Work[T, R], tasks: Sequence[T], what: str) -> list[R]:
        jobs = [_Job(self._place, self._run, work, task) for task in tasks]
        done = track(self._cluster.map(_on_worker, jobs), total=len(jobs), description=what)
        results = {id(job): result for job, result in done}
        return [results[id(job)] for job in jobs]


@dataclass(frozen=True)
class _Job:
    """A task that travels, with what it is to be done with."""

    store: str
    run: str  # tells the stores of one command from those of the next
    work: Callable[[FeatureStore, Any], Any]
    task: Any


def _on_worker(job: _Job) -> Any:
    with one_thread_to_a_task():
        return job.work(_opened(job.store, job.run), job.task)


@lru_cache(maxsize=1)
def _opened(store: str, run: str) -> FeatureStore:
    return RemoteStore.for_now(store, scratch_folder()) if is_url(store) else FeatureStore(store)
