"""Multiple-instance learning, and object discovery in photographs with image-level labels."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bagwise.bag_space import MIGraphSVC, MiGraphSVC, MIKernelSVC, PPMMKernelSVC
    from bagwise.bag_space.neighbors import CitationKNN
    from bagwise.bags import Bags
    from bagwise.embedded_space.fisher import MiFV, MiFVTransformer
    from bagwise.embedded_space.miles import MILES, MILESTransformer
    from bagwise.embedded_space.vlad import MiVLAD, MiVLADTransformer
    from bagwise.instance_space.apr import APR
    from bagwise.instance_space.boosting import MILBoost
    from bagwise.instance_space.diverse_density import EMDD, DiverseDensity
    from bagwise.instance_space.forest import MIForest
    from bagwise.instance_space.multifold import MultiFoldSVC
    from bagwise.instance_space.single import SingleInstance
    from bagwise.instance_space.svm import MISVC, MiSVC
    from bagwise.persistence import load, save
    from bagwise.preprocessing import InstanceNystroem, InstanceScaler, OnInstances
    from bagwise.rmi import RMISVC

__version__ = "0.1.0"

__all__ = [
    "APR",
    "EMDD",
    "MILES",
    "MISVC",
    "RMISVC",
    "Bags",
    "CitationKNN",
    "DiverseDensity",
    "InstanceNystroem",
    "InstanceScaler",
    "MIForest",
    "MIGraphSVC",
    "MIKernelSVC",
    "MILBoost",
    "MILESTransformer",
    "MiFV",
    "MiFVTransformer",
    "MiGraphSVC",
    "MiSVC",
    "MiVLAD",
    "MiVLADTransformer",
    "MultiFoldSVC",
    "OnInstances",
    "PPMMKernelSVC",
    "SingleInstance",
    "load",
    "save",
]

# What is public is imported when it is first asked for, so that the command line answers at once: scikit-learn alone
# takes a second. The imports above tell the same to tools that read types.
_FROM = {
    "bagwise.bag_space": "MIGraphSVC MiGraphSVC MIKernelSVC PPMMKernelSVC",
    "bagwise.bag_space.neighbors": "CitationKNN",
    "bagwise.bags": "Bags",
    "bagwise.embedded_space.fisher": "MiFV MiFVTransformer",
    "bagwise.embedded_space.miles": "MILES MILESTransformer",
    "bagwise.embedded_space.vlad": "MiVLAD MiVLADTransformer",
    "bagwise.instance_space.apr": "APR",
    "bagwise.instance_space.boosting": "MILBoost",
    "bagwise.instance_space.diverse_density": "EMDD DiverseDensity",
    "bagwise.instance_space.forest": "MIForest",
    "bagwise.instance_space.multifold": "MultiFoldSVC",
    "bagwise.instance_space.single": "SingleInstance",
    "bagwise.instance_space.svm": "MISVC MiSVC",
    "bagwise.persistence": "load save",
    "bagwise.preprocessing": "InstanceNystroem InstanceScaler OnInstances",
    "bagwise.rmi": "RMISVC",
}


def __getattr__(name: str) -> Any:
    for module, names in _FROM.items():
        if name in names.split():
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")  # bagwise.datasets after nothing but "import bagwise"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
