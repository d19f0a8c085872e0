"""Discovery on a cluster: workers make shards of the feature store and learn classes beside it.

The store is a folder that all workers see, or any fsspec URL (s3://bucket/run, gs://...). A worker makes a shard in a
folder of its own and publishes it whole; a shard's number follows from the place of its photographs in the list, so
that doing it twice, or by two workers at once, leaves one shard with the same bytes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from bagwise.atomic import ASIDE
from bagwise.cluster import Cluster, scratch_folder
from bagwise.progress import track

from .extraction import Extractor
from .imageset import ImageSet, Problem
from .learning import ClassModel, Objectness, Recipe, examples, learn_class
from .localize import FILES_AT_ONCE, Answer, Rivals, files_with, localize, rivals_of
from .remote import RemoteStore, file_system, is_url
from .settings import Settings
from .store import IMAGES_PER_SHARD, FeatureStore

# Numbers of shards made here, so that they never meet those that one machine made in the same store.
FIRST_SHARD = 1_000_000
REDUCTION = "reduction.npz"


@dataclass(frozen=True)
class ShardTask:
    """Photographs whose boxes and features make up a shard."""

    store: str
    settings: Settings
    root: str
    files: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class LearnTask:
    """A class to be learnt: names of photographs, and where their features are."""

    store: str
    run: str  # tells the stores of one command from those of the next
    recipe: Recipe
    label: str
    examples: ImageSet
    prior: Objectness
    device: str


@dataclass(frozen=True)
class FindTask:
    """Photographs in which some classes are to be found; see `localize`."""

    store: str
    run: str
    models: tuple[ClassModel, ...]
    files: tuple[str, ...]
    rivals: Rivals | None
    max_objects: int
    at_least: float


def fill(
    cluster: Cluster,
    store: str,
    settings: Settings,
    images: ImageSet,
    held: FeatureStore,
    say: Callable[[str], None],
    reduction_from: Path | None = None,
) -> list[Problem]:
    """Have workers add every photograph that the store does not hold yet.

    A new store reduces features as the one at ``reduction_from`` does; without that, a worker learns how.
    """
    groups = [images.files[i : i + IMAGES_PER_SHARD] for i in range(0, len(images.files), IMAGES_PER_SHARD)]
    tasks = []
    for number, group in enumerate(groups, start=FIRST_SHARD):
        waiting = tuple(file for file in group if file not in held)
        if waiting:
            tasks.append(ShardTask(store, settings, str(images.root), waiting, number))
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
    for task, problems in track(done, total=len(tasks), description=f"shards of {IMAGES_PER_SHARD} photographs"):
        found[task.number] = problems
    return [problem for number in sorted(found) for problem in found[number]]


def learn_reduction(task: ShardTask) -> None:
    """On a worker: learn the reduction from a sample of all photographs, and publish it."""
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as folder, threadpool_limits(1):
        extractor, store = _extractor(task.settings, task.store), _private_store(task, folder)
        extractor.fit_reduction(store, Path(task.root), task.files, [])
        publish_file(store.path / REDUCTION, task.store, REDUCTION)


def make_shard(task: ShardTask) -> list[Problem]:
    """On a worker: boxes and features of some photographs, published as one shard."""
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as folder:
        extractor, store = _extractor(task.settings, task.store), _private_store(task, folder)
        if task.settings.components:
            fetch_file(task.store, REDUCTION, store.path / REDUCTION)
        with store:
            problems = extractor.fill(store, Path(task.root), task.files)
        for shard in store.path.glob("shard-*"):  # none when no photograph could be read
            publish_shard(shard, task.store, f"shard-{task.number:05d}")
    return problems


@lru_cache(maxsize=2)
def _extractor(settings: Settings, store: str) -> Extractor:
    """Networks are opened once per process and store, whose reduction they carry.

    They use one thread, because the cluster runs one task per thread.
    """
    return Extractor(settings.make_proposer(), settings.make_features(), components=settings.components, jobs=1)


def _private_store(task: ShardTask, folder: str) -> FeatureStore:
    backbone = _extractor(task.settings, task.store).features.backbone
    return FeatureStore(Path(folder) / "store", task.settings.store_settings(backbone))


def learn(
    cluster: Cluster,
    store: str,
    run: str,
    held: FeatureStore,
    settings: Settings,
    images: ImageSet,
    classes: Sequence[str],
    prior: Objectness,
) -> list[ClassModel]:
    """Have workers learn the classes; models in their order."""
    tasks = []
    for label in classes:
        chosen = set().union(*examples(images, held, label, settings.recipe.seed))
        shown = _subset(images, chosen)
        tasks.append(LearnTask(store, run, settings.recipe, label, shown, prior, settings.device))
    done = track(cluster.map(learn_on_worker, tasks), total=len(tasks), description="learning")
    models = {task.label: model for task, model in done}
    return [models[label] for label in classes]


def find(
    cluster: Cluster,
    store: str,
    run: str,
    held: FeatureStore,
    settings: Settings,
    images: ImageSet,
    models: Sequence[ClassModel],
) -> list[Answer]:
    """Have workers find each class where it is known to be; answers in the order of the models."""
    tasks = []
    for model in models:
        rivals = rivals_of(images, models, model.label) if settings.rivalry else None
        for part in _parts(files_with(images, held, model.label)):
            near = None if rivals is None else {file: rivals[file] for file in part if file in rivals}
            tasks.append(FindTask(store, run, (model,), part, near, settings.max_objects, 0.0))
    return _found(cluster, tasks)


def search(
    cluster: Cluster,
    store: str,
    run: str,
    settings: Settings,
    files: Sequence[str],
    models: Sequence[ClassModel],
    at_least: float,
) -> list[Answer]:
    """Have workers find all classes in photographs that nobody labelled; answers in the order of the photographs."""
    parts = _parts(files)
    return _found(
        cluster, [FindTask(store, run, tuple(models), part, None, settings.max_objects, at_least) for part in parts]
    )


def _parts(files: Sequence[str]) -> list[tuple[str, ...]]:
    """Photographs in parts, cut where `localize` cuts: sums are then taken over the same blocks as on one machine."""
    return [tuple(files[i : i + FILES_AT_ONCE]) for i in range(0, len(files), FILES_AT_ONCE)]


def _found(cluster: Cluster, tasks: list[FindTask]) -> list[Answer]:
    done = track(cluster.map(find_on_worker, tasks), total=len(tasks), description="localising")
    answers = {id(task): found for task, found in done}
    return [answer for task in tasks for answer in answers[id(task)]]


def learn_on_worker(task: LearnTask) -> ClassModel:
    """Learn one class beside the data."""
    with threadpool_limits(1):  # sums in one order, as on one machine
        store = _opened(task.store, task.run)
        return learn_class(task.examples, store, task.label, task.recipe, task.prior, task.device)


def find_on_worker(task: FindTask) -> list[Answer]:
    """Find classes in some photographs, beside the data."""
    store = _opened(task.store, task.run)
    find_class = partial(localize, store, rivals=task.rivals, max_objects=task.max_objects, at_least=task.at_least)
    with threadpool_limits(1):
        return [answer for model in task.models for answer in find_class(model, task.files)]


def _subset(images: ImageSet, chosen: set[str]) -> ImageSet:
    """The photographs that a class is learnt from: what travels must not grow with the collection."""
    rows = [i for i, file in enumerate(images.files) if file in chosen]
    return ImageSet(
        images.root,
        [images.files[i] for i in rows],
        [images.labels[i] for i in rows],
        kind=images.kind,
        unsure=[images.unsure[i] for i in rows],
    )


@lru_cache(maxsize=1)
def _opened(store: str, run: str) -> FeatureStore:
    return RemoteStore.for_now(store, scratch_folder()) if is_url(store) else FeatureStore(store)


def publish_shard(shard: Path, store: str, name: str) -> None:
    """Copy a finished shard to the store, whole or not at all."""
    if is_url(store):
        system, root = file_system(store)
        # A shard counts from the moment its index is there, so that goes last.
        for file in sorted(shard.iterdir(), key=lambda path: path.name == "index.parquet"):
            system.put_file(str(file), f"{root}/{name}/{file.name}")
        return
    target = Path(store) / name
    aside = Path(tempfile.mkdtemp(prefix=ASIDE, dir=store))
    try:
        shutil.copytree(shard, aside, dirs_exist_ok=True)
        aside.chmod(0o755)
        aside.rename(target)
    except OSError:
        if not (target / "index.parquet").is_file():
            raise
        # Another worker, taken for dead, was faster: its shard is the same.
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def publish_file(file: Path, store: str, name: str) -> None:
    """Copy a file to the store, whole or not at all."""
    if is_url(store):
        system, root = file_system(store)
        system.put_file(str(file), f"{root}/{name}")
        return
    from bagwise.atomic import replacing

    with replacing(Path(store) / name) as aside:
        shutil.copyfile(file, aside)


def fetch_file(store: str, name: str, target: Path) -> None:
    """Copy a file of the store to this machine."""
    system, root = file_system(store)
    system.get_file(f"{root}/{name}", str(target))


def open_held(store: str, folder: Path, settings: dict[str, Any]) -> FeatureStore:
    """The client's own view of the store: the folder itself, or a mirror of what it needs of a URL."""
    if not is_url(store):
        return FeatureStore(store, settings)
    return RemoteStore(store, folder, settings)
