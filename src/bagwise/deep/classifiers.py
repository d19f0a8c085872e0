"""The neural networks over bags as scikit-learn classifiers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bagwise._utils.sklearn_private import Interval, StrOptions
from bagwise.base import FloatArray
from bagwise.deep._base import DeepClassifier

if TYPE_CHECKING:
    from bagwise.deep._networks import AttentionNetwork, EmbeddingNetwork, InstanceNetwork, RelaxedNetwork


class AttentionMIL(DeepClassifier):
    """Attention-based deep multiple-instance learning.

    A bag is the weighted mean of its instances' hidden units, with weights (attention) that are learned together with
    everything else; one linear unit classifies it.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    gated : bool
        Multiply the attention's tanh units by sigmoid ones.
    attention_units : int
        Hidden units of the attention.
    dropout : float
        Share of hidden units left out at random in each training step.
    n_estimators : int, default=1
        Networks trained side by side and averaged. Each learns from all but one part of the bags (a fifth, or one in
        n_estimators if that is less), another part for each, and is kept as it was when its loss on that part was
        lowest. Five cost more than five times as much as one, and are better by some points where bags are few.
    epochs, patience : int
        Most passes over the bags, and passes without a better loss of any member after which training ends.
    batch_size : int
        Bags in each step.
    learning_rate, weight_decay : float
        Of the AdamW optimiser.
    scaling : {"auto", "standard", "unit", "standard-unit", "root-unit", "global", None}
        What to do with the instances first; see `InstanceScaler`.
    device : str
        Where torch computes: "cpu", "cuda", "cuda:1".
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ : dict of arrays with a leading axis of members, those of each binary problem side by side
    validation_loss_ : (n_problems, n_estimators) array
        Best loss on the held-out bags.
    n_epochs_ : int

    References
    ----------
    Maximilian Ilse, Jakub Tomczak, Max Welling: Attention-based Deep Multiple Instance Learning. ICML 2018.

    Examples
    --------
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.deep import AttentionMIL
    >>> bags, y = load_musk1()
    >>> model = AttentionMIL(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **DeepClassifier._parameter_constraints,
        "gated": ["boolean"],
        "attention_units": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 128, 64),
        *,
        gated: bool = True,
        attention_units: int = 64,
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
        super().__init__(
            hidden,
            dropout=dropout,
            n_estimators=n_estimators,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            scaling=scaling,
            device=device,
            class_weight=class_weight,
            positive=positive,
            random_state=random_state,
        )
        self.gated = gated
        self.attention_units = attention_units

    def _network(self) -> AttentionNetwork:
        from bagwise.deep._networks import AttentionNetwork

        return AttentionNetwork(tuple(self.hidden), self.dropout, self.attention_units, self.gated)

    def attention(self, X: Any) -> FloatArray:
        """Weight of every instance in its bag, mean over the members.

        Returns
        -------
        (n_instances,) array that sums to one in each bag, or (n_instances, n_classes) with more than two classes
        """
        bags = self._checked(X)
        self._check_device()
        from bagwise.deep._training import attention

        of_members = attention(self._network(), self.weights_, self.scaler_.transform(bags), self.device)
        return self._one_or_all(of_members.reshape(-1, self.n_estimators, bags.n_instances).mean(axis=1).T)


