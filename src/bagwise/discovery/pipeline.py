"""From labelled photographs to a run folder, and from a run to boxes in photographs that nobody labelled."""

import ctypes
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import bagwise
from bagwise.cluster import Cluster
from bagwise.lock import sole_use
from bagwise.progress import track

from . import scaleout
from .extraction import Extractor
from .imageset import ImageSet, Problem
from .learning import OBJECTNESS_ALONE, RMI, ClassModel, Objectness, check_method, learn_class
from .localize import Answer, files_with, localize, rivals_of
from .remote import place_of
from .runfolder import RunFolder, safe_name
from .runmodels import load_models
from .settings import Settings, default_jobs
from .snapshots import STEPS, snapshots_of_class
from .sources import read_source, read_unlabelled
from .store import FeatureStore

UNLABELLED_CONFIDENCE = 0.5  # from which a class is said to be shown in a photograph without labels

Say = Callable[[str], None]


@dataclass
class _Run:
    """A run in the making: where it goes, what it says, how long its parts take."""

    folder: Path
    say: Say
    timings: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / "log.txt"

    def note(self, text: str) -> None:
        """Tell the user, and write it into the log with the time."""
        self.say(text)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.timings[part] = round(time.perf_counter() - started, 3)


def discover(
    source: str | Path,
    output: str | Path,
    *,
    labels: str | Path | None = None,
    split: str | None = None,
    settings: Settings | None = None,
    snapshots: bool = False,
    jobs: int | None = None,
    say: Say = lambda text: None,
    cluster: Cluster | None = None,
    store_at: str | None = None,
) -> RunFolder:
    """Find the objects of each class in photographs that carry only image-level labels.

    Parameters
    ----------
    source, labels, split
        The photographs; see `read_source`.
    output : path
        The run folder. The same call goes on with a run that was interrupted.
    settings : Settings, optional
    snapshots : bool
        Also keep the answers after 0, 100, 500, 1000 and 2000 steps of learning.
    jobs : int, optional
        Threads; by default one per core.
    say : callable
        Gets a line of text now and then.
    cluster : Cluster, optional
        Where to find boxes and learn classes instead of here; the answer is the same.
    store_at : str, optional
        With a cluster, where its workers keep features: a folder or an fsspec URL that all of them see.
        By default the run folder.

    Returns
    -------
    RunFolder
    """
    settings = settings or Settings()
    check_method(settings.recipe.method)
    if settings.device == "cuda" and settings.recipe.method == RMI and cluster is None:
        from bagwise.rmi.torch_solver import torch_for

        torch_for("cuda")  # no card is better said now than after the features
    images = read_source(source, labels, split)
    with sole_use(output):
        run = _Run(Path(output), say)
        return _discover(images, run, settings, snapshots, jobs or default_jobs(), cluster, store_at)


def _discover(
    images: ImageSet,
    run: _Run,
    settings: Settings,
    snapshots: bool,
    jobs: int,
    cluster: Cluster | None,
    store_at: str | None,
) -> RunFolder:
    run.note(f"{len(images)} photographs of {len(images.classes)} classes in {images.root}")
    where, number = place_of(store_at or run.folder / "store"), uuid.uuid4().hex
    if cluster is None:
        store, problems, hashes = _extract(images, run, settings, jobs, reduction_from=None)
    else:
        store, problems, hashes = _extract_on(cluster, where, images, run, settings)
    problems = images.problems + problems
    labelled = [file for file, shown in zip(images.files, images.labels) if shown and file in store]
    if not labelled:
        raise ValueError(f"no labelled photograph of {images.root} could be read: {problems[0].reason}")
    prior = Objectness.of_store(store, labelled, settings.recipe.prior_weight)
    classes = sorted({label for shown in images.labels for label in shown})
    with run.timed("learning"):
        if cluster is None:
            learn_one = partial(learn_class, images, store, recipe=settings.recipe, prior=prior, device=settings.device)
            # A card is busy with one class, and its recorded steps allow no others beside them.
            models = _in_threads(learn_one, classes, jobs if settings.device == "cpu" else 1, "learning")
        else:
            models = scaleout.learn(cluster, where, number, store, settings, images, classes, prior)
    for model in models:
        if model.model is None and settings.recipe.method != OBJECTNESS_ALONE:
            problems.append(Problem(model.label, "every photograph shows it, or none could be read: not learnt"))
    with run.timed("localising"):
        if cluster is None:
            answers = _localize_labelled(images, store, models, settings, jobs)
        else:
            answers = scaleout.find(cluster, where, number, store, settings, images, models)
        steps = _snapshots(images, store, models, settings, jobs) if snapshots else None
    _save_models(run.folder, models)
    learnt = {"prior_mean": prior.mean, "calibration": {m.label: list(astuple(m.calibration)) for m in models}}
    return _write(run, images, store, classes, answers, steps, problems, settings, hashes, learnt)


