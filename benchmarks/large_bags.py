"""RMISVC() on bags of many instances, few of which tell: accuracy on fresh bags, time and memory.

    python benchmarks/large_bags.py                                  # ten draws of 100 bags of 10,000 instances
    python benchmarks/large_bags.py --instances 1000 --draws 3

In positive bags, 5% of the instances are shifted by six deviations in one direction of 128. Prints one line a draw and
writes large_bags.json, which a second call resumes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bagwise import RMISVC, Bags
from bagwise._utils.atomic import write_text

N_FEATURES = 128
SHARE = 0.05
SHIFT = 6.0


def made_up(n_bags: int, size: int, rng: np.random.RandomState) -> tuple[Bags, NDArray[np.int64]]:
    """Standard normal instances; in every other bag the first 5% are shifted along the first column."""
    y = np.arange(n_bags) % 2
    x = np.empty((n_bags * size, N_FEATURES))
    for i in range(n_bags):  # a bag at a time: no second array of this size
        x[i * size : (i + 1) * size] = rng.randn(size, N_FEATURES)
        x[i * size : i * size + int(SHARE * size), 0] += SHIFT * y[i]
    return Bags.from_arrays(x, size * np.arange(n_bags + 1)), y


def measure(n_bags: int, size: int, draw: int) -> dict[str, float]:
    rng = np.random.RandomState(draw)
    bags, y = made_up(n_bags, size, rng)
    started = time.process_time()
    model = RMISVC(random_state=draw).fit(bags, y)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    del bags
    right = 0.0
    for _ in range(n_bags // 10):  # fresh bags, ten at a time
        fresh, truth = made_up(10, size, rng)
        right += model.score(fresh, truth) * 10
    return {
        "instances": size,
        "draw": draw,
        "accuracy": right / (n_bags // 10 * 10),
        "lam": model.lam_,
        "seconds": seconds,
        "peak_gib": peak,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--bags", type=int, default=100)
    parser.add_argument("--instances", type=int, default=10_000, help="in each bag")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "large_bags.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    known = {(row["instances"], row["draw"]) for row in rows}
    for draw in range(options.draws):
        if (options.instances, draw) not in known:
            rows.append(measure(options.bags, options.instances, draw))
            write_text(file, json.dumps(rows, indent=1) + "\n")
            print(json.dumps(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
