"""Methods that score instances."""

from bagwise.instance_space.apr import APR
from bagwise.instance_space.boosting import MILBoost
from bagwise.instance_space.diverse_density import EMDD, DiverseDensity
from bagwise.instance_space.forest import MIForest
from bagwise.instance_space.multifold import MultiFoldSVC
from bagwise.instance_space.single import SingleInstance
from bagwise.instance_space.svm import MISVC, MiSVC

__all__ = [
    "APR",
    "EMDD",
    "MISVC",
    "DiverseDensity",
    "MIForest",
    "MILBoost",
    "MiSVC",
    "MultiFoldSVC",
    "SingleInstance",
]
