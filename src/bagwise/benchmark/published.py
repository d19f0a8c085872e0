"""What the literature reports for ten times 10-fold cross-validation, in percent.

RMI-SVM and the rows of its paper: Wang et al., ICCV 2015, tables 1 to 3; the others from the methods' own papers.
None stands for a figure that was not published.
"""

from bagwise.datasets.fetch import NEWSGROUPS

MUSK_AND_COREL = ("musk1", "musk2", "fox", "tiger", "elephant")
TREC9 = ("trec1", "trec2", "trec3", "trec4", "trec7", "trec9", "trec10")

_ON_MUSK_AND_COREL: dict[str, tuple[float | None, ...]] = {
    "RMI-SVM": (80.8, 82.4, 63.6, 87.9, 87.8),
    "mi-SVM": (78.0, 70.2, 58.2, 78.4, 82.2),  # on MUSK linear; on Corel the best kernel
    "mi-SVM (RBF)": (87.4, 83.6, 58.2, 78.4, 82.2),  # the best kernel, which is not always this one
    "MI-SVM": (80.4, 77.5, 57.8, 84.0, 81.4),
    "MI-SVM (RBF)": (77.9, 84.3, 57.8, 84.0, 81.4),
    "EM-DD": (84.9, 86.9, 60.9, 73.0, 77.1),
    "DD-SVM": (85.8, 91.3, None, None, None),
    "MI-Kernel": (88.0, 89.3, 60.3, 84.2, 84.3),
    "MIGraph": (90.0, 90.0, 61.2, 81.9, 85.1),
    "miGraph": (88.9, 90.3, 61.6, 86.0, 86.8),
    "miFV": (90.9, 88.4, 62.1, 81.3, 85.2),
    "PPMM": (95.6, 81.2, 60.3, 82.4, 82.4),
    "MIForests": (None, None, 64.0, 82.0, 84.0),
    "MILES": (None, None, 62.0, 80.0, 81.0),
    "APR": (92.4, 89.2, 53.2, 55.8, 75.2),
    "Citation-kNN": (90.3, 83.7, 58.2, 78.8, 82.6),
    "mi-Net": (88.9, 85.8, 61.3, 82.4, 85.8),
    "MI-Net": (89.4, 87.4, 63.0, 84.5, 87.2),
    "Attention": (90.0, 86.3, 60.3, 84.5, 85.7),
}

_ON_TREC9: dict[str, tuple[float, ...]] = {
    "RMI-SVM": (95.0, 86.3, 87.9, 85.3, 82.3, 71.2, 83.9),
    "EM-DD": (85.8, 84.0, 69.0, 80.5, 75.4, 65.5, 78.5),
    "mi-SVM": (93.6, 78.2, 87.0, 82.8, 81.3, 67.5, 79.6),
    "MI-SVM": (93.9, 84.5, 82.2, 82.4, 78.0, 60.2, 79.5),
}

# The paper's tables: which sets stand in each; and one of our own, on sets with known instances.
TABLES: dict[str, tuple[str, ...]] = {
    "musk": ("musk1", "musk2"),
    "corel": ("elephant", "fox", "tiger"),
    "trec9": TREC9,
    "newsgroups": tuple(f"news_{group}" for group in NEWSGROUPS),
}


def published(method: str, dataset: str) -> float | None:
    """The published accuracy in percent, or None."""
    for sets, rows in ((MUSK_AND_COREL, _ON_MUSK_AND_COREL), (TREC9, _ON_TREC9)):
        if dataset in sets and method in rows:
            return rows[method][sets.index(dataset)]
    return None
