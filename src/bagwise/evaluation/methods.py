"""What the benchmark runs: the data sets, and each method with its parameters under each protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bagwise
from bagwise.bags import Bags
from bagwise.datasets import fetch_corel, fetch_newsgroups, fetch_trec9, load_musk1, load_musk2
from bagwise.evaluation.cv import nested
from bagwise.evaluation.published import NEWSGROUPS, TREC9
from bagwise.preprocessing import InstanceScaler

SETS = ("musk1", "musk2", "elephant", "fox", "tiger", *TREC9)
PROTOCOLS = ("paper", "nested", "default")


NEWS_SETS = tuple(f"news_{group}" for group in NEWSGROUPS)


def load_set(name: str, protocol: str) -> tuple[Bags, NDArray[np.int64], NDArray[np.int64] | None]:
    """Load a data set as a protocol wants it: bags, labels, and labels of the instances where they are known.

    "paper" follows the release: MUSK is standardised over all instances, test bags included (their labels are not
    looked at). The other protocols leave scaling to the methods, which see training bags only.
    """
    if name in NEWS_SETS:
        return fetch_newsgroups(name.removeprefix("news_"))
    if name.startswith("musk"):
        bags, y = load_musk1() if name == "musk1" else load_musk2()
        return (InstanceScaler("standard").fit_transform(bags) if protocol == "paper" else bags), y, None
    return *(fetch_trec9(int(name[4:])) if name.startswith("trec") else fetch_corel(name)), None


@dataclass(frozen=True)
class Method:
    """A row of the tables."""

    name: str
    make: Callable[..., Any]
    # Parameters for the "paper" protocol: fixed, by data set; a set that is missing is not run.
    fixed: dict[str, dict[str, Any]] = field(default_factory=dict)
    # What nested selection chooses from, for all sets, and what it leaves alone, by data set.
    grid: Any = None
    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Of the paper's twelve sets, those on which the method can run: None for all.
    sets: tuple[str, ...] | None = None

    def can_run(self, dataset: str, protocol: str) -> bool:
        if dataset in NEWS_SETS:  # sparse, and with no published parameters
            return protocol == "default" and getattr(self.make, "accepts_sparse", False)
        if self.sets is not None and dataset not in self.sets:
            return False
        if protocol == "paper":
            return dataset in self.fixed
        return protocol == "default" or self.grid is not None

    def model(self, dataset: str, protocol: str) -> Any:
        """The estimator to cross-validate."""
        if protocol == "paper":
            return self.make(**self.fixed[dataset])
        return self.make() if protocol == "default" else nested(self.make(**self.given.get(dataset, {})), self.grid)

    def settings(self, dataset: str, protocol: str) -> str:
        """A short name of all parameters, by which results of other parameters are told apart."""
        parameters = sorted((name, repr(value)) for name, value in self.model(dataset, protocol).get_params().items())
        return hashlib.sha256(repr(parameters).encode()).hexdigest()[:12]


def _rmi_release() -> dict[str, dict[str, Any]]:
    """The parameters of the authors' released code; MUSK 2, which they do not reproduce, has parameters of our own."""
    common = {"radius": "pegasos", "average": False, "epochs": 100}
    corel = {"elephant": (0.017, 5, 1.5), "fox": (0.019, 6, 0.2), "tiger": (0.005, 7, 0.8)}
    fixed = {
        name: dict(common, lam=lam, beta=beta, margin=margin, scaling="unit")
        for name, (lam, beta, margin) in corel.items()
    }
    fixed.update({name: dict(common, lam=0.0003, beta=4, margin=2, scaling="unit") for name in TREC9})
    fixed["musk1"] = dict(common, lam=0.05, beta=1.5, margin=0.5, scaling=None)
    fixed["musk2"] = {"lam": 1e-4, "beta": 5, "margin": 1, "scaling": "auto"}
    return fixed


def _rmi() -> Method:
    strengths = {"lam": [1e-4, 1e-3, 1e-2]}
    grid = [
        {**strengths, "beta": [1.5], "margin": [0.5]},
        {**strengths, "beta": [5.0], "margin": [1.0, 2.0]},
    ]
    # The literature's preprocessing is part of the problem: Corel and TREC9 instances have unit length.
    given = {name: {"scaling": "unit"} for name in SETS if not name.startswith("musk")}
    return Method("RMI-SVM", bagwise.RMISVC, _rmi_release(), grid, given)


DENSE_SETS = ("musk1", "musk2", "elephant", "fox", "tiger")


def _with_defaults(
    name: str, make: Callable[..., Any], grid: Any = None, sets: tuple[str, ...] = DENSE_SETS, **sparse: Any
) -> Method:
    """A method whose fixed parameters are its defaults; ``sparse`` are those that differ on TREC9."""
    fixed = {dataset: sparse if dataset in TREC9 else {} for dataset in sets}
    return Method(name, make, fixed, grid, {dataset: sparse for dataset in TREC9}, sets)


def _everything() -> list[Method]:
    strengths = {"C": [0.1, 1.0, 10.0, 100.0]}
    return [
        _rmi(),
        _with_defaults("mi-SVM", bagwise.MiSVC, strengths, SETS),
        _with_defaults("MI-SVM", bagwise.MISVC, strengths, SETS),
        _with_defaults("EM-DD", bagwise.EMDD, sets=SETS, scaling="unit"),
        _with_defaults("DD", bagwise.DiverseDensity),
        _with_defaults("MILES", bagwise.MILES, strengths),
        _with_defaults("MI-Kernel", bagwise.MIKernelSVC, strengths),
        _with_defaults("miGraph", bagwise.MiGraphSVC, strengths),
        _with_defaults("MIGraph", bagwise.MIGraphSVC, strengths),
        _with_defaults("PPMM", bagwise.PPMMKernelSVC, strengths),
        _with_defaults("miFV", bagwise.MiFV, strengths),
        _with_defaults("miVLAD", bagwise.MiVLAD, strengths),
        _with_defaults("Citation-kNN", bagwise.CitationKNN),
        _with_defaults("APR", bagwise.APR),
        _with_defaults("MILBoost", bagwise.MILBoost),
        _with_defaults("MIForests", bagwise.MIForest),
        _with_defaults("SIL", bagwise.SingleInstance, sets=SETS),
    ]


METHODS: dict[str, Method] = {method.name: method for method in _everything()}
