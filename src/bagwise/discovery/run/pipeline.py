"""From labelled images to a run folder, and from a run to boxes in images that nobody labelled."""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import bagwise
from bagwise._utils.atomic import write_text
from bagwise._utils.cluster import Cluster
from bagwise._utils.lock import sole_use
from bagwise._utils.words import counted
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.learn import agreed_among
from bagwise.discovery.learning.localize import Answer
from bagwise.discovery.learning.models import OBJECTNESS_ALONE, RMI, ClassModel, Objectness, Recipe, check_method
from bagwise.discovery.learning.snapshots import STEPS, snapshots_of_class
from bagwise.discovery.run.executor import Executor, make_executor, start_beside_card
from bagwise.discovery.run.folder import RunFolder, model_paths
from bagwise.discovery.run.models import load_models
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.run.tasks import find, find_tasks, learn_tasks, search_tasks
from bagwise.discovery.sources.columns import Names
from bagwise.discovery.sources.imageset import ImageSet, Problem
from bagwise.discovery.sources.reading import read_source, read_unlabelled

# Probability from which a class is said to be shown in an image without labels. High, because the probability is
# calibrated on images of the classes that were learned, and an image without labels may show anything.
SHOWN_FROM = 0.9

FEATURES = "boxes and features"
HELD = "source.json"  # whose features a run folder keeps, and the seconds that they took

Say = Callable[[str], None]


def silent(text: str) -> None:
    """Say nothing."""


@dataclass
class _Run:
    """A run in the making: where it goes, what it says, how long its parts take."""

    folder: Path
    say: Say
    timings: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / "log.txt"
        self._started = time.perf_counter()

    def note(self, text: str) -> None:
        """Tell the user, and write it into the log with the time."""
        self.say(text)
        self.log(text)

    def warn(self, text: str) -> None:
        """Tell the user even where nobody listens: then it is a warning of Python's."""
        self.note(text)
        if self.say is silent:
            warnings.warn(text, stacklevel=2)

    def log(self, text: str) -> None:
        """Write it into the log with the time."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings[part] = round(time.perf_counter() - started, 3)

    def all_timings(self) -> dict[str, float]:
        """The seconds of each part, which add up to those of the whole run.

        Features are kept between calls: theirs are the seconds of all calls.
        """
        rest = time.perf_counter() - self._started - sum(self.timings.values())
        features = self._held()["seconds"]
        return self.timings | {FEATURES: round(features, 3), "reading and writing": round(rest, 3)}

    @contextmanager
    def features_of(self, images: ImageSet) -> Iterator[None]:
        """Note whose features this folder keeps, and the time they take, also when it is cut short.

        Features of another folder of images are refused: names may recur there.
        """
        held, root = self._held(), str(images.root.resolve())
        if held["root"] not in (None, root) and Path(held["root"]).is_dir():
            raise ValueError(f"{self.folder} holds a run on the images in {held['root']}: choose another output folder")
        try:
            with self.timed(FEATURES):
                yield
        finally:
            seconds = held["seconds"] + self.timings[FEATURES]
            write_text(self.folder / HELD, json.dumps({"root": root, "seconds": seconds}) + "\n")

    def _held(self) -> dict[str, Any]:
        path = self.folder / HELD
        if not path.exists():
            return {"root": None, "seconds": 0.0}
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            return {"root": str(held["root"]), "seconds": float(held["seconds"])}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({error}): choose another output folder") from None


def discover(
    source: str | Path | ImageSet,
    output: str | Path,
    *,
    labels: str | Path | None = None,
    split: str | None = None,
    settings: Settings | None = None,
    snapshots: bool = False,
    jobs: int | None = None,
    say: Say = silent,
    cluster: Cluster | None = None,
    store_at: str | None = None,
) -> RunFolder:
    """Find the objects of each class in images that carry only image-level labels.

    Parameters
    ----------
    source, labels, split
        The images, read already or as `read_source` reads them.
    output : path
        The run folder. The same call resumes a run that was interrupted.
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
    processes = start_beside_card(settings.device, jobs, cluster)  # beside the import of torch, which takes seconds too
    if settings.device == "cuda" and settings.recipe.method == RMI and cluster is None:
        from bagwise.rmi.torch_solver import torch_for

        torch_for("cuda")  # no card is better said now than after the features
    images = source if isinstance(source, ImageSet) else read_source(source, labels, split)
    with sole_use(output):
        run = _Run(Path(output), say)
        executor = make_executor(run.folder, settings, jobs, cluster, store_at, processes)
        return _discover(images, run, settings, snapshots, executor)


