"""What got slower: the main figures as ratios to something fixed, compared with those of the last record.

    make bench-quick                          # compares with benchmarks/results/quick.json; exit code 1 when slower
    python -m benchmarks.quick --record       # keeps today's figures as the ones to compare with

Every figure is our CPU time divided by that of a reference that does not change with this project, both measured in
turns on one thread in this run: a slower or busier machine slows both. The median of several turns counts; what seems
slower is measured again before it is said. Needs no data but what is in the package, and two minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

RESULTS = Path(__file__).parent / "results" / "quick.json"
SLOWER = 1.2  # from which ratio to the recorded figure something is said
TURNS = 7
TRIES = 3  # at a figure that seems slower
AT_LEAST = 0.02  # CPU-seconds that a measurement takes, by repetition where once is shorter

Work = Callable[[], object]


@dataclass(frozen=True)
class Figure:
    """Something whose speed matters.

    Attributes
    ----------
    name : str
        What is measured.
    reference : str
        What it is measured against.
    make : callable
        Returns the two, ready to run.
    clock : callable
        CPU-seconds until now.
    """

    name: str
    reference: str
    make: Callable[[Path], tuple[Work, Work]]
    clock: Callable[[], float] = time.process_time


def ratio(ours: Work, reference: Work, turns: int = TURNS, clock: Callable[[], float] = time.process_time) -> float:
    """How many times the reference's CPU time ours takes: the median over turns that take both."""
    repeats = [_repeats(work, clock) for work in (ours, reference)]
    found = []
    for _ in range(turns):
        spent = [_seconds(work, times, clock) / times for work, times in zip((ours, reference), repeats)]
        found.append(spent[0] / spent[1])
    return float(np.median(found))


def _repeats(work: Work, clock: Callable[[], float]) -> int:
    """How often to run something that it takes long enough to be measured; it has been run once then."""
    work()
    times = 1
    while _seconds(work, times, clock) < AT_LEAST:
        times *= 2
    return times


def _seconds(work: Work, times: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(times):
        work()
    return clock() - started


def compare(now: dict[str, float], recorded: dict[str, float]) -> tuple[list[str], list[str]]:
    """What got slower, and what else is worth saying, in words.

    Parameters
    ----------
    now, recorded : dict of str to float
        Ratios by name.
    """
    slower, notes = [], []
    for name, value in now.items():
        if name not in recorded:
            notes.append(f"{name}: not measured before ({value:.3g}); record it")
        elif value > SLOWER * recorded[name]:
            share = value / recorded[name] - 1
            slower.append(f"{name}: {share:.0%} slower than recorded ({value:.3g}, was {recorded[name]:.3g})")
        elif value * SLOWER < recorded[name]:
            share = recorded[name] / value - 1
            notes.append(f"{name}: {share:.0%} faster than recorded ({value:.3g}, was {recorded[name]:.3g}); record it")
    notes += [f"{name}: recorded, but measured no more; record anew" for name in recorded if name not in now]
    return slower, notes


def measure(figures: Iterable[Figure], recorded: dict[str, float]) -> dict[str, float]:
    """The ratio of every figure; what seems slower than recorded is measured again, and the least counts."""
    found = {}
    for figure in figures:
        with tempfile.TemporaryDirectory() as folder:
            ours, reference = figure.make(Path(folder))
            value = ratio(ours, reference, clock=figure.clock)
            for _ in range(TRIES - 1):
                if value <= SLOWER * recorded.get(figure.name, np.inf):
                    break
                value = min(value, ratio(ours, reference, clock=figure.clock))
        found[figure.name] = value
        was = f"{recorded[figure.name]:10.3g}" if figure.name in recorded else " " * 10
        print(f"{figure.name:58}{value:10.3g}{was}   {figure.reference}", flush=True)
    return found


def run(figures: Iterable[Figure], results: Path, record: bool) -> int:
    """Measure, and record or compare; the exit code."""
    recorded = json.loads(results.read_text())["ratios"] if results.exists() else {}
    started = time.perf_counter()
    print(f"{'CPU time of':58}{'now':>10}{'recorded':>10}   times that of")
    found = measure(figures, {} if record else recorded)
    print(f"{time.perf_counter() - started:.0f} seconds")
    if record:
        document = {"command": "python -m benchmarks.quick --record", "ratios": found}
        results.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    slower, notes = compare(found, recorded)
    for line in notes:
        print(line)
    for line in slower:
        print(line)
    print(f"{len(slower)} of {len(found)} figures got slower by more than {SLOWER - 1:.0%}")
    return 1 if slower else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="keep the figures instead of comparing them")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    from benchmarks.quick_figures import FIGURES

    sys.exit(run(FIGURES, arguments.output, arguments.record))


def children() -> float:
    """CPU-seconds of the processes that this one started and that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def fresh_python(code: str) -> Work:
    """A new Python that runs the code."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
