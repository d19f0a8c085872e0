"""Learning all classes at once on a graphics card.

On the CPU a class is learned at a time: its images are read, and each of its models makes its steps on them. A card
holds the boxes of all classes together, and every step is one step of every model: of twenty classes with three folds
each, eighty. The models are those of the CPU to rounding: the same images in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from bagwise import RMISVC
from bagwise.base import InstanceScorer
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.learn import Lesson
from bagwise.discovery.learning.models import Objectness, Recipe, blend, drawn_boxes, with_solution
from bagwise.rmi.objective import Loss, instance_coefficients
from bagwise.rmi.problem import Iterate, orders
from bagwise.rmi.torch_solver import CardData, CudaStepper, aligned_width, torch_for

FILES_AT_ONCE = 256


@dataclass(frozen=True)
class Boxes:
    """The boxes of many images, as tensors on one device."""

    instances: Any  # float32 (n_boxes, as wide as the card likes), zero beyond the features
    n_features: int
    offsets: np.ndarray  # int64 (n_images + 1,)
    prior: Any  # float64 (n_boxes,)

    @property
    def torch(self) -> Any:
        return torch_for(self.instances.device)

    def put(self, array: np.ndarray) -> Any:
        """An array as a tensor beside the boxes."""
        return self.torch.from_numpy(array).to(self.instances.device)


@dataclass(frozen=True)
class Fit:
    """One model to be made: the images it learns from, as rows of all images on the card, and how."""

    rows: np.ndarray  # int (n,)
    shown: np.ndarray  # bool (n,)
    recipe: Recipe
    steps: int


def fit_lessons(
    store: FeatureStore, lessons: Sequence[Lesson], prior: Objectness, device: str = "cuda"
) -> list[list[InstanceScorer]]:
    """The models of the fits of some lessons; see `Lesson.fits`."""
    files = sorted(set(chain.from_iterable(lesson.files for lesson in lessons if not lesson.nothing)))
    if not files:
        return [[] for _ in lessons]
    at = {file: number for number, file in enumerate(files)}
    fits: list[list[Fit]] = []
    for lesson in lessons:
        rows = np.array([at[file] for file in lesson.files], dtype=np.int64) if not lesson.nothing else np.empty(0, int)
        fits.append([Fit(rows[p], lesson.shown[p], lesson.recipe, steps) for p, steps in lesson.fits()])
    everything = list(chain.from_iterable(fits))
    boxes = boxes_on_card(store, files, prior, device)
    models: dict[int, InstanceScorer] = {}
    for steps in sorted({fit.steps for fit in everything}):
        together = [fit for fit in everything if fit.steps == steps]
        found = fit_together(boxes, together)
        models |= {id(fit): model for fit, model in zip(together, found)}
    return [[models[id(fit)] for fit in of_lesson] for of_lesson in fits]


def boxes_on_card(store: FeatureStore, files: Sequence[str], prior: Objectness, device: str) -> Boxes:
    """Copy the boxes of some images to a device: as bytes, which are a quarter of what they become there."""
    torch = torch_for(device)
    sizes = [len(store.boxes(file)[0]) for file in files]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    width = store.kept_features(files[0])[0].shape[1]
    instances = torch.zeros((int(offsets[-1]), aligned_width(width, 4)), dtype=torch.float32, device=device)
    for start in range(0, len(files), FILES_AT_ONCE):
        kept = [store.kept_features(file) for file in files[start : start + FILES_AT_ONCE]]
        values, scales = (torch.from_numpy(np.concatenate(part)).to(device) for part in zip(*kept))
        first = int(offsets[start])
        instances[first : first + len(values), :width] = values.float() * scales[:, None]
    log_odds = np.concatenate([prior(store.boxes(file)[1]) for file in files])
    return Boxes(instances, width, offsets, torch.from_numpy(log_odds).to(device))


def fit_together(boxes: Boxes, fits: Sequence[Fit]) -> list[InstanceScorer]:
    """Models of fits that make equally many steps, all of them side by side."""
    recipe, steps = fits[0].recipe, fits[0].steps
    targets, order = np.zeros((len(boxes.offsets) - 1, len(fits)), np.uint8), np.empty((len(fits), steps), np.int64)
    for k, fit in enumerate(fits):
        targets[fit.rows[fit.shown], k] = 1
        drawn = orders(len(fit.rows), steps, recipe.sampling, np.random.RandomState(recipe.seed))
        order[k] = fit.rows[np.concatenate(list(drawn))]
    data = CardData(
        boxes.instances, boxes.n_features, boxes.put(boxes.offsets), boxes.put(targets),
        boxes.put(np.ones(targets.shape)), boxes.prior,
    )  # fmt: skip
    loss = Loss(recipe.lam, recipe.beta, recipe.margin)
    radius = np.array([radius_of(boxes, fit, targets[:, k] > 0, loss) for k, fit in enumerate(fits)])
    stepper = CudaStepper(data, loss, True, Iterate.zero(len(fits), boxes.n_features), radius)
    average_from = steps // 2 if recipe.average else np.iinfo(np.int64).max
    stepper.run(order, average_from)
    last = stepper.last()
    coef, intercept = last.coef, last.intercept
    if recipe.average:
        coef, intercept = (total / (steps - average_from) for total in stepper.sums())
    models = [with_solution(replace(recipe, steps=steps), w, b) for w, b in zip(coef, intercept)]
    if recipe.refit:
        refit_together(boxes, fits, models)
    return list(models)


def radius_of(boxes: Boxes, fit: Fit, shown: np.ndarray, loss: Loss) -> float:
    """As `Problem.radius`."""
    if fit.recipe.radius is None:
        return np.inf
    at_zero = 0.5
    if fit.recipe.radius == "safe":
        at_zero = float(
            instance_coefficients(boxes.prior.cpu().numpy(), boxes.offsets, shown, loss)[0][fit.rows].mean()
        )
    return float(np.sqrt(2 * at_zero / loss.lam))


def refit_together(boxes: Boxes, fits: Sequence[Fit], models: Sequence[RMISVC]) -> None:
    """As `refit_on_choices`, for all models."""
    chosen = chosen_boxes(boxes, models)
    sizes = np.diff(boxes.offsets)
    for k, (fit, model) in enumerate(zip(fits, models)):
        local = np.concatenate([[0], np.cumsum(sizes[fit.rows])])
        drawn = drawn_boxes(int(local[-1]), fit.recipe.seed)
        image = np.searchsorted(local, drawn, side="right") - 1
        rows = boxes.offsets[fit.rows[image]] + drawn - local[image]
        sample = boxes.instances[boxes.put(rows)][:, : boxes.n_features].double()
        centre = sample.mean(dim=0)
        sample -= centre
        covariance = sample.T @ sample / len(sample)
        best = boxes.instances[boxes.put(chosen[fit.rows[fit.shown], k])][:, : boxes.n_features].double().mean(dim=0)
        blend(model, *(each.cpu().numpy() for each in (centre, covariance, best)))


def chosen_boxes(boxes: Boxes, models: Sequence[RMISVC]) -> np.ndarray:
    """The box with the highest score in each image by each model, the first of equals: int64 (n_images, n_models)."""
    torch, n_images = boxes.torch, len(boxes.offsets) - 1
    coef = boxes.put(np.concatenate([model.coef_ for model in models]))
    intercept = boxes.put(np.concatenate([model.intercept_ for model in models]))
    chosen = np.empty((n_images, len(models)), np.int64)
    for start in range(0, n_images, FILES_AT_ONCE):
        stop = min(start + FILES_AT_ONCE, n_images)
        first, last = int(boxes.offsets[start]), int(boxes.offsets[stop])
        scores = boxes.instances[first:last, : boxes.n_features].double() @ coef.T + intercept
        scores += boxes.prior[first:last, None]
        image = boxes.put(np.repeat(np.arange(stop - start), np.diff(boxes.offsets[start : stop + 1])))
        image = image[:, None].expand_as(scores)
        best = torch.full((stop - start, len(models)), -torch.inf, dtype=scores.dtype, device=scores.device)
        best.scatter_reduce_(0, image, scores, "amax")
        row = torch.arange(first, last, device=scores.device)[:, None].expand_as(scores)
        row = torch.where(scores == best.gather(0, image), row, last)
        found = torch.full(best.shape, last, dtype=torch.int64, device=scores.device)
        chosen[start:stop] = found.scatter_reduce_(0, image, row, "amin").cpu().numpy()
    return chosen
