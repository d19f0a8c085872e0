"""The list of all classifiers, for the common tests, the benchmark and the model files: one place to add a method."""

from __future__ import annotations

from bagwise.base import BagClassifier


def classifiers() -> list[type[BagClassifier]]:
    """All bag classifiers that need nothing beyond the default install."""
    from bagwise.bag_space import MIGraphSVC, MiGraphSVC, MIKernelSVC, PPMMKernelSVC
    from bagwise.bag_space.neighbors import CitationKNN
    from bagwise.embedded_space.fisher import MiFV
    from bagwise.embedded_space.miles import MILES
    from bagwise.embedded_space.vlad import MiVLAD
    from bagwise.instance_space.apr import APR
    from bagwise.instance_space.boosting import MILBoost
    from bagwise.instance_space.diverse_density import EMDD, DiverseDensity
    from bagwise.instance_space.forest import MIForest
    from bagwise.instance_space.multifold import MultiFoldSVC
    from bagwise.instance_space.single import SingleInstance
    from bagwise.instance_space.svm import MISVC, MiSVC
    from bagwise.rmi import RMISVC

    return [
        RMISVC,
        MiSVC,
        MISVC,
        MILES,
        CitationKNN,
        APR,
        SingleInstance,
        DiverseDensity,
        EMDD,
        MILBoost,
        MIForest,
        MultiFoldSVC,
        MIKernelSVC,
        MiGraphSVC,
        MIGraphSVC,
        PPMMKernelSVC,
        MiFV,
        MiVLAD,
    ]


def deep_classifiers() -> list[type[BagClassifier]]:
    """The neural networks, when torch is there; else none."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return []
    from bagwise.deep import AttentionMIL, MINet, MiNet, RMINet

    return [AttentionMIL, MiNet, MINet, RMINet]


def storable_types() -> list[type]:
    """Classes that a model file may hold: the classifiers and the parts they are made of."""
    from bagwise.embedded_space.fisher import MiFVTransformer
    from bagwise.embedded_space.miles import MILESTransformer
    from bagwise.embedded_space.mixture import Mixture, Projection
    from bagwise.embedded_space.vlad import MiVLADTransformer
    from bagwise.instance_space._kernel_machine import InstanceKernel
    from bagwise.instance_space._trees import Trees
    from bagwise.preprocessing import InstanceNystroem, InstanceScaler
    from bagwise.rmi.solvers import Iterate

    return [
        *classifiers(),
        *deep_classifiers(),
        InstanceScaler,
        InstanceNystroem,
        InstanceKernel,
        Iterate,
        Trees,
        MILESTransformer,
        MiFVTransformer,
        MiVLADTransformer,
        Mixture,
        Projection,
    ]
