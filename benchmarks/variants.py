"""Where a method stays below its published figure: the same folds with other parameters.

    python benchmarks/variants.py                        # all of them; about half an hour
    python benchmarks/variants.py --methods miGraph,APR

Each variant changes what the method's paper leaves open or tunes. Taking the best line of this table would be choosing
by the test folds, which is why none of these figures is one of ours: they show how far the choice alone moves the
accuracy. Data as under the protocol "paper" of `bagwise bench`. Writes variants.jsonl and variants.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise.benchmark.cross_validation import cross_validate_once
from bagwise.benchmark.methods import METHODS, load_set
from bagwise.benchmark.published import published

COREL = ("elephant", "fox", "tiger")
KERNEL_SCALINGS: tuple[dict[str, Any], ...] = ({}, {"scaling": "unit"}, {"scaling": None})
ANDREWS = tuple({"kernel": kernel, "C": C} for kernel in ("linear", "poly", "rbf") for C in (0.1, 1.0, 10.0))
VARIANTS: dict[str, tuple[tuple[str, ...], tuple[dict[str, Any], ...]]] = {
    "mi-SVM (RBF)": (
        ("musk1", "elephant"),
        (*ANDREWS, {"kernel": "rbf", "init": "bags"}, {"kernel": "poly", "init": "bags"}),
    ),
    "MI-SVM (RBF)": (("musk2",), tuple(each for each in ANDREWS if each["kernel"] == "linear" or each["C"] > 1)),
    "MI-Kernel": (("musk1", *COREL), KERNEL_SCALINGS),
    "miGraph": (("musk1", *COREL), (*KERNEL_SCALINGS, {"threshold": 1.0}, {"threshold": 2.0}, {"gamma_factor": 8.0})),
    "MIGraph": (("musk1", *COREL), (*KERNEL_SCALINGS, {"threshold": 1.0}, {"threshold": 2.0}, {"edge_gamma": 0.1})),
    "miFV": (("musk1", *COREL), (*KERNEL_SCALINGS, {"n_components": 2}, {"n_components": 4})),
    "PPMM": (("musk1", *COREL), ({}, {"n_components": 30}, {"C": 10.0}, {"scaling": "unit"}, {"p": 1.0}, {"p": 0.1})),
    "APR": (("musk1",), ({}, {"tau": 0.999}, {"tau": 0.95}, {"epsilon": 0.1}, {"margin": 0.5}, {"scaling": None})),
}


def tasks(methods: list[str]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, dataset, variant)
        for method in methods
        for dataset in VARIANTS[method][0]
        for variant in VARIANTS[method][1]
    ]


def measure(methods: list[str], repeats: int, file: Path) -> list[dict[str, Any]]:
    """All variants; each is written as soon as it is known, and what the file holds is not measured again."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(row["method"], row["set"], json.dumps(row["variant"])) for row in rows}
    for method, dataset, variant in tasks(methods):
        if (method, dataset, json.dumps(variant)) in known:
            continue
        bags, y, _ = load_set(dataset, "paper")
        model = METHODS[method].make(**variant)
        found = [
            100 * float(np.mean(cross_validate_once(model, bags, y, repeat).accuracy)) for repeat in range(repeats)
        ]
        row = {"method": method, "set": dataset, "variant": variant, "accuracy": found}
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        with file.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """For each method and set: published, the defaults or the first variant, and the others from best to worst."""
    lines = ["| method | set | published | variants |", "| --- | --- | ---: | --- |"]
    for method, dataset in dict.fromkeys((row["method"], row["set"]) for row in rows):
        mine = [row for row in rows if (row["method"], row["set"]) == (method, dataset)]
        mine.sort(key=lambda row: -float(np.mean(row["accuracy"])))
        told = [f"{_words(row['variant'])} {np.mean(row['accuracy']):.1f}" for row in mine]
        lines.append(f"| {method} | {dataset} | {published(method, dataset) or 0:.1f} | {' · '.join(told)} |")
    return "\n".join(lines) + f"\n\nMeans of {len(rows[0]['accuracy'])} x 10 folds, best first.\n"


def _words(variant: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in variant.items()) or "default settings"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--methods", default=",".join(VARIANTS), help="by commas")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = measure(options.methods.split(","), options.repeats, options.output / "variants.jsonl")
    write_text(options.output / "variants.md", markdown(rows))


if __name__ == "__main__":
    main()
