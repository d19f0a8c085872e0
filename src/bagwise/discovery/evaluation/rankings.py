"""Every box of an image in a method's order, for the curve of detection rates."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bagwise._utils.boxes import overlaps
from bagwise._utils.progress import track
from bagwise._utils.threads import one_thread_to_a_task
from bagwise.discovery.evaluation.protocols import Protocol
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.localize import rivals_of
from bagwise.discovery.learning.models import OBJECTNESS_ALONE
from bagwise.discovery.learning.scoring import score_images
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.models import images_of, load_models
from bagwise.discovery.run.settings import Settings, default_jobs

EDGE_BOXES = "Edge Boxes"
SAME_BOX = 0.99  # overlap from which a box was answered already
# How the literature writes the names of the library's methods.
WRITTEN = {
    "RMISVC": "RMI-SVM",
    "MiSVC": "mi-SVM",
    "MISVC": "MI-SVM",
    "MultiFoldSVC": "Multi-fold",
    "edge-boxes": EDGE_BOXES,
}

Ranked = dict[tuple[str, str], np.ndarray]


def method_of(run: RunFolder) -> str:
    """The name of the run's method, as the literature writes it."""
    method = str(run.manifest["settings"].get("recipe", {}).get("method", "RMISVC"))
    return WRITTEN.get(method, method)


def kept_boxes(run: RunFolder) -> Ranked:
    """The boxes that the run kept, per (file, label), best first: the objects and a few alternatives."""
    files = run.images["file"].to_pylist()
    ids, labels = run.boxes["image_id"].to_numpy(), run.boxes["label"].to_pylist()
    boxes = run.corners()
    rows: dict[tuple[str, str], list[int]] = {}
    for row in np.argsort(run.boxes["rank"].to_numpy(), kind="stable"):
        rows.setdefault((files[ids[row] - 1], labels[row]), []).append(row)
    return {pair: boxes[members] for pair, members in rows.items()}


def scored_boxes(run: RunFolder, chosen: Protocol) -> Ranked:
    """All boxes per (file, group) by the scores that the run's answers were chosen by, so that the first is the answer.

    Empty where the run kept no store or no models.
    """
    store = _store(run)
    if store is None or "learnt" not in run.manifest:
        return {}
    settings, models = Settings.from_dict(run.manifest["settings"]), load_models(run)
    learned = settings.recipe.method != OBJECTNESS_ALONE
    if learned and all(model.model is None for model in models.values()):
        return {}
    images = images_of(run)

    def of_group(name: str) -> Ranked:
        files = [file for file in chosen.groups[name][1] if file in store]
        rivals = rivals_of(images, list(models.values()), name) if settings.rivalry else None
        scored = score_images(store, models[name], files, rivals)
        return {(image.file, name): image.shapes[np.argsort(-image.scores, kind="stable")] for image in scored}

    names = [name for name in chosen.groups if name in models]
    ranked: Ranked = {}
    with one_thread_to_a_task(), ThreadPoolExecutor(default_jobs()) as pool:
        for part in track(pool.map(of_group, names), total=len(names), description="scores of all boxes"):
            ranked |= part
    return ranked


def answers_first(answers: Ranked, scored: Ranked) -> Ranked:
    """Boxes in the order of their scores, after those that the run answered.

    A class of few images is answered by models that had not seen the image, which are not kept: the answers cannot be
    told from the scores of the model that is.
    """
    ranked = {}
    for pair, boxes in scored.items():
        first = answers.get(pair, boxes[:0])
        others = boxes[overlaps(boxes, first).max(axis=1, initial=0) < SAME_BOX]
        ranked[pair] = np.vstack([first, others])
    return ranked


def proposed_boxes(run: RunFolder, chosen: Protocol) -> Ranked:
    """All boxes per (file, group) by objectness alone; empty without a store."""
    store = _store(run)
    if store is None:
        return {}
    ranked = {}
    for file in _files(chosen):
        if file in store:
            boxes, objectness = store.boxes(file)
            ranked[file] = boxes[np.argsort(-objectness, kind="stable")]
    pairs = ((file, name) for name, (_, files) in chosen.groups.items() for file in files)
    return {pair: ranked[pair[0]] for pair in pairs if pair[0] in ranked}


def _store(run: RunFolder) -> FeatureStore | None:
    return FeatureStore(run.store_path) if (run.store_path / "manifest.json").is_file() else None


def _files(chosen: Protocol) -> Iterable[str]:
    return {file for _, files in chosen.groups.values() for file in files}
