"""RMISVC() on bags of one to 64 columns, RMISVC without and with a kernel, and other methods.

    python benchmarks/few_columns.py            # a minute on one core; writes benchmarks/results/few_columns.md

Each row is the share of new bags that is right, in per cent, the mean of several draws of 150 training and 250 test
bags. A positive bag holds one instance of the kind named; all others come from the rest.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons

from bagwise import MILES, RMISVC, Bags, CitationKNN, MIKernelSVC, MultiFoldSVC
from bagwise._utils.atomic import write_text

N_TRAIN, N_BAGS = 150, 400
Instances = tuple[NDArray[np.float64], NDArray[np.bool_]]


def shifted(d: int, by: float, rng: np.random.Generator) -> Instances:
    """Normal columns in different units; the kind is moved along all of them."""
    x, kind = rng.standard_normal((3000, d)), np.arange(3000) < 600
    x[kind] += by
    return x * np.exp(2 * rng.normal(size=d)), kind


def in_the_middle(d: int, rng: np.random.Generator) -> Instances:
    """Uniform columns; the kind is what lies near one place."""
    x = rng.uniform(-1, 1, (4000, d))
    return x, ((x - 0.3) ** 2).sum(axis=1) < 0.35**2 * d / 2


def moons(rng: np.random.Generator) -> Instances:
    """Two half-moons that reach into each other."""
    x, kind = make_moons(3000, noise=0.15, random_state=int(rng.integers(1000)))
    return x, kind == 1


def of_scikit_learn(load: Callable[..., Any], kind: int, columns: slice, rng: np.random.Generator) -> Instances:
    """Some columns of a public table, one of its classes as the kind."""
    x, y = load(return_X_y=True)
    return x[:, columns], y == kind


PROBLEMS: dict[str, Callable[[np.random.Generator], Instances]] = {
    "shifted, 1 column": partial(shifted, 1, 4.0),
    "shifted, 2": partial(shifted, 2, 2.5),
    "shifted, 10": partial(shifted, 10, 1.1),
    "middle, 2": partial(in_the_middle, 2),
    "middle, 4": partial(in_the_middle, 4),
    "moons, 2": moons,
    "iris 1, 4": partial(of_scikit_learn, load_iris, 1, slice(0, 4)),
    "iris 2, 4": partial(of_scikit_learn, load_iris, 2, slice(0, 4)),
    "cancer, 5": partial(of_scikit_learn, load_breast_cancer, 0, slice(0, 5)),
    "wine, 10": partial(of_scikit_learn, load_wine, 1, slice(3, 13)),
    "shifted, 20": partial(shifted, 20, 0.8),
    "cancer, 30": partial(of_scikit_learn, load_breast_cancer, 0, slice(None)),
    "digit 1, 64": partial(of_scikit_learn, load_digits, 1, slice(None)),
    "digit 9, 64": partial(of_scikit_learn, load_digits, 9, slice(None)),
}
METHODS: dict[str, Callable[[], Any]] = {
    "linear": partial(RMISVC, kernel="linear", random_state=0),
    "RMISVC()": partial(RMISVC, random_state=0),
    "rbf": partial(RMISVC, kernel="rbf", random_state=0),
    "MILES": MILES,
    "MI-Kernel": MIKernelSVC,
    "Citation-kNN": CitationKNN,
    "Multi-fold": partial(MultiFoldSVC, random_state=0),
}


def bags_of(x: NDArray[np.float64], kind: NDArray[np.bool_], rng: np.random.Generator) -> Bags:
    """Bags of three to eight instances, every other one with an instance of the kind."""
    of_kind, rest = np.flatnonzero(kind), np.flatnonzero(~kind)
    tables = []
    for number in range(N_BAGS):
        rows = rng.choice(rest, rng.integers(3, 9))
        if number % 2:
            rows[0] = rng.choice(of_kind)
        tables.append(x[rows])
    return Bags(tables)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/few_columns.md"))
    options = parser.parse_args()
    lines = [f"| problem | {' | '.join(METHODS)} |", f"| --- |{' ---: |' * len(METHODS)}"]
    print(*lines, sep="\n")
    y, everything = np.arange(N_BAGS) % 2, []
    for name, problem in PROBLEMS.items():
        rates = np.zeros((options.draws, len(METHODS)))
        for draw in range(options.draws):
            rng = np.random.default_rng(draw)
            bags = bags_of(*problem(rng), rng)
            for k, make in enumerate(METHODS.values()):
                model = make().fit(bags[:N_TRAIN], y[:N_TRAIN])
                rates[draw, k] = 100 * model.score(bags[N_TRAIN:], y[N_TRAIN:])
        everything.append(rates.mean(axis=0))
        lines.append(f"| {name} | {' | '.join(f'{rate:.0f}' for rate in everything[-1])} |")
        print(lines[-1], flush=True)
    lines.append(f"| mean | {' | '.join(f'{rate:.1f}' for rate in np.mean(everything, axis=0))} |")
    print(lines[-1])
    write_text(options.output, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
