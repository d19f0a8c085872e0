# ruff: noqa: F401 - the imports are for tools that read types; what is public follows from the registry
"""Multiple-instance learning, and object discovery in images with image-level labels."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bagwise.registry import METHODS

if TYPE_CHECKING:
    from bagwise.api import Discovery, detect, discover, from_fiftyone
    from bagwise.bag_space import CitationKNN, MIGraphSVC, MiGraphSVC, MIKernelSVC, PPMMKernelSVC
    from bagwise.bags import Bags
    from bagwise.base import PositiveClassWarning, RowsNotBagsWarning
    from bagwise.benchmark.compare import compare
    from bagwise.deep import AttentionMIL, MINet, MiNet, RMINet
    from bagwise.embedded_space.fisher import MiFV, MiFVTransformer
    from bagwise.embedded_space.miles import MILES, MILESTransformer
    from bagwise.embedded_space.vlad import MiVLAD, MiVLADTransformer
    from bagwise.instance_space.apr import APR
    from bagwise.instance_space.boosting import MILBoost
    from bagwise.instance_space.citing import CitationVote
    from bagwise.instance_space.dd_svm import DDSVC
    from bagwise.instance_space.diverse_density import EMDD, DiverseDensity
    from bagwise.instance_space.forest import MIForest
    from bagwise.instance_space.multifold import MultiFoldSVC
    from bagwise.instance_space.single import SingleInstance
    from bagwise.instance_space.svm import MISVC, MiSVC
    from bagwise.persistence import load, save
    from bagwise.preprocessing import InstanceNystroem, InstanceScaler, OnInstances
    from bagwise.rmi import RMISVC

__version__ = "0.1.0"

# What is public is imported when it is first asked for, so that the command line answers at once: scikit-learn alone
# takes a second. The imports above tell the same to tools that read types. Methods are those of the registry.
_FROM = {
    "bagwise.api": "Discovery detect discover from_fiftyone",
    "bagwise.bags": "Bags",
    "bagwise.base": "PositiveClassWarning RowsNotBagsWarning",
    "bagwise.benchmark.compare": "compare",
    "bagwise.embedded_space.fisher": "MiFVTransformer",
    "bagwise.embedded_space.miles": "MILESTransformer",
    "bagwise.embedded_space.vlad": "MiVLADTransformer",
    "bagwise.persistence": "load save",
    "bagwise.preprocessing": "InstanceNystroem InstanceScaler OnInstances",
}
_WHERE = {name: module for module, names in _FROM.items() for name in names.split()}
_WHERE |= {name: method.module for name, method in METHODS.items()}

# What works on images needs the extra "vision"; without it, "from bagwise import *" leaves it out.
_VISION = set(_FROM["bagwise.api"].split())

__all__ = sorted(name for name in _WHERE if name not in _VISION or find_spec("pyarrow"))


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        try:
            value = getattr(import_module(_WHERE[name]), name)
        except ModuleNotFoundError as error:
            if name not in _VISION:
                raise
            raise ImportError(
                f"bagwise.{name} needs the package {error.name!r}, which is not installed: "
                "pip install 'bagwise[vision]'"
            ) from error
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")  # bagwise.datasets after nothing but "import bagwise"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
