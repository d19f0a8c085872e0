"""Learning from decisions: the models of the classes that were reviewed are fitted again, and the boxes with them."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa

import bagwise
from bagwise._utils.lock import sole_use
from bagwise.bags import Bags
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import Logistic
from bagwise.discovery.learning.learn import learn_class
from bagwise.discovery.learning.localize import Answer, files_with, localize, rivals_of
from bagwise.discovery.learning.models import (
    OBJECTNESS_ALONE,
    ClassModel,
    bags_of,
    examples,
    make_model,
    refit_on_choices,
)
from bagwise.discovery.run.folder import BOXES, RunFolder, as_table, write_parquet
from bagwise.discovery.run.models import images_of, load_models
from bagwise.discovery.run.settings import Settings, default_jobs
from bagwise.review.constraints import Constraints, constraints_of
from bagwise.review.reviewed import Decisions, reviewed_run

# A confirmed box outweighs its image's negatives: it is one, they are several.
POSITIVE_WEIGHT = 3.0
NEGATIVE_WEIGHT = 1.0


DISCOVERED = Path("review") / "boxes-discovered.parquet"  # in a run folder: the boxes of before the first refit


def refit(run: RunFolder, decisions: Decisions, labels: Collection[str] | None = None) -> list[str]:
    """Fit the reviewed classes again with what a person decided; the run gets their new boxes and models.

    The boxes that discovery had found stay in ``review/boxes-discovered.parquet``. An image whose label is wrong is an
    example of what the class does not look like; one that was given a label is an example of that class, which may be
    a new one: the run then has it from now on.

    Parameters
    ----------
    run : RunFolder
        A run with its feature store.
    decisions : dict
        (file, label) -> state.
    labels : collection of str, optional
        The classes to look at: all of them by default.

    Returns
    -------
    list of str
        The classes that were fitted again.

    Raises
    ------
    ValueError
        When another process is working in the run folder or has made the run again, or there is nothing to learn.
    """
    with sole_use(run.path, sweep=False):  # the review that this belongs to may be writing an export
        if RunFolder(run.path).manifest.get("created") != run.manifest.get("created"):
            raise ValueError(f"{run.path} was made again since this review began: start the review anew")
        return _refit(run, decisions, labels)


def _refit(run: RunFolder, decisions: Decisions, labels: Collection[str] | None) -> list[str]:
    learner = Learner(run, decisions)
    chosen = [label for label in learner.learnable(decisions) if labels is None or label in labels]
    if not chosen:
        raise ValueError("there is nothing new to learn from: accept or reject some images first")
    with ThreadPoolExecutor(min(len(chosen), default_jobs())) as pool:
        models = list(pool.map(lambda label: learner.fit(label, decisions), chosen))
        learner.take(models)
        answers = [answer for part in pool.map(learner.answers, chosen) for answer in part]
    if not (run.path / DISCOVERED).exists():
        write_parquet(run.path / DISCOVERED, run.boxes)
    kept = run.boxes.filter(pa.array([label not in chosen for label in run.boxes["label"].to_pylist()]))
    new = [model for model in models if model.label not in run.classes]
    if new:
        _add_classes(run, new)
    run.rewrite_boxes(pa.concat_tables([kept, learner.table(answers)]))
    for model in models:
        if model.model is not None:
            path = run.model_path(model.label)
            path.parent.mkdir(exist_ok=True)
            bagwise.save(model.model, path)
    return chosen


def _add_classes(run: RunFolder, models: Sequence[ClassModel]) -> None:
    """Enter classes that a person added into the run's manifest, after its own, whose numbers stay."""
    learned = run.manifest["learnt"]
    calibration = learned["calibration"] | {model.label: list(astuple(model.calibration)) for model in models}
    trust = learned["trust"] | {model.label: model.trust for model in models}
    classes = [*run.classes, *(model.label for model in models)]
    run.rewrite_manifest({"classes": classes, "learnt": {**learned, "calibration": calibration, "trust": trust}})


