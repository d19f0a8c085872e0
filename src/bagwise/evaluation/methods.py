"""What the benchmark runs: the data sets, and each method with its parameters under each protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import VotingClassifier

import bagwise
from bagwise.bags import Bags
from bagwise.datasets import fetch_corel, fetch_newsgroups, fetch_trec9, load_musk1, load_musk2
from bagwise.deep import AttentionMIL, MINet, MiNet, RMINet
from bagwise.evaluation.cv import nested
from bagwise.evaluation.published import NEWSGROUPS, TREC9
from bagwise.preprocessing import InstanceScaler

SETS = ("musk1", "musk2", "elephant", "fox", "tiger", *TREC9)
PROTOCOLS = ("paper", "nested", "default")
DENSE_SETS = ("musk1", "musk2", "elephant", "fox", "tiger")
STRENGTHS = {"C": [0.1, 1.0, 10.0]}  # strengths that selection chooses from
# The literature's preprocessing is part of the problem: Corel and TREC9 instances have unit length.
UNIT_LENGTH: dict[str, dict[str, Any]] = {name: {"scaling": "unit"} for name in SETS if not name.startswith("musk")}


NEWS_SETS = tuple(f"news_{group}" for group in NEWSGROUPS)
# Here the length of an instance says how telling its words are: whether to keep it matters more than any strength.
NEWS_SCALINGS = {"scaling": ["unit", "global"]}


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
    # What nested selection chooses from, for all sets (empty when there is nothing), and what is given by data set.
    grid: Any = None
    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    # How often the inner cross-validation is repeated: where fits are cheap, less of the choice is left to chance.
    inner_repeats: int = 1
    # Of the paper's twelve sets, those on which the method can run: None for all.
    sets: tuple[str, ...] | None = None
    # A package that is not part of the default installation.
    needs: str | None = None

    def can_run(self, dataset: str, protocol: str) -> bool:
        if self.needs is not None and find_spec(self.needs) is None:
            return False
        if dataset in NEWS_SETS:
            return protocol != "paper"  # there are no published parameters
        if self.sets is not None and dataset not in self.sets:
            return False
        if protocol == "paper":
            return dataset in self.fixed
        return protocol == "default" or self.grid is not None

    def data(self, dataset: str, protocol: str) -> tuple[Bags, NDArray[np.int64], NDArray[np.int64] | None]:
        """What to cross-validate it on: see `load_set`; dense where the method takes nothing else."""
        bags, y, y_instance = load_set(dataset, protocol)
        if sparse.issparse(bags.instances) and not getattr(self.make(), "accepts_sparse", True):
            bags = bags.with_instances(bags.instances.toarray())
        return bags, y, y_instance

    def model(self, dataset: str, protocol: str) -> Any:
        """The estimator to cross-validate."""
        if protocol == "paper":
            return self.make(**self.fixed[dataset])
        own = self.make()
        if protocol == "default" or (dataset in NEWS_SETS and "scaling" not in own.get_params()):
            return own
        if dataset in NEWS_SETS:
            return nested(own, NEWS_SCALINGS)
        given = self.make(**self.given.get(dataset, {}))
        return nested(given, self.grid, self.inner_repeats) if self.grid else given

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
    return Method("RMI-SVM", bagwise.RMISVC, _rmi_release(), grid, UNIT_LENGTH, inner_repeats=3)


def _fisher(grid: dict[str, Any]) -> Method:
    """Its authors took the Corel features as they come."""
    fixed = {name: {} if name.startswith("musk") else {"scaling": None} for name in DENSE_SETS}
    return Method("miFV", bagwise.MiFV, fixed, grid, UNIT_LENGTH, inner_repeats=3, sets=DENSE_SETS)


def _misvm(name: str, make: Callable[..., Any], grid: dict[str, Any], sets: tuple[str, ...], repeats: int) -> Method:
    """A hundred bags of unit-length instances need a larger C than the text collections."""
    fixed = {dataset: {"C": 10.0} if dataset in DENSE_SETS else {} for dataset in sets}
    return Method(name, make, fixed, {"init": ["bags", "witnesses"], **grid}, inner_repeats=repeats, sets=sets)


def _vote() -> Method:
    """One method of each family, all as they come, and what most of them say."""
    members = [
        ("instances", bagwise.RMISVC()),
        ("prototypes", bagwise.MILES()),
        ("kernel", bagwise.MIKernelSVC()),
        ("codes", bagwise.MiFV()),
        ("neighbours", bagwise.CitationKNN()),
    ]
    return Method("Vote of five", partial(VotingClassifier, members), grid=(), sets=DENSE_SETS)


def _with_defaults(
    name: str,
    make: Callable[..., Any],
    grid: Any = None,
    given: dict[str, dict[str, Any]] | None = None,
    sets: tuple[str, ...] = DENSE_SETS,
    needs: str | None = None,
    inner_repeats: int = 1,
    **on_trec9: Any,
) -> Method:
    """A method whose fixed parameters are its defaults; ``on_trec9`` are those that differ there."""
    fixed = {dataset: on_trec9 if dataset in TREC9 else {} for dataset in sets}
    given = {**dict.fromkeys(TREC9, on_trec9), **(given or {})}
    return Method(name, make, fixed, grid, given, inner_repeats, sets, needs)


def _everything() -> list[Method]:
    set_kernel = {"normalization": ["average", "feature"], "gamma_factor": [1.0, 2.0, 4.0], "C": [10.0, 100.0]}
    codes = {"n_components": [1, 2], **STRENGTHS}
    return [
        _rmi(),
        _misvm("mi-SVM", bagwise.MiSVC, STRENGTHS, SETS, 3),
        _with_defaults("MI-SVM", bagwise.MISVC, STRENGTHS, sets=SETS, inner_repeats=3),
        _misvm("mi-SVM (RBF)", partial(bagwise.MiSVC, kernel="rbf"), {"C": [1.0, 10.0]}, DENSE_SETS, 1),
        _with_defaults("MI-SVM (RBF)", partial(bagwise.MISVC, kernel="rbf"), {"C": [1.0, 10.0]}),
        _with_defaults("Multi-fold", bagwise.MultiFoldSVC, STRENGTHS),
        _with_defaults("EM-DD", bagwise.EMDD, sets=SETS, scaling="unit"),
        _with_defaults("DD", bagwise.DiverseDensity),
        _with_defaults("MILES", bagwise.MILES, STRENGTHS, inner_repeats=3),
        _with_defaults("MI-Kernel", bagwise.MIKernelSVC, set_kernel, UNIT_LENGTH, inner_repeats=3),
        _with_defaults("miGraph", bagwise.MiGraphSVC, set_kernel, UNIT_LENGTH, inner_repeats=3),
        _with_defaults(
            "MIGraph", bagwise.MIGraphSVC, {"gamma_factor": [1.0, 2.0, 4.0], "C": [10.0, 100.0]}, UNIT_LENGTH
        ),
        _with_defaults("PPMM", bagwise.PPMMKernelSVC),
        _fisher(codes),
        _with_defaults("miVLAD", bagwise.MiVLAD, codes, UNIT_LENGTH, inner_repeats=3),
        _with_defaults(
            "Citation-kNN",
            bagwise.CitationKNN,
            {"metric": ["modified", "minimal"], "n_references": [1, 2, 3]},
            inner_repeats=3,
        ),
        _with_defaults("APR", bagwise.APR),
        _with_defaults("MILBoost", bagwise.MILBoost),
        _with_defaults("MIForests", bagwise.MIForest),
        _with_defaults("SIL", bagwise.SingleInstance, sets=SETS),
        _vote(),
        _with_defaults("mi-Net", MiNet, needs="torch"),
        _with_defaults("MI-Net", MINet, needs="torch"),
        _with_defaults("Attention", AttentionMIL, needs="torch"),
        _with_defaults("RMI-Net", RMINet, needs="torch"),
    ]


METHODS: dict[str, Method] = {method.name: method for method in _everything()}
