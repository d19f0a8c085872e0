"""sawmil 0.2.1: the normalised set kernel, sMIL and sAwMIL, with the solvers that need no licence."""

import measuring
import numpy as np


def fit_nsk(solver, tables, y):
    from sawmil import NSK, RBF

    gamma = 1 / (2 * tables[0].shape[1])
    model = NSK(C=10.0, kernel=RBF(gamma=gamma), normalizer="featurespace", solver=solver, scale_C=False)
    model.fit(_bags(tables, y))
    return lambda bags: np.asarray(model.predict(_bags(bags, np.zeros(len(bags))))) > 0


def fit_smil(tables, y):
    from sawmil import Linear, sMIL

    # Linear(), because the documented kernel="linear" fails in this release ('str' object has no attribute 'fit').
    model = sMIL(C=1.0, kernel=Linear(), normalizer="average", solver="osqp").fit(_bags(tables, y))
    return lambda bags: np.asarray(model.predict(_bags(bags, np.zeros(len(bags))))) > 0


def fit_sawmil(tables, y):
    from sawmil import Linear, sAwMIL

    model = sAwMIL(C=1.0, kernel=Linear(), solver="osqp").fit(_bags(tables, y))
    return lambda bags: np.asarray(model.predict(_bags(bags, np.zeros(len(bags))))) > 0


def _bags(tables, y):
    from sawmil import Bag

    return [Bag(X=table, y=float(label)) for table, label in zip(tables, y)]


METHODS = {
    "NSK, OSQP": lambda tables, y: fit_nsk("osqp", tables, y),
    "NSK, DAQP": lambda tables, y: fit_nsk("daqp", tables, y),
    "sMIL, OSQP": fit_smil,
    "sAwMIL, OSQP": fit_sawmil,
}

if __name__ == "__main__":
    from importlib.metadata import version

    measuring.main(METHODS, lambda: version("sawmil"))
