"""Calibration error against a loop over bins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bagwise.metrics.probability import expected_calibration_error


@given(st.integers(0, 2**32 - 1), st.integers(1, 50), st.integers(2, 4), st.integers(1, 15))
def test_as_a_loop_over_bins(seed, n, n_classes, n_bins):
    rng = np.random.RandomState(seed)
    p = rng.dirichlet(np.ones(n_classes), n)
    y = rng.randint(n_classes, size=n)
    total = 0.0
    for k in range(n_bins):
        inside = [i for i in range(n) if min(int(p[i].max() * n_bins), n_bins - 1) == k]
        if inside:
            right = np.mean([p[i].argmax() == y[i] for i in inside])
            total += len(inside) / n * abs(right - np.mean([p[i].max() for i in inside]))
    assert np.isclose(expected_calibration_error(y, p, n_bins), total)


def test_calibrated_probabilities_have_little_error():
    rng = np.random.RandomState(0)
    p = rng.rand(20000)
    y = (rng.rand(20000) < p).astype(int)
    assert expected_calibration_error(y, np.column_stack([1 - p, p])) < 0.02
    sure = (p > 0.5).astype(float)
    assert expected_calibration_error(y, np.column_stack([1 - sure, sure])) > 0.2
