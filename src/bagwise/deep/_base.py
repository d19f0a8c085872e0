"""What the neural networks share as bag classifiers."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bagwise._utils.optional import require
from bagwise._utils.sklearn_private import Interval
from bagwise.bags import Bags
from bagwise.base import FloatArray, InstanceScorer
from bagwise.preprocessing import SCALING_CONSTRAINT, InstanceScaler

if TYPE_CHECKING:
    from bagwise.deep._networks import Network

# Bags are dealt into at least this many parts, of which each member holds out one.
FEWEST_PARTS = 5


class DeepClassifier(InstanceScorer):
    """A few networks trained side by side, each stopped by a part of the bags that it has not seen; their mean.

    Subclasses say which network. An instance has the score of a bag of which it is the only one.
    """

    accepts_sparse = False

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "hidden": [tuple, list],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "scaling": SCALING_CONSTRAINT,
        "device": [str],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 128, 64),
        *,
        dropout: float = 0.0,
        n_estimators: int = 1,
        epochs: int = 100,
        patience: int = 8,
        batch_size: int = 16,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        scaling: str | None = "standard",
        device: str = "cpu",
        class_weight: dict | str | None = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.n_estimators = n_estimators
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.scaling = scaling
        self.device = device
        self.class_weight = class_weight
        self.positive = positive
        self.random_state = random_state

    @abstractmethod
    def _network(self) -> Network:
        """The network with this estimator's parameters."""

    def _fit(self, bags: Bags, targets: NDArray[np.bool_], weight: FloatArray) -> None:
        self._validate_params()
        if not self.hidden or not all(isinstance(width, Integral) and width > 0 for width in self.hidden):
            raise ValueError(f"hidden must name the width of one or more layers, such as (256, 128), not {self.hidden}")
        self._check_device()
        from bagwise.deep._training import Plan, train

        rng = check_random_state(self.random_state)
        self.scaler_ = InstanceScaler(self.scaling).fit(bags, sample_weight=weight)
        held_out = np.concatenate([self._held_out(target, rng) for target in targets.T])
        plan = Plan(
            self.epochs,
            self.patience,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            self.device,
            int(rng.randint(np.iinfo(np.int32).max)),
        )
        self.weights_, losses, self.n_epochs_ = train(
            self._network(),
            self.scaler_.transform(bags),
            np.repeat(targets.T, self.n_estimators, axis=0),
            weight / weight.mean(),
            held_out,
            plan,
        )
        self.validation_loss_ = losses.reshape(-1, self.n_estimators)

    def _held_out(self, target: NDArray[np.bool_], rng: np.random.RandomState) -> NDArray[np.bool_]:
        """(n_estimators, n_bags) what each member is stopped by: parts with about the same share of positive bags."""
        n_parts = max(FEWEST_PARTS, self.n_estimators)
        if len(target) < 2 * n_parts:  # too few to spare any
            return np.zeros((self.n_estimators, len(target)), dtype=bool)
        shuffled = rng.permutation(len(target))
        by_class = shuffled[np.argsort(target[shuffled], kind="stable")]
        part = np.empty(len(target), dtype=np.int64)
        part[by_class] = np.arange(len(target)) % n_parts
        return part == np.arange(self.n_estimators)[:, None]

    def _check_device(self) -> None:
        torch = require("torch", extra="deep")
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise ValueError(f"device is {self.device!r}, but torch finds no such device here: use device='cpu'")

    def _bag_scores(self, bags: Bags) -> FloatArray:
        self._check_device()
        from bagwise.deep._training import scores

        of_members = scores(self._network(), self.weights_, self.scaler_.transform(bags), self.device)
        return of_members.reshape(-1, self.n_estimators, len(bags)).mean(axis=1).T

    def _instance_scores(self, bags: Bags) -> FloatArray:
        return self._bag_scores(Bags.from_arrays(bags.instances, np.arange(bags.n_instances + 1), check_finite=False))
