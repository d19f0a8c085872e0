"""LIBSVM's machines in model files: their arrays, held against each other before compiled code follows them."""

from __future__ import annotations

from typing import Any

import numpy as np


class NotAMachine(ValueError):
    """The arrays do not belong together."""


def check_machine(value: Any) -> None:
    """Nothing for other objects; for a fitted machine, that every array is as long as LIBSVM takes it to be.

    scikit-learn hands pointers to it and looks at the number of support vectors alone.
    """
    if not hasattr(value, "_n_support") or not hasattr(value, "_dual_coef_"):
        return
    n_groups, n_vectors = len(value._n_support), len(value.support_)
    n_pairs = n_groups * (n_groups - 1) // 2
    precomputed = value.kernel == "precomputed" or callable(value.kernel)
    rows = 0 if precomputed else n_vectors
    right = (
        value._dual_coef_.shape == (n_groups - 1, n_vectors)
        and value.support_vectors_.shape[0] == rows
        and np.size(value._intercept_) == n_pairs
        and np.size(value._probA) in (0, n_pairs)
        and np.size(value._probB) == np.size(value._probA)
        and value.support_.dtype.kind == "i"
        and np.all((value.support_ >= 0) & (value.support_ < value.shape_fit_[0]))
    )
    if not right:
        raise NotAMachine(f"the arrays of a {type(value).__name__} do not belong together")