class MiNet(DeepClassifier):
    """mi-Net: a network that scores instances, and a bag by pooling their scores.

    Parameters that are not listed, and the attributes, are those of `AttentionMIL`.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    pooling : {"lse", "max", "mean"}, default="lse"
        How log-odds of instances become those of the bag: log-mean-exp, the highest, or the mean. The highest lets one
        instance of each bag learn at a time, and on a few hundred bags often learns nothing.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    References
    ----------
    Xinggang Wang, Yongluan Yan, Peng Tang, Xiang Bai, Wenyu Liu: Revisiting Multiple Instance Neural Networks.
    Pattern Recognition 2018.

    Examples
    --------
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.deep import MiNet
    >>> bags, y = load_musk1()
    >>> model = MiNet(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **DeepClassifier._parameter_constraints,
        "pooling": [StrOptions({"max", "mean", "lse"})],
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 128, 64),
        *,
        pooling: str = "lse",
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
        super().__init__(
            hidden,
            dropout=dropout,
            n_estimators=n_estimators,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            scaling=scaling,
            device=device,
            class_weight=class_weight,
            positive=positive,
            random_state=random_state,
        )
        self.pooling = pooling

    def _network(self) -> InstanceNetwork:
        from bagwise.deep._networks import InstanceNetwork

        return InstanceNetwork(tuple(self.hidden), self.dropout, self.pooling)


class MINet(DeepClassifier):
    """MI-Net: hidden units of the instances, pooled over the bag and then classified.

    Parameters that are not listed, and the attributes, are those of `AttentionMIL`.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    pooling : {"max", "mean"}
        How the hidden units of instances become those of the bag.
    deep_supervision : bool
        Pool and classify after every hidden layer, not the last one alone; the mean of these log-odds decides.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    References
    ----------
    Xinggang Wang, Yongluan Yan, Peng Tang, Xiang Bai, Wenyu Liu: Revisiting Multiple Instance Neural Networks.
    Pattern Recognition 2018.

    Examples
    --------
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.deep import MINet
    >>> bags, y = load_musk1()
    >>> model = MINet(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **DeepClassifier._parameter_constraints,
        "pooling": [StrOptions({"max", "mean"})],
        "deep_supervision": ["boolean"],
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 128, 64),
        *,
        pooling: str = "max",
        deep_supervision: bool = True,
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
        super().__init__(
            hidden,
            dropout=dropout,
            n_estimators=n_estimators,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            scaling=scaling,
            device=device,
            class_weight=class_weight,
            positive=positive,
            random_state=random_state,
        )
        self.pooling = pooling
        self.deep_supervision = deep_supervision

    def _network(self) -> EmbeddingNetwork:
        from bagwise.deep._networks import EmbeddingNetwork

        return EmbeddingNetwork(tuple(self.hidden), self.dropout, self.pooling, self.deep_supervision)


class RMINet(DeepClassifier):
    """RMI-SVM's relaxed objective on top of a small network.

    The score of an instance comes from a network in place of a linear function; the rest is `RMISVC`: a bag is
    positive with the noisy-OR of its instances, and a hinge keeps instances away from the border.

    Parameters that are not listed, and the attributes, are those of `AttentionMIL`; ``weight_decay`` takes the
    place of λ.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    beta : float
        β, the weight of the bag loss against the instance loss.
    margin : float
        m0, the margin that instances should keep from the border.
    class_weight : dict, "balanced" or None, default None
        Factors of the weights of bags by their label.
    positive : label, default None
        Of two labels, the one that a single instance causes; by default the one that sorts last.

    References
    ----------
    Xinggang Wang, Zhuotun Zhu, Cong Yao, Xiang Bai: Relaxed Multiple-Instance SVM with Application to Object
    Discovery. ICCV 2015.

    Examples
    --------
    >>> from bagwise.datasets import load_musk1
    >>> from bagwise.deep import RMINet
    >>> bags, y = load_musk1()
    >>> model = RMINet(random_state=0).fit(bags, y)
    >>> model.predict(bags[45:49])  # two musks, two that are none
    array([1, 1, 0, 0])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **DeepClassifier._parameter_constraints,
        "beta": [Interval(Real, 0, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 128, 64),
        *,
        beta: float = 5.0,
        margin: float = 1.0,
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
        super().__init__(
            hidden,
            dropout=dropout,
            n_estimators=n_estimators,
            epochs=epochs,
            patience=patience,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            scaling=scaling,
            device=device,
            class_weight=class_weight,
            positive=positive,
            random_state=random_state,
        )
        self.beta = beta
        self.margin = margin

    def _network(self) -> RelaxedNetwork:
        from bagwise.deep._networks import RelaxedNetwork

        return RelaxedNetwork(tuple(self.hidden), self.dropout, self.beta, self.margin)
