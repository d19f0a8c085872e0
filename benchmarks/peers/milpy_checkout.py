"""MILpy, which has no release: from a checkout whose parent folder is on PYTHONPATH."""

from importlib import import_module

import measuring
import numpy as np


def fit(name, tables, y):
    kind = getattr(import_module(f"MILpy.Algorithms.{name}"), name)
    model = kind()
    model.fit(tables, np.where(y, 1.0, -1.0))

    def predict(bags):
        answer = model.predict(bags)
        if isinstance(answer, tuple):  # EM-DD gives its scores and the labels -1 and 1; MILBoost probabilities
            return np.asarray(answer[1]).ravel() > 0
        return np.asarray(answer).ravel() > 0.5

    return predict


METHODS = {
    "EM-DD": lambda tables, y: fit("EMDD", tables, y),
    "MILBoost": lambda tables, y: fit("MILBoost", tables, y),
}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: "checkout")
