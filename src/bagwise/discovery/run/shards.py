"""Workers fill a feature store together, one shard each.

The store is a folder that all workers see, or any fsspec URL (s3://bucket/run, gs://...). A worker makes a shard in a
folder of its own and publishes it whole; a shard's number follows from the place of its images in the list, so that
doing it twice, or by two workers at once, leaves one shard with the same bytes. Images that are added later get new
numbers where those of their places are taken.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from bagwise._utils.cluster import Cluster, scratch_folder
from bagwise._utils.progress import track
from bagwise._utils.threads import one_thread_to_a_task
from bagwise.discovery.features.extraction import Extractor
from bagwise.discovery.features.remote import fetch_file, publish_file, publish_shard
from bagwise.discovery.features.store import IMAGES_PER_SHARD, FeatureStore
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.imageset import ImageSet, Problem

# Numbers of shards made here, so that they never meet those that one machine made in the same store.
FIRST_SHARD = 1_000_000
REDUCTION = "reduction.npz"


@dataclass(frozen=True)
class ShardTask:
    """Images whose boxes and features make up a shard."""

    store: str
    settings: Settings
    root: str
    files: tuple[str, ...]
    number: int


def fill(
    cluster: Cluster,
    store: str,
    settings: Settings,
    images: ImageSet,
    held: FeatureStore,
    say: Callable[[str], None],
    reduction_from: Path | None = None,
) -> list[Problem]:
    """Have workers add every image that the store does not hold yet.

    A new store reduces features as the one at ``reduction_from`` does; without that, a worker learns how.
    """
    waiting = np.flatnonzero(~held.holds(images.files))
    numbers = waiting // IMAGES_PER_SHARD
    tasks = []
    for place in np.unique(numbers):
        files = tuple(images.files.take(waiting[numbers == place]))
        tasks.append(ShardTask(store, settings, str(images.root), files, FIRST_SHARD + int(place)))
    # Images that came later may fall into places whose shards are there already: these get numbers of their own.
    taken = held.shard_numbers
    free = max(taken | {task.number for task in tasks}, default=FIRST_SHARD) + 1
    late = [task for task in tasks if task.number in taken]
    numbered = {id(task): replace(task, number=number) for number, task in enumerate(late, start=free)}
    tasks = [numbered.get(id(task), task) for task in tasks]
    if not tasks:
        return []
    if settings.components and not (held.path / REDUCTION).is_file():
        if reduction_from is not None:
            publish_file(reduction_from / REDUCTION, store, REDUCTION)
        else:
            say("one worker learns how to reduce the features")
            sample = ShardTask(store, settings, str(images.root), tuple(images.files), -1)
            for _ in cluster.map(learn_reduction, [sample]):
                pass
    found: dict[int, list[Problem]] = {}
    done = cluster.map(make_shard, tasks)
    for task, problems in track(done, total=len(tasks), description=f"shards of {IMAGES_PER_SHARD} images"):
        found[task.number] = problems
    return [problem for number in sorted(found) for problem in found[number]]


def learn_reduction(task: ShardTask) -> None:
    """On a worker: learn the reduction from a sample of all images, and publish it."""
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as folder, one_thread_to_a_task():
        extractor, store = _extractor(task.settings, task.store), _private_store(task, folder)
        extractor.fit_reduction(store, Path(task.root), task.files, [])
        publish_file(store.path / REDUCTION, task.store, REDUCTION)


def make_shard(task: ShardTask) -> list[Problem]:
    """On a worker: boxes and features of some images, published as one shard."""
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as folder:
        extractor, store = _extractor(task.settings, task.store), _private_store(task, folder)
        if task.settings.components:
            fetch_file(task.store, REDUCTION, store.path / REDUCTION)
        with store:
            problems = extractor.fill(store, Path(task.root), task.files)
        for shard in store.path.glob("shard-*"):  # none when no image could be read
            publish_shard(shard, task.store, f"shard-{task.number:05d}")
    return problems


@lru_cache(maxsize=2)
def _extractor(settings: Settings, store: str) -> Extractor:
    """Networks are opened once per process and store, whose reduction they carry.

    They use one thread, because the cluster runs one task per thread.
    """
    return settings.make_extractor(settings.make_features(), jobs=1)


def _private_store(task: ShardTask, folder: str) -> FeatureStore:
    backbone = _extractor(task.settings, task.store).features.backbone
    return FeatureStore(Path(folder) / "store", task.settings.store_settings(backbone))
