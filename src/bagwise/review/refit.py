"""Learning from decisions: the models of the classes that were reviewed are fitted again, and the boxes with them."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa

import bagwise
from bagwise.bags import Bags
from bagwise.discovery.learning import (
    OBJECTNESS_ALONE,
    ClassModel,
    bags_of,
    examples,
    make_model,
    refit_on_choices,
)
from bagwise.discovery.localize import Answer, files_with, localize, rivals_of
from bagwise.discovery.runfolder import BOXES, RunFolder, as_table, write_parquet
from bagwise.discovery.runmodels import images_of, load_models
from bagwise.discovery.settings import Settings, default_jobs
from bagwise.discovery.store import FeatureStore
from bagwise.review.constraints import Constraints, constraints_of
from bagwise.review.decisions import ItemState, Pair

# A confirmed box outweighs its image's negatives: it is one, they are several.
POSITIVE_WEIGHT = 3.0
NEGATIVE_WEIGHT = 1.0


def refit(run: RunFolder, decisions: dict[Pair, ItemState], labels: Collection[str] | None = None) -> None:
    """Fit the reviewed classes again with what a person decided; the run gets their new boxes and models.

    The boxes that discovery had found stay in ``review/boxes-discovered.parquet``.

    Parameters
    ----------
    run : RunFolder
        A run with its feature store.
    decisions : dict
        (file, label) -> state.
    labels : collection of str, optional
        The classes to look at: all of them by default.
    """
    learner = Learner(run)
    chosen = [label for label in learner.learnable(decisions) if labels is None or label in labels]
    if not chosen:
        raise ValueError("there is nothing new to learn from: accept or reject some images first")
    with ThreadPoolExecutor(min(len(chosen), default_jobs())) as pool:
        models = list(pool.map(lambda label: learner.fit(label, decisions), chosen))
        learner.take(models)
        answers = [answer for part in pool.map(learner.answers, chosen) for answer in part]
    discovered = run.path / "review" / "boxes-discovered.parquet"
    if not discovered.exists():
        write_parquet(discovered, run.boxes)
    kept = run.boxes.filter(pa.array([label not in chosen for label in run.boxes["label"].to_pylist()]))
    run.rewrite_boxes(pa.concat_tables([kept, learner.table(answers)]))
    for model in models:
        if model.model is not None:
            path = run.model_path(model.label)
            path.parent.mkdir(exist_ok=True)
            bagwise.save(model.model, path)


class Learner:
    """A run opened for learning: its store, its settings and its present models."""

    def __init__(self, run: RunFolder):
        self.run = run
        self.models = load_models(run)
        self.store = FeatureStore(run.store_path)
        self.settings = Settings.from_dict(run.manifest["settings"])
        if self.settings.recipe.method == OBJECTNESS_ALONE:
            raise ValueError("this run was made with objectness alone: there is no model to fit again")
        self.images = images_of(run)

    def take(self, models: Sequence[ClassModel]) -> None:
        """Use these models from now on."""
        self.models |= {model.label: model for model in models}

    def learnable(self, decisions: dict[Pair, ItemState]) -> list[str]:
        """The classes about which something was decided."""
        decided = {label for (file, label), state in decisions.items() if state.status != "open" and file in self.store}
        return [label for label in self.run.classes if label in decided]

    def fit(self, label: str, decisions: dict[Pair, ItemState]) -> ClassModel:
        """The class's model, fitted to images and decisions together."""
        recipe = self.settings.recipe
        shown, absent = examples(self.images, self.store, label, recipe.seed)
        known = {file: state for (file, name), state in decisions.items() if name == label and state.status != "open"}
        # Of a large class only a part is learnt from; what a person looked at always belongs to it.
        shown += [file for file in known if file in self.store and file not in set(shown)]
        before = self.models[label]
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
        """The class's boxes in every image that carries its label."""
        files = files_with(self.images, self.store, label)
        rivals = rivals_of(self.images, list(self.models.values()), label) if self.settings.rivalry else None
        model, limit = self.models[label], self.settings.max_objects
        return list(localize(self.store, model, files, rivals=rivals, max_objects=limit))

    def table(self, answers: Sequence[Answer]) -> pa.Table:
        """Answers as rows of ``boxes.parquet``."""
        number = dict(zip(self.run.images["file"].to_pylist(), self.run.images["image_id"].to_pylist()))
        rows = [(number[a.file], a.label, a.rank, a.kind, *a.box, a.score, a.confidence, a.objectness) for a in answers]
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