def _discover(images: ImageSet, run: _Run, settings: Settings, snapshots: bool, executor: Executor) -> RunFolder:
    run.note(f"{images.told()} in {images.root}")
    problems = images.problems + _extract(images, run, executor)
    store = executor.store
    labelled = images.files.take(np.flatnonzero(store.holds(images.files) & (images.labels.sizes > 0)))
    if not labelled:
        raise ValueError(f"no labelled image of {images.root} could be read: {problems[0].reason}")
    prior = Objectness.of_store(store, labelled, settings.recipe.prior_weight)
    classes = images.classes
    with run.timed("learning"):
        models = agreed_among(executor.learn(learn_tasks(images, store, classes, settings, prior)))
    for model in models:
        if model.model is None and settings.recipe.method != OBJECTNESS_ALONE:
            problems.append(Problem(model.label, "every image shows it, or none could be read: not learned"))
    with run.timed("localising"):
        found = executor.map(find, find_tasks(images, store, models, settings), "localising")
        steps = _snapshots(images, models, settings, executor) if snapshots else None
    _save_models(run.folder, models)
    learned = {
        "prior_mean": prior.mean,
        "calibration": {m.label: list(astuple(m.calibration)) for m in models},
        "trust": {m.label: m.trust for m in models},
    }
    return _write(run, images, executor, classes, list(chain(*found)), steps, problems, settings, learned)


def discover_unlabelled(
    model: str | Path,
    source: str | Path | ImageSet,
    output: str | Path,
    *,
    jobs: int | None = None,
    threshold: float = SHOWN_FROM,
    device: str = "cpu",
    say: Say = silent,
    cluster: Cluster | None = None,
    store_at: str | None = None,
) -> RunFolder:
    """Find the classes of an earlier run in images without labels.

    Parameters
    ----------
    model : path
        The run folder that `discover` made.
    source : path or ImageSet
        An image, a folder of them, or images read already.
    output : path
        The new run folder.
    threshold : float, default=0.9
        An image gets boxes of the classes that it shows with this probability or more.
    device : {"cpu", "cuda"}
        As in `Settings`.
    jobs, say, cluster, store_at
        As for `discover`.
    """
    former = RunFolder(model)
    settings = replace(Settings.from_dict(former.manifest["settings"]), device=device)
    if Path(output).resolve() == former.path.resolve():
        raise ValueError(f"{output} is the run that the models come from: choose another output folder")
    processes = start_beside_card(device, jobs, cluster)
    images = source if isinstance(source, ImageSet) else read_unlabelled(source)
    with sole_use(output):
        run = _Run(Path(output), say)
        executor = make_executor(run.folder, settings, jobs, cluster, store_at, processes)
        return _discover_unlabelled(former, images, run, settings, executor, threshold)


def _discover_unlabelled(
    former: RunFolder, images: ImageSet, run: _Run, settings: Settings, executor: Executor, threshold: float
) -> RunFolder:
    models = [model for model in load_models(former).values() if model.model is not None]
    if not models:
        raise ValueError(
            f"{former.path} holds no models (method {settings.recipe.method}): nothing can be detected with it"
        )
    run.note(f"{len(images)} images in {images.root}, models of {former.path}")
    problems = _extract(images, run, executor, reduction_from=former.store_path)
    readable = list(_kept(images, executor.store))
    if not readable:
        raise ValueError(f"no image of {images.root} could be read: {problems[0].reason}")
    for each in models:
        if each.calibration.most < threshold:
            run.warn(
                f"{each.label}: {counted(each.calibration.images, 'image')} to learn from allow no more than "
                f"{each.calibration.most:.0%} confidence, so it is not looked for; lower the threshold to see it"
            )
    with run.timed("localising"):
        tasks = search_tasks(readable, models, settings, threshold)
        answers = list(chain(*executor.map(find, tasks, "localising")))
    shown: dict[str, set[str]] = {}
    for answer in answers:
        shown.setdefault(answer.file, set()).add(answer.label)
    found = [tuple(sorted(shown.get(file, ()))) for file in images.files]
    images = ImageSet(images.root, images.files, found, problems=images.problems, kind=images.kind)
    learned = former.manifest["learnt"]
    return _write(run, images, executor, former.classes, answers, None, problems, settings, learned, labels_found=True)


