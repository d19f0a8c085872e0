"""Import of optional parts, with an error that says how to get them."""

from importlib import import_module
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import ``module``, or say which extra of bagwise brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ImportError(
            f"this needs the package '{module}', which is not installed: pip install 'bagwise[{extra}]'"
        ) from error
