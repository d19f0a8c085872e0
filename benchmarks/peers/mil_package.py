"""mil 1.0.5: MILES and APR."""

import sys
from types import ModuleType

import measuring


def stand_in_for_tensorflow():
    """Let ``import mil.models`` pass.

    mil imports TensorFlow's wrappers for scikit-learn wherever any model is imported; TensorFlow 2.12 was the last to
    have them. MILES and APR use nothing of it, so that empty names in its place do not change what is measured.
    """

    class Anything(ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    names = ("", ".keras", ".keras.layers", ".keras.metrics", ".keras.backend", ".keras.wrappers",
             ".keras.wrappers.scikit_learn")  # fmt: skip
    for name in names:
        module = Anything("tensorflow" + name)
        module.__all__ = []
        sys.modules["tensorflow" + name] = module
    sys.modules["tensorflow"].keras = sys.modules["tensorflow.keras"]
    sys.modules["tensorflow.keras"].layers = sys.modules["tensorflow.keras.layers"]


def fit_as_released(tables, y):
    from mil.models import MILES

    return MILES().fit(tables, y).predict


def fit_miles(tables, y):
    stand_in_for_tensorflow()
    from mil.models import MILES

    return MILES().fit(tables, y).predict


def fit_apr(tables, y):
    stand_in_for_tensorflow()
    from mil.models.instance_level.apr import APR

    return APR(verbose=0).fit(tables, y).predict


METHODS = {
    "MILES as released": fit_as_released,
    "MILES": fit_miles,
    "APR": fit_apr,
}

if __name__ == "__main__":
    from importlib.metadata import version

    measuring.main(METHODS, lambda: version("mil"))
