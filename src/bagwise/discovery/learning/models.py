"""One model per class, learned from images that show it and images that do not.

No box enters here: an image is a bag, its boxes are the instances, and all that is known is which bags hold the
class. Objectness enters as a prior, ``z = w·x + weight * (log objectness - mean)``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import bagwise
from bagwise.bags import Bags
from bagwise.base import InstanceScorer
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import Agreement, Calibration, scores_in_parts
from bagwise.discovery.learning.ranking import Ranking
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.registry import class_name, classifiers

RMI = "RMISVC"
OBJECTNESS_ALONE = "edge-boxes"
BOXES_FOR_COVARIANCE = 60_000
BOXES_AT_ONCE = 4096  # of these in double precision
REFIT_SHARE = 0.4  # of each half of the final direction; below one half, so that the prior gains weight
FEWEST_NEGATIVES = 200  # when the class itself has fewer images
MOST_BAGS = 600  # of each kind, so that memory stays bounded
HALF_TRUSTED = 8  # images from which a model has half the say; measured on classes of VOC 2007 cut down to a few images


@dataclass(frozen=True)
class Recipe:
    """How classes are learned.

    Attributes
    ----------
    method : str
        A classifier of the library that scores instances, or "edge-boxes" for objectness alone.
    prior_weight : float
        Weight of objectness against appearance; used by methods that take a prior.
    lam, beta, margin, steps, average, sampling, radius
        Parameters of RMI-SVM.
    refit : bool
        Whether RMI-SVM is then refitted on its own choices; see `refit_on_choices`.
    ranking : Ranking
        What is added to the scores of boxes when one of them is chosen.
    seed : int
    """

    method: str = RMI
    prior_weight: float = 2.0
    lam: float = 0.003
    beta: float = 5.0
    margin: float = 1.2
    steps: int = 8000
    average: bool = True
    sampling: str = "shuffle"
    radius: str = "pegasos"
    refit: bool = True
    ranking: Ranking = field(default_factory=Ranking)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method != OBJECTNESS_ALONE:
            object.__setattr__(self, "method", class_name(self.method))


def _rmi(recipe: Recipe, device: str) -> bagwise.RMISVC:
    return bagwise.RMISVC(
        recipe.lam,
        recipe.beta,
        recipe.margin,
        max_steps=recipe.steps,
        average=recipe.average,
        sampling=recipe.sampling,
        radius=recipe.radius,
        scaling=None,
        device=device,
        random_state=recipe.seed,
    )


def make_model(recipe: Recipe, device: str = "cpu") -> InstanceScorer:
    """An unfitted classifier: RMI-SVM by the recipe, or any other instance scorer of the library with its defaults."""
    if recipe.method == RMI:
        return _rmi(recipe, device)
    kind = instance_scorers()[recipe.method]
    options: dict[str, Any] = {"scaling": None, "random_state": recipe.seed}
    known = kind().get_params(deep=False)
    return kind(**{name: value for name, value in options.items() if name in known})


def fit_model(recipe: Recipe, bags: Bags, y: np.ndarray, device: str = "cpu") -> InstanceScorer:
    """A fitted classifier of bags with labels y (n_bags,), True where the class is shown.

    On the device "cuda" RMI-SVM's steps are made on a card; other methods know only the CPU.
    """
    model = make_model(recipe, device).fit(bags, y)
    if isinstance(model, bagwise.RMISVC):
        model.set_params(device="cpu")  # whoever gets the model need not have a card
        if recipe.refit:
            refit_on_choices(model, bags, y, recipe.seed)
    return model


def refit_on_choices(model: bagwise.RMISVC, bags: Bags, y: np.ndarray, seed: int) -> None:
    """Blend a linear model with the discriminant of its own choices against all boxes, in place.

    The stochastic solver leaves a noisy direction. The boxes it chooses agree better than it does itself: their mean
    against the mean of all boxes, in the metric of all boxes' covariance (Fisher's discriminant, shrunk), is the
    second half of the final direction.

    Parameters
    ----------
    model : RMISVC
        Fitted on these bags.
    bags : Bags
    y : bool array (n_bags,)
    seed : int
        Draws the boxes that the covariance is estimated from.
    """
    scores = scores_in_parts(model, bags)
    chosen = [start + int(np.argmax(scores[start:stop])) for start, stop in zip(bags.offsets, bags.offsets[1:])]
    drawn = drawn_boxes(bags.n_instances, seed)
    blend(model, *mean_and_covariance(bags.instances, drawn), bags.instances[np.array(chosen)[y]].mean(axis=0))


def mean_and_covariance(instances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of some rows of (n, d) instances, in double precision, a few of them at a time: (d,) and (d, d)."""
    parts = [rows[start : start + BOXES_AT_ONCE] for start in range(0, len(rows), BOXES_AT_ONCE)]
    centre = sum(instances[part].sum(axis=0, dtype=np.float64) for part in parts) / len(rows)
    products = np.zeros((len(centre), len(centre)))
    for part in parts:
        away = instances[part] - centre
        products += away.T @ away
    return centre, products / len(rows)


def drawn_boxes(count: int, seed: int) -> np.ndarray:
    """Rows of the boxes that the covariance is estimated from, in order."""
    wanted = min(BOXES_FOR_COVARIANCE, count)
    return np.sort(np.random.default_rng(seed).choice(count, wanted, replace=False))


def blend(model: bagwise.RMISVC, centre: np.ndarray, covariance: np.ndarray, chosen: np.ndarray) -> None:
    """The second half of `refit_on_choices`, from the mean and covariance of all boxes and the mean of the chosen."""
    shrunk = covariance + np.eye(len(centre)) * (np.trace(covariance) / len(centre))
    direction = np.linalg.solve(shrunk, chosen - centre)
    direction /= np.sqrt(direction @ covariance @ direction)
    model.coef_ = REFIT_SHARE * (model.coef_ + direction)
    model.intercept_ = REFIT_SHARE * (model.intercept_ - direction @ centre)


