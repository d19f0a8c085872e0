"""Tensors in, tensors out, as scikit-learn's array API dispatch has it.

Scores are computed where the tensors are, in their own precision. What is small, one score for each instance, then
comes to NumPy, where bags are scored as ever, and the answer goes back as a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from bagwise._utils.sklearn_private import get_namespace
from bagwise.bag_input import offsets_of
from bagwise.base import FloatArray
from bagwise.preprocessing import UNIT_SCALINGS, InstanceNystroem, InstanceScaler

VALUES_AT_ONCE = 1 << 26  # of scaled and mapped instances, so that memory stays bounded


@dataclass
class TensorBags:
    """Bags whose instances are a tensor on any device; there is no prior."""

    instances: Any  # (n_instances, d), of float32 or float64
    offsets: NDArray[np.int64]
    xp: Any  # the namespace of the tensor's functions


def _is_tensor(x: Any) -> bool:
    return hasattr(x, "device") and hasattr(x, "ndim") and not isinstance(x, np.ndarray)


def _tensors(X: Any) -> bool:
    """Whether these are a tensor or a list of tensors."""
    return _is_tensor(X[0] if isinstance(X, (list, tuple)) and len(X) else X)


def dispatched(X: Any) -> bool:
    """Whether these are tensors, and scikit-learn was told to answer with tensors."""
    return bool(get_config()["array_api_dispatch"]) and _tensors(X)


def as_arrays(X: Any) -> Any:
    """Tensors, or a list of them, as NumPy arrays; anything else as it is."""
    if not _tensors(X):
        return X
    if isinstance(X, (list, tuple)):
        return [as_arrays(part) for part in X]
    return np.asarray(X.cpu() if hasattr(X, "cpu") else X)


def tensor_bags(X: Any) -> TensorBags:
    """A tensor (n, m, d) or (n, d), or a list of tensors (m_i, d), as bags; nothing but a list is copied."""
    parts = list(X) if isinstance(X, (list, tuple)) else [X]
    xp, _ = get_namespace(*parts)
    if isinstance(X, (list, tuple)):
        offsets = offsets_of([tuple(part.shape) for part in parts])
        x = xp.concat(parts)
    elif X.ndim == 3:
        offsets = offsets_of([tuple(X.shape[1:])] * X.shape[0])
        x = xp.reshape(X, (-1, X.shape[2]))
    elif X.ndim == 2:
        offsets, x = np.arange(X.shape[0] + 1), X
    else:
        raise ValueError(f"bags need a tensor of two or three dimensions, not {X.ndim}")
    if x.dtype not in (xp.float32, xp.float64):
        x = xp.astype(x, xp.float32 if xp.isdtype(x.dtype, "real floating") else xp.float64)
    _check_finite(x, offsets, xp)
    return TensorBags(x, offsets, xp)


def _check_finite(x: Any, offsets: NDArray[np.int64], xp: Any) -> None:
    finite = xp.all(xp.isfinite(x), axis=1)
    if not bool(xp.all(finite)):
        row = int(np.flatnonzero(~as_arrays(finite))[0])
        bag = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"bag {bag}, row {row - int(offsets[bag])} holds NaN or infinity: remove or impute such values first"
        )


def linear_scores(
    bags: TensorBags,
    scaler: InstanceScaler,
    kernel_map: InstanceNystroem | None,
    coef: FloatArray,
    intercept: FloatArray,
) -> FloatArray:
    """(n_instances, n_problems) scores of scaled and mapped instances, computed on their device."""
    xp, x = bags.xp, bags.instances

    def put(values: np.ndarray) -> Any:
        return xp.asarray(values, dtype=x.dtype, device=x.device)

    def mapped(rows: Any) -> Any:
        if scaler.scaling_ == "root-unit":
            away = rows - put(scaler.centre_) if scaler.centre_ is not None else rows
            rows = xp.sign(away) * xp.sqrt(xp.abs(away))
        if scaler.mean_ is not None:
            rows = rows - put(scaler.mean_)
        if scaler.scale_ is not None:
            rows = rows / put(scaler.scale_)
        if scaler.scaling_ in UNIT_SCALINGS:
            norm = xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True))
            rows = rows / xp.where(norm > 0, norm, xp.ones_like(norm))
        if kernel_map is None:
            return rows
        landmarks = put(kernel_map.landmarks_)
        squares = xp.sum(rows * rows, axis=1, keepdims=True) + xp.sum(landmarks * landmarks, axis=1)
        distances = squares - 2 * (rows @ landmarks.T)
        kernel = xp.exp(-kernel_map.gamma_ * xp.where(distances > 0, distances, xp.zeros_like(distances)))
        return kernel @ put(kernel_map.normalization_)

    step = max(1, VALUES_AT_ONCE // max(x.shape[1], coef.shape[1]))
    parts = [
        as_arrays(mapped(x[start : start + step, :]) @ put(coef.T) + put(intercept))
        for start in range(0, x.shape[0], step)
    ]
    return np.concatenate(parts).astype(np.float64)


def like(X: Any, values: np.ndarray) -> Any:
    """An answer about tensors as a tensor on their device, numbers in their precision; text stays NumPy."""
    if values.dtype.kind not in "fiub":
        return values
    first = X[0] if isinstance(X, (list, tuple)) else X
    xp, _ = get_namespace(first)
    if values.dtype.kind == "f":
        double = first.dtype == xp.float64 or not xp.isdtype(first.dtype, "real floating")
        values = values.astype(np.float64 if double else np.float32)
    return xp.asarray(np.ascontiguousarray(values), device=first.device)
