"""RMISVC on a file that is larger than what it may keep in memory.

    python benchmarks/outofcore.py FOLDER -o benchmarks/results/outofcore.json

Writes 200 000 bags of 100 instances with 256 numbers (20 GB; fewer with --bags) into FOLDER, fits them from the
memory map in a process of its own, reports its peak resident memory, file pages included, and deletes the file.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

SIZE, FEATURES = 100, 256


def write(path: Path, n_bags: int) -> float:
    """Make the file, sorted by label as a careless user would have it; return the seconds it took."""
    started = time.perf_counter()
    x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_bags, SIZE, FEATURES))
    rng = np.random.default_rng(0)
    for first in range(0, n_bags, 1000):
        block = rng.standard_normal((min(1000, n_bags - first), SIZE, FEATURES), dtype=np.float32)
        positive = np.arange(first, first + len(block)) >= n_bags // 2
        block[positive, rng.integers(SIZE, size=positive.sum()), :4] += 3
        x[first : first + len(block)] = block
        x.flush()
    return time.perf_counter() - started


def fit(path: Path, epochs: int) -> dict:
    """Fit and predict; runs in a process of its own."""
    from bagwise import RMISVC, Bags

    x = np.load(path, mmap_mode="r")
    y = (np.arange(len(x)) >= len(x) // 2).astype(int)
    seconds, started = {}, time.perf_counter()
    bags = Bags(x)
    seconds["open and check"] = time.perf_counter() - started
    started = time.perf_counter()
    model = RMISVC(epochs=epochs, random_state=0).fit(bags, y)
    seconds["fit"] = time.perf_counter() - started
    started = time.perf_counter()
    accuracy = float((model.predict(bags) == y).mean())
    seconds["predict"] = time.perf_counter() - started
    return {
        "seconds": seconds,
        "peak resident bytes": peak_resident(),
        "training accuracy": accuracy,
        "steps": model.n_steps_,
    }


def peak_resident() -> int:
    """Most memory that this process has held, file pages included (Linux).

    Not getrusage's figure, which a process inherits from the one that started it.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/outofcore.json"))
    parser.add_argument("--bags", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--only-fit", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_fit:
        print(json.dumps(fit(arguments.only_fit, arguments.epochs)))
        return
    file = arguments.folder / "instances.npy"
    try:
        report = {"bags": arguments.bags, "instances per bag": SIZE, "features": FEATURES, "epochs": arguments.epochs}
        report["write seconds"] = write(file, arguments.bags)
        report["file bytes"] = file.stat().st_size
        child = [sys.executable, __file__, str(arguments.folder), "--only-fit", str(file)]
        done = subprocess.run([*child, "--epochs", str(arguments.epochs)], check=True, capture_output=True, text=True)
        report.update(json.loads(done.stdout))
    finally:
        file.unlink(missing_ok=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
