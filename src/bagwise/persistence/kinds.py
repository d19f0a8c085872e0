"""Which classes a model file may name: bagwise's own, and those of scikit-learn that are made of plain attributes."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bagwise.registry import METHODS

# Rooms of the library whose estimators and data classes are parts of models. Nothing in them acts when it is made.
ROOMS = (
    "bagwise.preprocessing",
    "bagwise._utils.mixture",
    "bagwise.rmi",
    "bagwise.instance_space",
    "bagwise.embedded_space",
    "bagwise.bag_space",
    "bagwise.deep",
)
# Classes of scikit-learn besides its estimators; scorers and splitters are what a finished search remembers.
SKLEARN_PARTS = frozenset({"sklearn.calibration._CalibratedClassifier", "sklearn.utils._bunch.Bunch"})
SKLEARN_MODULES = ("sklearn.metrics._scorer", "sklearn.model_selection._split")


def name_of(kind: type) -> str | None:
    """The name by which a file can ask for the class again, or None for one that no file may name."""
    entry = METHODS.get(kind.__name__)
    if entry is not None and entry.load() is kind:
        return entry.name  # wherever the class moves
    full = f"{kind.__module__}.{kind.__qualname__}"
    return full if _may_be_named(full, kind) else None


def named(name: str) -> type | None:
    """The class of that name, or None for one that no file may name."""
    if name in METHODS:
        return METHODS[name].load()
    module = name.rpartition(".")[0]
    if not (_in_rooms(module) or module.split(".")[0] == "sklearn"):
        return None
    kind = _found(name)
    return kind if isinstance(kind, type) and _may_be_named(name, kind) else None


def _may_be_named(full: str, kind: type) -> bool:
    if f"{kind.__module__}.{kind.__qualname__}" != full:  # an alias, or something imported from elsewhere
        return False
    if _in_rooms(kind.__module__):
        return issubclass(kind, BaseEstimator) or is_dataclass(kind)
    if kind.__module__.split(".")[0] != "sklearn":
        return False
    return issubclass(kind, BaseEstimator) or full in SKLEARN_PARTS or kind.__module__ in SKLEARN_MODULES


def _in_rooms(module: str) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in ROOMS)


def metric_name(value: Any) -> str | None:
    """The name of a function of scikit-learn's metrics, which scorers hold; None for all other functions."""
    if isinstance(value, FunctionType) and value.__module__.startswith("sklearn.metrics."):
        full = f"{value.__module__}.{value.__qualname__}"
        return full if metric(full) is value else None
    return None


def metric(name: str) -> Any:
    """The function of that name, or None."""
    found = _found(name) if name.startswith("sklearn.metrics.") else None
    return found if isinstance(found, FunctionType) and f"{found.__module__}.{found.__qualname__}" == name else None


def _found(name: str) -> Any:
    module, _, last = name.rpartition(".")
    try:
        return getattr(import_module(module), last, None)
    except ImportError:
        return None


def scalar_type(name: str) -> type | None:
    """A type of NumPy's numbers by its name, such as float64."""
    kind = getattr(np, name, None) if name.isidentifier() else None
    return kind if isinstance(kind, type) and issubclass(kind, np.number) else None