def discover_unlabelled(
    model: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    jobs: int | None = None,
    device: str = "cpu",
    say: Say = lambda text: None,
    cluster: Cluster | None = None,
    store_at: str | None = None,
) -> RunFolder:
    """Find the classes of an earlier run in photographs without labels.

    Parameters
    ----------
    model : path
        The run folder that `discover` made.
    source : path
        A photograph, or a folder of them.
    output : path
        The new run folder.
    device : {"cpu", "cuda"}
        As in `Settings`.
    jobs, say, cluster, store_at
        As for `discover`.
    """
    former = RunFolder(model)
    settings = replace(Settings.from_dict(former.manifest["settings"]), device=device)
    if Path(output).resolve() == former.path.resolve():
        raise ValueError(f"{output} is the run that the models come from: choose another output folder")
    images = read_unlabelled(source)
    with sole_use(output):
        run = _Run(Path(output), say)
        return _discover_unlabelled(former, images, settings, run, jobs or default_jobs(), cluster, store_at)


def _discover_unlabelled(
    former: RunFolder,
    images: ImageSet,
    settings: Settings,
    run: _Run,
    jobs: int,
    cluster: Cluster | None,
    store_at: str | None,
) -> RunFolder:
    run.note(f"{len(images)} photographs in {images.root}, models of {former.path}")
    where = place_of(store_at or run.folder / "store")
    if cluster is None:
        store, problems, hashes = _extract(images, run, settings, jobs, reduction_from=former.store_path)
    else:
        store, problems, hashes = _extract_on(cluster, where, images, run, settings, former.store_path)
    readable = [file for file in images.files if file in store]
    if not readable:
        raise ValueError(f"no photograph of {images.root} could be read: {problems[0].reason}")
    models = [model for model in load_models(former).values() if model.model is not None]
    if not models:
        raise ValueError(
            f"{former.path} holds no models (method {settings.recipe.method}): it cannot be used with --model"
        )
    with run.timed("localising"):
        if cluster is None:
            of_class = partial(_localize_unlabelled, store, readable, settings)
            answers = [answer for found in _in_threads(of_class, models, jobs, "localising") for answer in found]
        else:
            number = uuid.uuid4().hex
            answers = scaleout.search(cluster, where, number, settings, readable, models, UNLABELLED_CONFIDENCE)
    shown: dict[str, set[str]] = {}
    for answer in answers:
        shown.setdefault(answer.file, set()).add(answer.label)
    found = [tuple(sorted(shown.get(file, ()))) for file in images.files]
    images = ImageSet(images.root, images.files, found, problems=images.problems, kind=images.kind)
    learnt = former.manifest["learnt"]
    return _write(run, images, store, former.classes, answers, None, problems, settings, hashes, learnt)


def _localize_unlabelled(
    store: FeatureStore, files: Sequence[str], settings: Settings, model: ClassModel
) -> list[Answer]:
    found = localize(store, model, files, max_objects=settings.max_objects, at_least=UNLABELLED_CONFIDENCE)
    return list(found)


def _extract(
    images: ImageSet, run: _Run, settings: Settings, jobs: int, reduction_from: Path | None
) -> tuple[FeatureStore, list[Problem], dict[str, str]]:
    features = settings.make_features()
    path = run.folder / "store"
    store = FeatureStore(path, settings.store_settings(features.backbone))
    if reduction_from is not None and settings.components and not (path / "reduction.npz").exists():
        shutil.copyfile(reduction_from / "reduction.npz", path / "reduction.npz")
    extractor = Extractor(settings.make_proposer(), features, components=settings.components, jobs=jobs)
    held = len(store)
    with run.timed("boxes and features"), store:
        problems = extractor.fill(store, images.root, images.files)
    seconds = run.timings["boxes and features"]
    done = len(store) - held
    if done:
        run.note(
            f"boxes and features of {done} photographs in {seconds:.0f} s ({done / max(seconds, 1e-9):.1f} a second)"
        )
    hashes = {"backbone": features.backbone.sha256}
    del extractor, features
    _give_back_memory()
    return store, problems, hashes


def _give_back_memory() -> None:
    """Return what the networks' threads have freed to the system: glibc keeps it, and learning needs room next."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _extract_on(
    cluster: Cluster,
    where: str,
    images: ImageSet,
    run: _Run,
    settings: Settings,
    reduction_from: Path | None = None,
) -> tuple[FeatureStore, list[Problem], dict[str, str]]:
    """Have a cluster's workers fill the store."""
    backbone = replace(settings, device="cpu").open_backbone()  # only its name is needed here; cards are at the workers
    open_store = partial(scaleout.open_held, where, run.folder / "store", settings.store_settings(backbone))
    with run.timed("boxes and features"):
        problems = scaleout.fill(cluster, where, settings, images, open_store(), run.note, reduction_from)
    return open_store(), problems, {"backbone": backbone.sha256}


