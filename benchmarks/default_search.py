"""How RMISVC's default parameters were chosen: leave one data set out.

Every candidate is cross-validated on the paper's twelve sets. For each set, the candidate that is best on the OTHER
eleven (smallest mean distance from each set's best) is reported with its accuracy on the one left out: an estimate in
which the set had no say. The default is the candidate that is best on all twelve.

    python benchmarks/default_search.py -o benchmarks/results/default_search.json
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from bagwise import RMISVC
from bagwise.evaluation.cv import cross_validate_once
from bagwise.evaluation.methods import SETS, load_set
from bagwise.progress import track

CANDIDATES = [
    {"lam": lam, "beta": beta, "margin": margin, "radius": radius, "scaling": scaling}
    for lam, (beta, margin), radius, scaling in itertools.product(
        [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3],
        [(1.5, 0.5), (5.0, 0.5), (5.0, 1.0), (5.0, 2.0)],
        ["safe", "pegasos"],
        ["auto", "unit"],
    )
]


def accuracy(candidate: int, dataset: str, repeats: int) -> tuple[int, str, float]:
    bags, y, _ = load_set(dataset, "default")
    model = RMISVC(**CANDIDATES[candidate])
    runs = [cross_validate_once(model, bags, y, 100 + repeat).accuracy for repeat in range(repeats)]
    return candidate, dataset, 100 * float(np.mean(runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()

    tasks = [(c, name) for name in SETS for c in range(len(CANDIDATES))]
    done = Parallel(options.jobs, return_as="generator_unordered")(
        delayed(accuracy)(c, name, options.repeats) for c, name in tasks
    )
    table = np.zeros((len(CANDIDATES), len(SETS)))
    for c, name, value in track(done, total=len(tasks), description="candidates"):
        table[c, SETS.index(name)] = value

    regret = table.max(axis=0) - table
    left_out = {}
    for s, name in enumerate(SETS):
        chosen = int(np.delete(regret, s, axis=1).mean(axis=1).argmin())
        left_out[name] = {"chosen": CANDIDATES[chosen], "accuracy": table[chosen, s], "best": table[:, s].max()}
        print(f"{name:10} {table[chosen, s]:5.1f} (best of all {table[:, s].max():5.1f})  {CANDIDATES[chosen]}")
    order = regret.mean(axis=1).argsort()
    print("\nbest on all twelve, by mean distance from each set's best:")
    for c in order[:8]:
        print(f"{regret[c].mean():5.2f}  {CANDIDATES[c]}  {np.round(table[c], 1).tolist()}")
    document = {
        "left_out": left_out,
        "default": CANDIDATES[order[0]],
        "sets": SETS,
        "candidates": CANDIDATES,
        "accuracy": table.round(2).tolist(),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