class Learner:
    """A run opened for learning: its store, its settings, its present models, its labels as a person corrected them.

    Parameters
    ----------
    run : RunFolder
    decisions : mapping, default {}
        (file, label) -> state.
    """

    def __init__(self, run: RunFolder, decisions: Decisions = MappingProxyType({})):
        self.run = run
        reviewed = reviewed_run(run, decisions)
        self.models = load_models(reviewed)
        self.store = FeatureStore(run.store_path)
        self.settings = Settings.from_dict(run.manifest["settings"])
        if self.settings.recipe.method == OBJECTNESS_ALONE:
            raise ValueError("this run was made with objectness alone: there is no model to fit again")
        self.images = images_of(reviewed)
        known = (model.calibration.agreement for model in self.models.values() if model.model is not None)
        self._agreement = next(known, Logistic())  # the same for all classes of a run
        # Wrong labels get boxes too, though nothing is learned from them: a person may think again.
        self._wrong = [pair for pair, state in decisions.items() if state.status == "absent" and pair[0] in self.store]

    def take(self, models: Sequence[ClassModel]) -> None:
        """Use these models from now on."""
        self.models |= {model.label: model for model in models}

    def learnable(self, decisions: Decisions) -> list[str]:
        """The classes about which something was decided: a label given to an image is a decision, too."""
        told = (pair for pair, state in decisions.items() if state.status != "open" or state.added)
        decided = {label for file, label in told if file in self.store}
        return [label for label in self.models if label in decided]

    def fit(self, label: str, decisions: Decisions) -> ClassModel:
        """The class's model, fitted to images and decisions together."""
        recipe = self.settings.recipe
        shown, absent = examples(self.images, self.store, label, recipe.seed)
        told = {file: state for (file, name), state in decisions.items() if name == label and file in self.store}
        known = {file: state for file, state in told.items() if state.status in ("accepted", "rejected")}
        # Of a large class only a part is learned from; what a person looked at always belongs to it.
        shown += [file for file in known if file not in set(shown)]
        absent += [file for file, state in told.items() if state.status == "absent" and file not in set(absent)]
        before = self.models[label]
        if before.model is None and label not in self.run.classes:  # new: how far to trust it is not known yet
            before = learn_class(self.images, self.store, label, recipe, before.prior)
            before = replace(before, calibration=before.calibration.agreeing(self._agreement))
        bags = bags_of(self.store, shown + absent, before.prior)
        scores = bags.split(before.scores(bags)) if known else []
        found = [
            constraints_of(self.store.boxes(file)[0], scores[i], known[file]) if file in known else None
            for i, file in enumerate(shown)
        ]
        chosen, y, weight = training_set(bags, found + [None] * len(absent), len(shown))
        del bags, scores  # the largest things here, and not needed while the model learns
        if y.all() or not y.any():
            return before
        model = make_model(recipe).fit(chosen, y, sample_weight=weight)
        if isinstance(model, bagwise.RMISVC) and recipe.refit:
            refit_on_choices(model, chosen, y, recipe.seed)
        return replace(before, model=model)

    def answers(self, label: str) -> list[Answer]:
        """The class's boxes in every image that carries its label, rightly or wrongly."""
        files = files_with(self.images, self.store, label)
        files += [file for file, name in self._wrong if name == label and file not in set(files)]
        rivals = rivals_of(self.images, list(self.models.values()), label) if self.settings.rivalry else None
        model, limit = self.models[label], self.settings.max_objects
        return list(localize(self.store, model, files, rivals=rivals, max_objects=limit))

    def table(self, answers: Sequence[Answer]) -> pa.Table:
        """Answers as rows of ``boxes.parquet``."""
        number = dict(zip(self.run.images["file"].to_pylist(), self.run.images["image_id"].to_pylist()))
        rows = [
            (number[a.file], a.label, a.rank, a.kind, *a.box, a.score, a.confidence, a.objectness, a.mask)
            for a in answers
        ]
        return as_table({name: [row[i] for row in rows] for i, name in enumerate(BOXES.names)}, BOXES, "boxes")


def training_set(bags: Bags, found: Sequence[Constraints | None], n_shown: int) -> tuple[Bags, np.ndarray, np.ndarray]:
    """Images and constraints as one set of weighted bags.

    Parameters
    ----------
    bags : Bags
        One bag per image; those that show the class come first.
    found : sequence of Constraints or None
        For each image what is known of its boxes; None where nobody has decided.
    n_shown : int
        Number of images that show the class.

    Returns
    -------
    bags, labels (n,), weights (n,)
    """
    rows: list[np.ndarray] = []
    labels: list[bool] = []
    weights: list[float] = []

    def add(members: np.ndarray, label: bool, weight: float) -> None:
        if len(members):
            rows.append(members)
            labels.append(label)
            weights.append(weight)

    for i, known in enumerate(found):
        start, stop = int(bags.offsets[i]), int(bags.offsets[i + 1])
        if known is None:
            add(np.arange(start, stop), i < n_shown, 1.0)
            continue
        add(start + known.possible, True, 1.0)
        for row in known.positive:
            add(np.array([start + row]), True, POSITIVE_WEIGHT)
        for row in known.negative:
            add(np.array([start + row]), False, NEGATIVE_WEIGHT)
    members = np.concatenate(rows)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
    prior = None if bags.prior is None else bags.prior[members]
    chosen = Bags.from_arrays(bags.instances[members], offsets, prior=prior, check_finite=False)
    return chosen, np.array(labels), np.array(weights)
