"""λ, scaling, kernel, pooling and calibration from the training bags alone.

The bags are put into folds. For every candidate (a λ, a view of the instances, a pooling) and every fold, a model is
fitted on the other folds and scores the bags of this one. A logistic curve fitted to a candidate's out-of-fold scores
gives its log loss; the candidate with the smallest one is chosen, and its curve is the calibration. The log loss, and
not the accuracy, because on a hundred bags accuracy moves in steps of a percent and many candidates share the best
value.

Neighbouring λ give nearly the same model, so a candidate is judged together with its neighbours on the path: that
takes half of the chance out of the choice. And where the bags say little, the stronger λ is taken: each step to a
weaker one must explain the bags better by a quarter of a nat in all. Otherwise noise, which every λ explains equally
badly, would as often as not be answered by the weakest λ, whose model is an accident of the bags it has seen.

The models of one scaling are fitted side by side in one walk over the bags (path_loops.py). They do not start from
one another: Pegasos' first step forgets where it started. The final fit, on all bags, starts from the mean of the
chosen candidate's models and makes shorter steps from there: the objective is not convex, and a fit from zero may end
in another valley than those that were compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bagwise._utils.mapped import is_large_map
from bagwise.bags import Bags
from bagwise.calibration import (
    N_FOLDS,
    base_rate_log_loss,
    calibrated,
    fit_logistic,
    fold_of_each_bag,
    log_loss,
    shrunk,
)
from bagwise.preprocessing import FEW_COLUMNS
from bagwise.rmi.candidates import Grid, out_of_fold
from bagwise.rmi.problem import FloatArray, Iterate, Problem, in_single_precision, lengths_differ
from bagwise.rmi.scoring import InstanceMap, View

LAMS = tuple(float(10**exponent) for exponent in np.arange(-1, -4.6, -0.5))  # from strong to weak
POOLINGS = ("normalized", "noisy-or")
# What a step to a weaker λ must gain, in nats for all bags together: next to nothing where these say anything.
PRICE_OF_A_STEP = 0.25
# The same for a Gaussian kernel: weights of columns say what a model does, so where both are as good they are kept.
PRICE_OF_A_KERNEL = 1.0
# Compared up to so many columns, with more of which a linear function is nearly always as good, and so many values of
# mapped instances, beyond which comparing takes minutes.
MOST_COLUMNS_OF_A_KERNEL = 100
MOST_VALUES_OF_A_KERNEL = 32_000_000
# Taken where a class has a single bag, so that nothing can be held out: the best fixed values on the paper's sets.
FALLBACK_LAM = 10**-2.5

# A candidate gets half the passes of the final fit, and no more than so many steps, or values to read, for all of them.
MOST_STEPS = 50_000
MOST_VALUES = 2_000_000_000
FEWEST_STEPS = 1000


@dataclass(frozen=True)
class Choice:
    """What was chosen, and from what."""

    lam: float
    view: View
    pooling: str
    calibration: FloatArray | None  # (n_problems, 2) slope and offset of each binary problem
    path: dict[str, NDArray] | None  # one entry for each candidate
    start: Iterate | None = None  # the mean of the chosen candidate's models, from which the final fit starts


@dataclass(frozen=True)
class Search:
    """What to choose from."""

    grid: Grid
    views: Sequence[View]

    def fallback(self) -> Choice:
        """What to take where nothing can be held out."""
        lam = self.grid.lams[0] if len(self.grid.lams) == 1 else FALLBACK_LAM
        return Choice(lam, self.views[0], self.grid.poolings[0], None, None)

    def choose(self, problem: Problem, map_for: Callable[[View], InstanceMap], seed: int) -> Choice:
        """Fit all candidates without each fold in turn, and compare them on the bags that they have not seen.

        Parameters
        ----------
        problem : with bags as they came, whose loss says everything but λ
        map_for : what scales and maps bags for a view
        seed : of the folds
        """
        fold = fold_of_each_bag(problem.targets, random_state=seed)
        if fold is None:
            return self.fallback()
        scores, means = [], []
        for view in self.views:
            mapping = map_for(view)
            width = mapping.n_features
            in_memory = not is_large_map(problem.bags.instances)
            bags = in_single_precision(problem.bags, mapping, width) if in_memory else problem.bags
            own = replace(problem, bags=bags, mapping=None if in_memory else mapping)
            found = [out_of_fold(self.grid, own, k, fold, width) for k in range(problem.targets.shape[1])]
            scores.append([each.scores for each in found])
            means.append(found)
        # (views, problems, poolings, lams, bags) -> (views, poolings, lams, bags, problems)
        choice, best = self._best(np.moveaxis(np.array(scores), 1, -1), problem)
        chosen = means[best[0]]
        start = Iterate(
            np.array([each.coef[best[1:]] for each in chosen], dtype=np.float64),
            np.array([each.intercept[best[1:]] for each in chosen]),
            min(each.steps for each in chosen),
        )
        return replace(choice, start=start)

    def _best(self, scores: FloatArray, problem: Problem) -> tuple[Choice, tuple[int, ...]]:
        shape, n_problems = scores.shape[:3], scores.shape[-1]
        curves, losses = np.empty((*shape, n_problems, 2)), np.empty((*shape, n_problems))
        for at in np.ndindex(*shape):
            for k in range(n_problems):
                target, weight = problem.targets[:, k], problem.weight[:, k]
                curves[(*at, k)] = fit_logistic(scores[at][:, k], target, weight)
                log_odds = calibrated(scores[at][:, [k]], curves[(*at, [k])])[:, 0]
                losses[(*at, k)] = log_loss(log_odds, target, weight)
        loss = losses.mean(axis=-1)
        kernels = np.array([view.kernel for view in self.views])
        price = PRICE_OF_A_STEP * np.arange(shape[-1]) + PRICE_OF_A_KERNEL * (kernels != "linear")[:, None, None]
        smoothed = with_neighbours(loss) + price / len(problem.bags)
        best = tuple(int(i) for i in np.unravel_index(smoothed.argmin(), shape))
        calibration = np.array(
            [
                shrunk(curves[(*best, k)], losses[(*best, k)], problem.targets[:, k], problem.weight[:, k], loss.size)
                for k in range(n_problems)
            ]
        )
        view, pooling, lam = (grid.ravel() for grid in np.indices(shape))
        path = {
            "lam": np.array(self.grid.lams)[lam],
            "scaling": np.array([str(each.scaling) for each in self.views])[view],
            "kernel": kernels[view],
            "pooling": np.array(self.grid.poolings)[pooling],
            "log_loss": loss.ravel(),
            "smoothed_log_loss": smoothed.ravel(),
            "chosen": np.arange(loss.size) == np.ravel_multi_index(best, shape),
        }
        return Choice(
            self.grid.lams[best[2]], self.views[best[0]], self.grid.poolings[best[1]], calibration, path
        ), best


def with_neighbours(loss: FloatArray) -> FloatArray:
    """Half of each value and a quarter of either neighbour along the last axis; at the ends, half of the only one.

    An end that were averaged less would have the more chance in it, and be chosen by it.
    """
    if loss.shape[-1] == 1:
        return loss
    padded = np.concatenate([loss[..., 1:2], loss, loss[..., -2:-1]], axis=-1)
    return padded[..., 1:-1] / 2 + (padded[..., :-2] + padded[..., 2:]) / 4


def lams_for(n_bags: int, passes: int) -> list[float]:
    """The λ that candidates of so many passes come near the solution of: those of no more than 1/λ steps do not.

    What fewer steps lead to depends on their number. The final fit makes more than the models of the folds, so that the
    curve fitted to their scores would not fit its own.
    """
    steps = passes * n_bags * (N_FOLDS - 1) / N_FOLDS
    return [lam for i, lam in enumerate(LAMS) if i < 2 or lam * steps >= 1]


def views_for(instances: Any, scaling: str | None, kernel: str, n_components: int) -> list[View]:
    """How the instances may be seen, the most likely first; ``scaling`` and ``kernel`` are compared where "auto".

    Unit length bends space, so that a linear function there has a bent border here. With few columns that is not
    enough: what makes a bag positive may lie in the middle of other values, and a Gaussian kernel is cheap.
    Square roots before it, as for Fisher vectors (Perronnin et al. 2010), help where columns have long tails, as
    histograms, areas and counts have: the images of Elephant and Fox.
    """
    rows, columns = instances.shape
    if scaling != "auto":
        scalings = [scaling]
    elif sparse.issparse(instances):
        scalings = ["unit", "global"] if lengths_differ(instances) else ["unit"]
    else:
        scalings = ["standard-unit", "unit", "standard" if columns <= FEW_COLUMNS else "root-unit"]
    if kernel != "auto":
        return [View(each, kernel) for each in scalings]
    views = [View(each, "linear") for each in scalings]
    if columns <= MOST_COLUMNS_OF_A_KERNEL and rows * n_components <= MOST_VALUES_OF_A_KERNEL:
        dense = scaling == "auto" and not sparse.issparse(instances)
        views.append(View("standard" if dense else scalings[-1], "rbf"))
    return views


def poolings_for(bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> Sequence[str]:
    """Both poolings, or the one that is blind to the sizes of the bags where these would be all that is learned."""
    return ["normalized"] if sizes_tell(bags, targets, weight) else POOLINGS


def sizes_tell(bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> bool:
    """Whether the number of instances in a bag alone explains most of its label: half of the base rate's log loss.

    The noisy-OR would then learn to count instances, and nothing about them.
    """
    size = np.log(bags.sizes)
    left = []
    for target, share in zip(targets.T, weight.T, strict=True):
        curves = [(sign, *fit_logistic(sign * size, target, share)) for sign in (1, -1)]
        losses = [log_loss(slope * sign * size + offset, target, share) for sign, slope, offset in curves]
        left.append(min(losses) / base_rate_log_loss(target, share))
    return float(np.mean(left)) < 0.5


def passes_for(bags: Bags, wanted: int) -> int:
    """Passes over the bags that a candidate gets, where the final fit makes ``wanted``."""
    stored = bags.instances.nnz if sparse.issparse(bags.instances) else bags.instances.size
    most = min(MOST_STEPS // len(bags), MOST_VALUES // max(1, stored))
    fewest = max(2, -(-FEWEST_STEPS // len(bags)))
    return max(1, min((wanted + 1) // 2, max(most, fewest)))