def _extract(images: ImageSet, run: _Run, executor: Executor, reduction_from: Path | None = None) -> list[Problem]:
    """Fill the executor's store, and tell how long it took."""
    held = len(executor.store)
    with run.features_of(images):
        problems = executor.extract(images, run.note, reduction_from)
    seconds = run.timings[FEATURES]
    done = len(executor.store) - held
    if done:
        run.note(f"boxes and features of {done} images in {seconds:.0f} s ({done / max(seconds, 1e-9):.1f} a second)")
    return problems


def _snapshots(
    images: ImageSet, models: Sequence[ClassModel], settings: Settings, executor: Executor
) -> dict[str, list[Any]]:
    """Rows of snapshots.parquet."""
    labels = [model.label for model in models if model.model is not None]
    of_class = partial(_snapshots_of_class, images, settings.recipe, models[0].prior)
    found = executor.map(of_class, labels, "snapshots")
    numbers = {file: number for number, file in enumerate(_kept(images, executor.store), start=1)}
    columns: dict[str, list[Any]] = {name: [] for name in ("steps", "image_id", "label", "x1", "y1", "x2", "y2")}
    for label, rows in zip(labels, found):
        for steps, file, box in rows:
            for name, value in zip(columns, (steps, numbers[file], label, *(float(v) for v in box))):
                columns[name].append(value)
    return columns


def _snapshots_of_class(
    images: ImageSet, recipe: Recipe, prior: Objectness, store: FeatureStore, label: str
) -> list[Any]:
    return list(snapshots_of_class(images, store, label, recipe, prior, STEPS))


def _save_models(folder: Path, models: Sequence[ClassModel]) -> None:
    paths = model_paths(folder, [model.label for model in models])
    for model in models:
        if model.model is not None:
            paths[model.label].parent.mkdir(exist_ok=True)
            bagwise.save(model.model, paths[model.label])


def _kept(images: ImageSet, store: FeatureStore) -> Names:
    return images.files.take(np.flatnonzero(store.holds(images.files)))


def _write(
    run: _Run,
    images: ImageSet,
    executor: Executor,
    classes: list[str],
    answers: list[Answer],
    snapshots: dict[str, list[Any]] | None,
    problems: list[Problem],
    settings: Settings,
    learned: dict[str, Any],
    *,
    labels_found: bool = False,
) -> RunFolder:
    """Write the tables and the manifest, and tell what was found.

    With ``labels_found`` the labels of images are what models found, not what people said.
    """
    store = executor.store
    rows = np.flatnonzero(store.holds(images.files))
    kept, places = images.files.take(rows), store.places(images.files)[rows]
    table = {
        "image_id": np.arange(1, len(kept) + 1),
        "file": kept.array,
        "width": store.index.columns["width"][places],
        "height": store.index.columns["height"][places],
        "labels": images.labels.take(rows).column(),
    }
    numbers = 1 + kept.places(Names.of([a.file for a in answers]))
    order = sorted(range(len(answers)), key=lambda i: (numbers[i], answers[i].label, answers[i].rank))
    answers = [answers[i] for i in order]
    boxes: dict[str, Any] = {
        "image_id": numbers[order],
        "label": [a.label for a in answers],
        "rank": [a.rank for a in answers],
        "kind": [a.kind for a in answers],
    }
    corners = np.array([a.box for a in answers], dtype=np.float32).reshape(-1, 4)
    boxes |= dict(zip(("x1", "y1", "x2", "y2"), corners.T))
    for name in ("score", "confidence", "objectness"):
        boxes[name] = np.array([getattr(a, name) for a in answers], dtype=np.float32)
    boxes["mask"] = [a.mask for a in answers]
    manifest: dict[str, Any] = {
        "source": {"root": str(images.root.resolve()), "kind": images.kind},
        "settings": settings.as_dict(),
        "device": settings.device,
        "classes": classes,
        "timings": run.all_timings(),
        "hashes": {"backbone": executor.network},
        "learnt": learned,
        "labels_found": labels_found,
        "problems": [{"file": p.file, "reason": p.reason} for p in problems],
    }
    if peak_memory() is not None:
        manifest["peak_memory_mb"] = peak_memory()
    for problem in problems:
        run.log(f"left out: {problem.file}: {problem.reason}")  # the summary tells the user
    return RunFolder.create(run.folder, manifest, table, boxes, snapshots)


def peak_memory() -> int | None:
    """Most memory that this process has held, in MB, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024**2 if sys.platform == "darwin" else 1024)
