"""One table of all methods: public names, names on the command line, rows of the tables, common tests and pages.

To add a method, write its class and add one line to the table here. It is then imported from ``bagwise`` by its name,
chosen by ``--method``, compared, a row of ``bagwise bench``, saved by `bagwise.save`, and tested by ``tests/contract``.
A method of another package takes part in all this after `register`. Importing this module imports no method.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bagwise.base import BagClassifier


@dataclass(frozen=True)
class Entry:
    """A method.

    Attributes
    ----------
    name : str
        Name of the class.
    paper : str
        Name in papers, which the tables use.
    module : str
        Where the class is defined.
    page : str
        Its page in ``docs/methods``; empty for methods of other packages.
    needs : str
        A package that is not part of the default install, or empty.
    """

    name: str
    paper: str
    module: str
    page: str = ""
    needs: str = ""

    def load(self) -> type[BagClassifier]:
        """The class, whose attributes say what it can do: ``accepts_sparse``, ``uses_prior``."""
        return getattr(import_module(self.module), self.name)

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is there."""
        return not self.needs or find_spec(self.needs) is not None


_OWN = (
    Entry("RMISVC", "RMI-SVM", "bagwise.rmi.classifier", "rmi-svm.md"),
    Entry("MiSVC", "mi-SVM", "bagwise.instance_space.svm", "mi-svm.md"),
    Entry("MISVC", "MI-SVM", "bagwise.instance_space.svm", "mi-svm.md"),
    Entry("MILES", "MILES", "bagwise.embedded_space.miles", "miles.md"),
    Entry("CitationKNN", "Citation-kNN", "bagwise.bag_space.neighbors", "citation-knn.md"),
    Entry("APR", "APR", "bagwise.instance_space.apr", "apr.md"),
    Entry("SingleInstance", "SIL", "bagwise.instance_space.single", "single-instance.md"),
    Entry("DiverseDensity", "DD", "bagwise.instance_space.diverse_density", "diverse-density.md"),
    Entry("EMDD", "EM-DD", "bagwise.instance_space.diverse_density", "diverse-density.md"),
    Entry("DDSVC", "DD-SVM", "bagwise.instance_space.dd_svm", "dd-svm.md"),
    Entry("MILBoost", "MILBoost", "bagwise.instance_space.boosting", "milboost.md"),
    Entry("MIForest", "MIForests", "bagwise.instance_space.forest", "miforest.md"),
    Entry("MultiFoldSVC", "Multi-fold", "bagwise.instance_space.multifold", "multi-fold.md"),
    Entry("CitationVote", "VFr", "bagwise.instance_space.citing", "key-instances.md"),
    Entry("MIKernelSVC", "MI-Kernel", "bagwise.bag_space.svm", "mi-kernel.md"),
    Entry("MiGraphSVC", "miGraph", "bagwise.bag_space.graph", "migraph.md"),
    Entry("MIGraphSVC", "MIGraph", "bagwise.bag_space.graph", "migraph.md"),
    Entry("PPMMKernelSVC", "PPMM", "bagwise.bag_space.ppmm", "ppmm.md"),
    Entry("MiFV", "miFV", "bagwise.embedded_space.fisher", "mifv.md"),
    Entry("MiVLAD", "miVLAD", "bagwise.embedded_space.vlad", "mifv.md"),
    Entry("AttentionMIL", "Attention", "bagwise.deep.classifiers", "deep.md", "torch"),
    Entry("MiNet", "mi-Net", "bagwise.deep.classifiers", "deep.md", "torch"),
    Entry("MINet", "MI-Net", "bagwise.deep.classifiers", "deep.md", "torch"),
    Entry("RMINet", "RMI-Net", "bagwise.deep.classifiers", "deep.md", "torch"),
)
METHODS: dict[str, Entry] = {entry.name: entry for entry in _OWN}


def register(kind: type[BagClassifier], paper: str | None = None) -> type[BagClassifier]:
    """Let a method of another package take part in everything that the library's own do.

    Parameters
    ----------
    kind : a subclass of `BagClassifier`
    paper : str, default=None
        Its name in tables; by default that of the class.

    Returns
    -------
    The class, so that this can be used as a decorator.
    """
    entry = Entry(kind.__name__, paper or kind.__name__, kind.__module__)
    for other in METHODS.values():
        if {entry.name, entry.paper} & {other.name, other.paper} and other.module != entry.module:
            raise ValueError(f"{entry.name} ({entry.paper}) has a name of {other.name}: choose another")
    METHODS[entry.name] = entry
    return kind


def find(name: str) -> Entry:
    """A method by the name of its class or by that in papers: "RMISVC" and "RMI-SVM" are the same.

    Raises
    ------
    ValueError
        With the names that there are.

    Examples
    --------
    >>> find("RMI-SVM").name, find("MISVC").paper
    ('RMISVC', 'MI-SVM')
    """
    for entry in METHODS.values():
        if name in (entry.name, entry.paper):
            return entry
    raise ValueError(f"there is no method {name!r}: choose from {', '.join(sorted(METHODS))}")


def class_name(name: str) -> str:
    """The name of a method's class, whichever of its names is given; what is unknown stays as it is."""
    return next((entry.name for entry in METHODS.values() if name == entry.paper), name)


def classifiers(*, installed: bool = True) -> list[type[BagClassifier]]:
    """All bag classifiers; by default only those whose packages are installed."""
    return [entry.load() for entry in METHODS.values() if entry.is_installed or not installed]
