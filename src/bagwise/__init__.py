"""Multiple-instance learning, and object discovery in photographs with image-level labels."""

from bagwise.bags import Bags
from bagwise.instance_space.diverse_density import EMDD, DiverseDensity
from bagwise.persistence import load, save
from bagwise.preprocessing import InstanceNystroem, InstanceScaler, OnInstances
from bagwise.rmi import RMISVC

__version__ = "0.1.0"

__all__ = [
    "EMDD",
    "RMISVC",
    "Bags",
    "DiverseDensity",
    "InstanceNystroem",
    "InstanceScaler",
    "OnInstances",
    "load",
    "save",
]
