"""The methods of bagwise, with their default parameters."""

from functools import partial

import measuring

import bagwise
from bagwise.all_estimators import classifiers, deep_classifiers


def fit(kind, tables, y):
    seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
    return kind(**seed).fit(bagwise.Bags(tables), y).predict


METHODS = {kind.__name__: partial(fit, kind) for kind in [*classifiers(), *deep_classifiers()]}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: bagwise.__version__)
