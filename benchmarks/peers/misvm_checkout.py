"""misvm, which has no release: from a checkout on PYTHONPATH."""

import measuring
import numpy as np


def fit(name, tables, y, **options):
    import misvm

    model = getattr(misvm, name)(C=1.0, verbose=False, **options)
    model.fit(tables, np.where(y, 1.0, -1.0))
    return lambda bags: np.asarray(model.predict(bags)).ravel() > 0


def fit_nsk(tables, y):
    return fit("NSK", tables, y, kernel="rbf", gamma=1 / (2 * tables[0].shape[1]))


METHODS = {
    "MI-SVM": lambda tables, y: fit("MISVM", tables, y, kernel="linear"),
    "mi-SVM": lambda tables, y: fit("miSVM", tables, y, kernel="linear"),
    "NSK": fit_nsk,
}

if __name__ == "__main__":
    measuring.main(METHODS, lambda: "checkout")
