"""What bagwise uses of scikit-learn besides its public names: all of it is here, so that a move breaks one file.

Writing these again would be worse: users know scikit-learn's sentences about wrong parameters, and its checks of
estimators ask for the declarations. ``make newest`` tries pre-releases of scikit-learn.
"""

import sklearn

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils._array_api import get_namespace
    from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
    from sklearn.utils._set_output import _wrap_data_with_container as wrap_data_with_container
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight

    if not hasattr(BaseEstimator, "_validate_params"):
        raise ImportError("BaseEstimator._validate_params is gone")
except ImportError as error:
    raise ImportError(
        f"scikit-learn {sklearn.__version__} no longer has a name that this bagwise needs ({error}): "
        "install the scikit-learn that constraints.txt names, or a later bagwise"
    ) from error

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_sample_weight",
    "get_namespace",
    "tree_and_node_type",
    "wrap_data_with_container",
]


def tree_and_node_type() -> tuple:
    """The compiled part of decision trees, and the type of its nodes; imported late, because it is slow to import."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    return Tree, NODE_DTYPE
