"""How long it takes to import bagwise and a classifier of it, against scikit-learn's own.

    python benchmarks/import_time.py -o benchmarks/results/import_time.json

CPU-seconds of a fresh Python that imports one thing, less those of one that imports nothing; medians of runs in turns.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

IMPORTED = ("pass", "import sklearn.svm", "import sklearn.linear_model", "import bagwise", "from bagwise import RMISVC")
RUNS = 11


def cpu_seconds(code: str) -> float:
    """CPU-seconds of a Python that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    spent: dict[str, list[float]] = {code: [] for code in IMPORTED}
    for _ in range(RUNS):
        for code in IMPORTED:
            spent[code].append(cpu_seconds(code))
    median = {code: statistics.median(times) for code, times in spent.items()}
    own = {code: median[code] - median["pass"] for code in IMPORTED if code != "pass"}
    figures = {f"{code}, s": value for code, value in own.items()}
    figures["bagwise / sklearn.svm"] = own["from bagwise import RMISVC"] / own["import sklearn.svm"]
    for name, value in figures.items():
        print(f"{name:36} {value:.3f}")
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
