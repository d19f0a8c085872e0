"""The methods of bagwise with default settings, but without calibration, which no peer does."""

from functools import partial

import measuring

import bagwise
from bagwise.registry import classifiers


def fit(kind, tables, y):
    known = kind().get_params()
    given = {name: value for name, value in {"random_state": 0, "calibrate": False}.items() if name in known}
    return kind(**given).fit(bagwise.Bags(tables), y).predict


def fit_with_fixed_lam(tables, y):
    """RMI-SVM without a choice of λ, as the plain one: the same λ, β, margin and number of steps."""
    return bagwise.RMISVC(3e-4, beta=5.0, margin=1.0, epochs=100, random_state=0).fit(bagwise.Bags(tables), y).predict


METHODS = {kind.__name__: partial(fit, kind) for kind in classifiers()} | {"RMISVC, fixed lam": fit_with_fixed_lam}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: bagwise.__version__)
