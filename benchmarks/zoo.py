"""Every method with default settings on small made-up problems that differ in one respect each.

    python benchmarks/zoo.py                                   # all methods, about half an hour on one core
    python benchmarks/zoo.py --methods MISVC,EMDD --sets units,offset

A method whose default settings fail where another's work needs better ones, or a stated reason. Writes zoo.json, which
a second call resumes (methods named with ``--again`` are measured anew), and zoo.md, its table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from bagwise import Bags
from bagwise._utils.atomic import write_text
from bagwise.registry import classifiers

N_FEATURES = 20
SHIFT = 5.0
# Where the label is not "one instance of the right kind is there", methods that look for such an instance cannot win.
BEYOND_ONE_INSTANCE = ("presence",)


@dataclass(frozen=True)
class Problem:
    """Training bags, as many test bags of the same kind, and their labels."""

    train: Bags
    train_y: NDArray[np.int64]
    test: Bags
    test_y: NDArray[np.int64]


def _bags(
    y: NDArray[np.int64],
    moved: Callable[[int, NDArray, np.random.RandomState], None],
    rng: np.random.RandomState,
    bag_size: tuple[int, int] = (4, 12),
) -> Bags:
    """Standard normal instances, of which ``moved(label, table, rng)`` moves some; their order is random."""
    tables = []
    for label in y:
        table = rng.randn(rng.randint(bag_size[0], bag_size[1] + 1), N_FEATURES)
        moved(label, table, rng)
        tables.append(table[rng.permutation(len(table))])
    return Bags(tables)


def _one(label: int, table: NDArray, rng: np.random.RandomState) -> None:
    if label:
        table[0, 0] += SHIFT


def _any_of_three(label: int, table: NDArray, rng: np.random.RandomState) -> None:
    if label:
        table[0, rng.randint(3)] += SHIFT


def _both(label: int, table: NDArray, rng: np.random.RandomState) -> None:
    """Positive bags have both kinds, negative ones one of them."""
    kinds = (0, 1) if label else (rng.randint(2),)
    for row, kind in enumerate(kinds):
        table[row, kind] += SHIFT


def _kind_of_class(label: int, table: NDArray, rng: np.random.RandomState) -> None:
    if label:
        table[0, label - 1] += SHIFT


def _one_in_twenty(label: int, table: NDArray, rng: np.random.RandomState) -> None:
    if label:
        table[: max(1, len(table) // 20), 0] += SHIFT


def _problem(
    moved: Callable[[int, NDArray, np.random.RandomState], None],
    *,
    n_bags: int = 200,
    n_classes: int = 2,
    share: float | None = None,
    bag_size: tuple[int, int] = (4, 12),
    then: Callable[[NDArray], NDArray] = lambda x: x,
    seed: int = 0,
) -> Problem:
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % n_classes if share is None else (np.arange(n_bags) < share * n_bags).astype(np.int64)
    parts = [_bags(y, moved, rng, bag_size) for _ in range(2)]
    train, test = (bags.with_instances(then(bags.instances)) for bags in parts)
    return Problem(train, y, test, y)


def _correlated(x: NDArray) -> NDArray:
    """Two common factors, three times as strong as what a column has of its own."""
    factors = np.random.RandomState(1).randn(len(x), 2) @ np.random.RandomState(2).randn(2, N_FEATURES)
    return x + 3 * factors


def _units(x: NDArray) -> NDArray:
    """Columns in units from a thousandth to ten thousand, in random order."""
    return x * 10 ** np.random.RandomState(1).permutation(np.linspace(-3, 4, N_FEATURES))


def _tails(x: NDArray) -> NDArray:
    """Instances that are now and then many times as long (Student's t with two degrees of freedom)."""
    return x * np.sqrt(2 / np.random.RandomState(1).chisquare(2, size=(len(x), 1)))


ZOO: dict[str, Callable[[], Problem]] = {
    "single": lambda: _problem(_one),
    "several": lambda: _problem(_any_of_three),
    "presence": lambda: _problem(_both),
    "rare": lambda: _problem(_one, n_bags=500, share=0.04),
    "classes": lambda: _problem(_kind_of_class, n_bags=240, n_classes=3),
    "correlated": lambda: _problem(_one, then=_correlated),
    "units": lambda: _problem(_one, then=_units),
    "offset": lambda: _problem(_one, then=lambda x: x + 1e6),
    "few": lambda: _problem(_one, then=lambda x: x[:, :3]),
    "tails": lambda: _problem(_one, then=_tails),
    "large": lambda: _problem(_one_in_twenty, n_bags=100, bag_size=(300, 300)),
}


def measure(kind: type, problem: Problem) -> dict[str, Any]:
    """Balanced accuracy, AUC (mean over the classes), log loss over that of the base rate, and CPU-seconds of a fit."""
    model = kind()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(problem.train, problem.train_y)
    seconds = time.process_time() - started
    proba = model.predict_proba(problem.test)
    y = problem.test_y
    share = np.bincount(y) / len(y)
    several = len(share) > 2
    return {
        "balanced_accuracy": float(balanced_accuracy_score(y, model.predict(problem.test))),
        "auc": float(roc_auc_score(y, proba if several else proba[:, 1], multi_class="ovr")),
        "log_loss_ratio": float(log_loss(y, proba) / -(share @ np.log(share))),
        "seconds": seconds,
    }


def measure_all(kinds: list[type], sets: list[str], rows: list[dict], save: Callable[[], None]) -> None:
    known = {(row["method"], row["set"]) for row in rows}
    for name in sets:
        problem = ZOO[name]()
        for kind in kinds:
            if (kind.__name__, name) in known:
                continue
            row = {"method": kind.__name__, "set": name, **measure(kind, problem)}
            rows.append(row)
            save()
            figures = " ".join(f"{key}={value:.3f}" for key, value in row.items() if isinstance(value, float))
            print(f"{name} {kind.__name__}: {figures}", file=sys.stderr, flush=True)


def markdown(rows: list[dict]) -> str:
    """Balanced accuracy in per cent; below it AUC, the log loss as a share of the base rate's, and CPU-seconds."""
    sets = [name for name in ZOO if any(row["set"] == name for row in rows)]
    found = {(row["method"], row["set"]): row for row in rows}
    methods = dict.fromkeys(row["method"] for row in rows)

    def table(cell: Callable[[dict], str]) -> str:
        lines = [["method", *sets], ["---", *["---:"] * len(sets)]]
        for method in methods:
            lines.append([method, *(cell(found[method, name]) if (method, name) in found else "" for name in sets)])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    return (
        "Balanced accuracy on new bags, in per cent:\n\n"
        + table(lambda row: f"{100 * row['balanced_accuracy']:.0f}")
        + "\n\nArea under the ROC curve, which asks only for the order of the bags (mean over the classes):\n\n"
        + table(lambda row: f"{row['auc']:.2f}")
        + "\n\nLog loss of the probabilities, divided by that of the base rate (below 1 is better than guessing):\n\n"
        + table(lambda row: f"{row['log_loss_ratio']:.2f}")
        + "\n\nCPU-seconds of a fit:\n\n"
        + table(lambda row: f"{row['seconds']:.2g}")
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--table", type=Path, default=Path("docs/results/zoo.md"))
    parser.add_argument("--methods", default="", help="class names, by commas; default all")
    parser.add_argument("--sets", default=",".join(ZOO), help="by commas")
    parser.add_argument("--again", action="store_true", help="forget what is known of the methods named")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    kinds = classifiers()
    if options.methods:
        names = options.methods.split(",")
        kinds = [kind for kind in kinds if kind.__name__ in names]
    file = options.output / "zoo.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    sets = options.sets.split(",")
    if options.again:
        named = {kind.__name__ for kind in kinds}
        rows = [row for row in rows if row["method"] not in named or row["set"] not in sets]

    def save() -> None:
        order = [kind.__name__ for kind in classifiers()]
        rows.sort(key=lambda row: (order.index(row["method"]), list(ZOO).index(row["set"])))
        write_text(file, json.dumps(rows, indent=1) + "\n")
        write_text(options.table, markdown(rows))

    measure_all(kinds, sets, rows, save)


if __name__ == "__main__":
    main()