def _localize_labelled(
    images: ImageSet, store: FeatureStore, models: Sequence[ClassModel], settings: Settings, jobs: int
) -> list[Answer]:
    def of_class(model: ClassModel) -> list[Answer]:
        rivals = rivals_of(images, models, model.label) if settings.rivalry else None
        files = files_with(images, store, model.label)
        return list(localize(store, model, files, rivals=rivals, max_objects=settings.max_objects))

    return [answer for answers in _in_threads(of_class, models, jobs, "localising") for answer in answers]


def _in_threads(function: Callable[[Any], Any], items: Sequence[Any], jobs: int, what: str) -> list[Any]:
    # Parallel over items, not inside them, so that sums are taken in one order and the same run gives the same bits.
    with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:
        return list(track(pool.map(function, items), total=len(items), description=what))


def _snapshots(
    images: ImageSet, store: FeatureStore, models: Sequence[ClassModel], settings: Settings, jobs: int
) -> dict[str, list[Any]]:
    """Rows of snapshots.parquet."""
    labels = [model.label for model in models if model.model is not None]
    prior = models[0].prior
    found = _in_threads(
        lambda c: snapshots_of_class(images, store, c, settings.recipe, prior, STEPS), labels, jobs, "snapshots"
    )
    numbers = {file: number for number, file in enumerate(_kept(images, store), start=1)}
    columns: dict[str, list[Any]] = {name: [] for name in ("steps", "image_id", "label", "x1", "y1", "x2", "y2")}
    for label, rows in zip(labels, found):
        for steps, file, box in rows:
            for name, value in zip(columns, (steps, numbers[file], label, *(float(v) for v in box))):
                columns[name].append(value)
    return columns


def _save_models(folder: Path, models: Sequence[ClassModel]) -> None:
    for model in models:
        if model.model is not None:
            path = folder / "models" / f"{safe_name(model.label)}.bagwise"
            path.parent.mkdir(exist_ok=True)
            bagwise.save(model.model, path)


def _kept(images: ImageSet, store: FeatureStore) -> list[str]:
    return [file for file in images.files if file in store]


def _write(
    run: _Run,
    images: ImageSet,
    store: FeatureStore,
    classes: list[str],
    answers: list[Answer],
    snapshots: dict[str, list[Any]] | None,
    problems: list[Problem],
    settings: Settings,
    hashes: dict[str, str],
    learnt: dict[str, Any],
) -> RunFolder:
    """Write the tables and the manifest, and tell what was found."""
    kept = _kept(images, store)
    labels = dict(zip(images.files, images.labels))
    numbers = {file: number for number, file in enumerate(kept, start=1)}
    sizes = [store.entry(file) for file in kept]
    table = {
        "image_id": list(numbers.values()),
        "file": kept,
        "width": [entry.width for entry in sizes],
        "height": [entry.height for entry in sizes],
        "labels": [list(labels[file]) for file in kept],
    }
    answers = sorted(answers, key=lambda a: (numbers[a.file], a.label, a.rank))
    boxes: dict[str, Any] = {
        "image_id": [numbers[a.file] for a in answers],
        "label": [a.label for a in answers],
        "rank": [a.rank for a in answers],
        "kind": [a.kind for a in answers],
    }
    corners = np.array([a.box for a in answers], dtype=np.float32).reshape(-1, 4)
    boxes |= dict(zip(("x1", "y1", "x2", "y2"), corners.T))
    for name in ("score", "confidence", "objectness"):
        boxes[name] = np.array([getattr(a, name) for a in answers], dtype=np.float32)
    manifest: dict[str, Any] = {
        "source": {"root": str(images.root.resolve()), "kind": images.kind},
        "settings": settings.as_dict(),
        "device": settings.device,
        "classes": classes,
        "timings": run.timings,
        "hashes": hashes,
        "learnt": learnt,
        "problems": [{"file": p.file, "reason": p.reason} for p in problems],
    }
    if peak_memory() is not None:
        manifest["peak_memory_mb"] = peak_memory()
    for problem in problems:
        run.note(f"left out: {problem.file}: {problem.reason}")
    return RunFolder.create(run.folder, manifest, table, boxes, snapshots)


def peak_memory() -> int | None:
    """Most memory that this process has held, in MB, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024**2 if sys.platform == "darwin" else 1024)
