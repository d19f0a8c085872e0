"""Multiple-instance learning, and object discovery in photographs with image-level labels."""

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