def with_solution(recipe: Recipe, coef: np.ndarray, intercept: float) -> bagwise.RMISVC:
    """RMI-SVM by the recipe with a solution (d,) that was found elsewhere."""
    # One step on two empty bags makes all that a fitted model has.
    model = _rmi(replace(recipe, steps=1), "cpu").fit(Bags(np.zeros((2, 1, len(coef)))), np.array([False, True]))
    model.set_params(max_steps=recipe.steps)
    model.coef_, model.intercept_, model.n_steps_ = coef[None].copy(), np.array([intercept]), recipe.steps
    return model


def instance_scorers() -> dict[str, type[InstanceScorer]]:
    """What can learn classes, by name: the library's classifiers that score instances and add a prior to the scores."""
    return {kind.__name__: kind for kind in classifiers() if issubclass(kind, InstanceScorer) and kind.uses_prior}


def check_method(method: str) -> None:
    """Say which methods there are when this is none of them."""
    known = [*instance_scorers(), OBJECTNESS_ALONE]
    if method not in known:
        raise ValueError(
            f"there is no method {method!r} that learns from bags and the objectness of boxes: use one of "
            f"{', '.join(known)}"
        )


class Objectness:
    """The prior of boxes: how much likelier than usual a box is to hold some object, whatever its class."""

    def __init__(self, mean: float, weight: float) -> None:
        self.mean = mean
        self.weight = weight

    @classmethod
    def of_store(cls, store: FeatureStore, files: Sequence[str], weight: float) -> "Objectness":
        total = count = 0.0
        for file in files:
            objectness = store.boxes(file)[1]
            total += float(np.log(objectness.astype(np.float64)).sum())
            count += len(objectness)
        return cls(total / count, weight)

    def __call__(self, objectness: np.ndarray) -> np.ndarray:
        return self.weight * (np.log(objectness.astype(np.float64)) - self.mean)


@dataclass(frozen=True)
class ClassModel:
    """What was learned of a class.

    Attributes
    ----------
    label : str
    model : InstanceScorer or None
        None where there was nothing to learn from, or the method is objectness alone.
    calibration : Calibration
    prior : Objectness
    ranking : Ranking
    trust : float
        How much the model's word counts against objectness and figure, 0 to 1: a model of few images knows little.
    held_out : mapping of str to InstanceScorer
        Of a class of few images, for each of them a model that was learned from the others.
    agreement : Agreement, optional
        What its images say about confidence. This and ``held_out`` are only of the run that learned the class; they
        are not saved.
    """

    label: str
    model: InstanceScorer | None
    calibration: Calibration
    prior: Objectness
    ranking: Ranking = field(default_factory=Ranking)
    trust: float = 1.0
    held_out: Mapping[str, InstanceScorer] = field(default_factory=dict)
    agreement: Agreement | None = None

    def scores(self, bags: Bags) -> np.ndarray:
        """Score of every box, (n_instances,); the bags carry the prior."""
        if self.model is None:
            return np.zeros(bags.n_instances) if bags.prior is None else bags.prior
        return scores_in_parts(self.model, bags)

    def appearance(self, bags: Bags) -> np.ndarray:
        """Score of every box by its looks alone, (n_instances,)."""
        if self.model is None:
            return np.zeros(bags.n_instances)
        return scores_in_parts(self.model, Bags.from_arrays(bags.instances, bags.offsets, check_finite=False))

    def evidence(self, cells: np.ndarray) -> np.ndarray:
        """Score of every cell (rows, columns, d) of an image's map by its looks: (rows, columns)."""
        grid = cells.shape[:2]
        if self.model is None or 0 in grid:
            return np.zeros((0, 0))
        return self.model.instance_scores(Bags([cells.reshape(-1, cells.shape[2])])).reshape(grid)


def trust_in(images: int) -> float:
    """How much a model learned from this many images of its class can be relied on.

    Examples
    --------
    >>> [round(trust_in(n), 2) for n in (0, 4, 8, 16, 100)]
    [0.0, 0.2, 0.5, 0.8, 0.99]
    """
    return images**2 / (images**2 + HALF_TRUSTED**2)


def bags_of(store: FeatureStore, files: Sequence[str], prior: Objectness) -> Bags:
    """The images as bags of boxes with their objectness as prior."""
    return store.bags(files, [prior(store.boxes(file)[1]) for file in files])


def examples(images: ImageSet, store: FeatureStore, label: str, seed: int) -> tuple[list[str], list[str]]:
    """Images that show the class, and drawn ones that do not; those that may show it are in neither."""
    shown, absent = example_rows(images, store, label, seed)
    return list(images.files.take(shown)), list(images.files.take(absent))


def example_rows(images: ImageSet, store: FeatureStore, label: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by their places among the images."""
    held, shows = store.holds(images.files), images.labels.having(label)
    shown = np.flatnonzero(held & shows)
    absent = np.flatnonzero(held & ~shows & ~images.unsure.having(label))
    rng = np.random.default_rng([seed, *label.encode()])
    wanted = min(len(absent), MOST_BAGS, max(len(shown), FEWEST_NEGATIVES))
    return _draw(shown, MOST_BAGS, rng), _draw(absent, wanted, rng)


def _draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """At most ``count`` of the rows, in their order."""
    if len(rows) <= count:
        return rows
    return rows[np.sort(rng.choice(len(rows), count, replace=False))]
