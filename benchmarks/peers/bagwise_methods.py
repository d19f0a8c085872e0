"""The methods of bagwise with default settings, but without calibration, which no peer does."""

from functools import partial

import measuring

import bagwise
from bagwise.registry import classifiers


def fit(kind, tables, y):
    known = kind().get_params()
    given = {name: value for name, value in {"random_state": 0, "calibrate": False}.items() if name in known}
    return kind(**given).fit(bagwise.Bags(tables), y).predict


METHODS = {kind.__name__: partial(fit, kind) for kind in classifiers()}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: bagwise.__version__)
