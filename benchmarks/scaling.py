"""How time and memory of a fit grow with bags, instances, features and non-zeros.

    python benchmarks/scaling.py                         # every method; half an hour
    python benchmarks/scaling.py --methods RMISVC,MILES --largest 2

Each axis starts from 200 bags of 10 instances with 50 features and doubles one number at a time; the last axis takes
sparse instances of 20 000 columns and doubles the non-zeros of each. A fit that takes longer than the limit ends its
axis. The exponent is the slope of log time against log size over the upper half of the points, so 1 is linear, 2
quadratic. Every axis of a method runs in a process of its own, on one thread. Writes scaling.json, which a second call
resumes, scaling.md and the plot.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from bagwise._utils.atomic import replacing, write_text

START = {"bags": 200, "instances": 10, "features": 50, "nonzeros": 10}
COLUMNS = 20_000  # of the sparse problems
AXES = tuple(START)
DOUBLINGS = 5
LEAST_SECONDS = 0.005  # shorter fits say more about overheads than about growth

ONE_AXIS = """
import sys, time
sys.path.insert(0, {peers!r})
import numpy as np
from scipy import sparse
import bagwise, measuring
from bagwise.registry import classifiers

kind = next(k for k in classifiers() if k.__name__ == {method!r})
options = {{"random_state": 0}} if "random_state" in kind().get_params() else {{}}

def problem(bags, instances, features, nonzeros):
    rng = np.random.RandomState(0)
    y = np.arange(bags) % 2
    witness = np.arange(bags)[y == 1] * instances
    if nonzeros:
        shape, share = (bags * instances, features), nonzeros / features
        x = sparse.random_array(shape, density=share, format="lil", rng=np.random.default_rng(0))
        x[witness, 0] = 3.0
        x = x.tocsr()
    else:
        x = rng.randn(bags * instances, features)
        x[witness, 0] += 6
    return bagwise.Bags.from_arrays(x, np.arange(bags + 1) * instances), y

for place, size in enumerate({sizes!r}):
    bags, y = problem(*size)
    if place == 0:  # compilers and caches
        kind(**options).fit(bags[:24], y[:24])
    before = measuring.memory("VmRSS")
    measuring.forget_peak()
    started = time.process_time()
    kind(**options).fit(bags, y)
    spent = time.process_time() - started
    print(spent, max(0.0, measuring.memory("VmHWM") - before), flush=True)
    if spent > {limit}:
        break
"""


def fits(method: str, sizes: list[tuple[int, int, int, int]], limit: int) -> list[tuple[float, float]]:
    """CPU-seconds and MB that each fit adds, up to the first that takes longer than the limit or fails."""
    peers = str(Path(__file__).resolve().parent / "peers")
    code = ONE_AXIS.format(peers=peers, method=method, sizes=sizes, limit=limit)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode:
        print(f"{method}: {(done.stderr.splitlines() or ['?'])[-1]}", file=sys.stderr)
    found = [line.split() for line in done.stdout.splitlines()]
    return [(float(seconds), float(megabytes)) for seconds, megabytes in found]


def sizes_of(axis: str, doublings: int) -> list[tuple[int, tuple[int, int, int, int]]]:
    """The value on the axis, and (bags, instances, features, non-zeros of each or 0) of each problem."""
    found = []
    for step in range(doublings + 1):
        size = {**START, axis: START[axis] * 2**step}
        sparse = axis == "nonzeros"
        features = COLUMNS if sparse else size["features"]
        found.append((size[axis], (size["bags"], size["instances"], features, size["nonzeros"] if sparse else 0)))
    return found


def exponent(points: list[dict], figure: str) -> float | None:
    """Slope of log figure against log size over the upper half of the points."""
    used = [p for p in points if p["seconds"] >= LEAST_SECONDS and p[figure] > 0]
    used = used[len(used) // 2 - 1 if len(used) > 3 else 0 :]
    if len(used) < 2:
        return None
    x, y = (np.log([p[name] for p in used]) for name in ("value", figure))
    return float(np.polyfit(x, y, 1)[0])


def measure(methods: list[str], doublings: int, limit: int, file: Path) -> list[dict]:
    """All axes of all methods; the file is written after each, and what it holds is not measured again."""
    from compare import environment  # beside this file: found when it is run as a script

    rows: list[dict] = json.loads(file.read_text())["rows"] if file.exists() else []
    known = {(row["method"], row["axis"]) for row in rows}
    takes_sparse = {kind.__name__ for kind in _kinds() if kind.accepts_sparse}
    for method in methods:
        for axis in AXES:
            if (method, axis) in known or (axis == "nonzeros" and method not in takes_sparse):
                continue
            sizes = sizes_of(axis, doublings)
            points = [
                {"value": value, "seconds": seconds, "megabytes": megabytes}
                for (value, _), (seconds, megabytes) in zip(sizes, fits(method, [size for _, size in sizes], limit))
            ]
            rows.append(
                {
                    "method": method,
                    "axis": axis,
                    "points": points,
                    "time exponent": exponent(points, "seconds"),
                    "memory exponent": exponent(points, "megabytes"),
                }
            )
            print(f"{method} {axis}: {[round(p['seconds'], 3) for p in points]}", file=sys.stderr, flush=True)
            document = {"environment": environment(), "start": START, "columns": COLUMNS, "rows": rows}
            write_text(file, json.dumps(document, indent=1) + "\n")
    return rows


def _kinds() -> list:
    from bagwise.registry import classifiers

    return classifiers()


def markdown(rows: list[dict]) -> str:
    """Exponents of time and memory, and the largest fit, of every method."""
    lines = ["| method | " + " | ".join(AXES) + " | slowest fit |", "| --- |" + " ---: |" * (len(AXES) + 1)]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = {row["axis"]: row for row in rows if row["method"] == method}
        ends = [row["points"][-1] for row in mine.values() if row["points"]]
        if not ends:
            continue
        largest = max(ends, key=lambda point: point["seconds"])
        cells = [_exponents(mine.get(axis)) for axis in AXES]
        lines.append(f"| {method} | {' | '.join(cells)} | {largest['seconds']:.2f} s, {largest['megabytes']:.0f} MB |")
    note = (
        "Exponents of the time of a fit and of the memory it adds: 1 is linear, 2 quadratic; memory that grows by less "
        "than a tenth is left out. The axis nonzeros is for methods that take CSR."
    )
    picture = "![CPU-seconds and memory of a fit against bags, instances, features and non-zeros](images/scaling.png)"
    return f"{picture}\n\n" + "\n".join(lines) + f"\n\n{note}\n"


def _exponents(row: dict | None) -> str:
    """Time and memory, such as "1.0, 0.9"; "-" where nothing was measured."""
    if row is None or row["time exponent"] is None:
        return "-"
    memory = row["memory exponent"]
    return f"{row['time exponent']:.1f}" + ("" if memory is None or memory < 0.1 else f", {memory:.1f}")


def draw(rows: list[dict], path: Path) -> None:
    """Time above, memory below, against size: one column for each axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8.4), layout="constrained")
    panels = figure.subplots(2, len(AXES), sharey="row", sharex="col")
    names = list(dict.fromkeys(row["method"] for row in rows))
    # Ten colours, then the same ones with another dash: more colours than that cannot be told apart.
    styles = {name: {"color": f"C{i % 10}", "linestyle": ("-", "--", ":")[i // 10]} for i, name in enumerate(names)}
    for line, figured in zip(panels, ("seconds", "megabytes")):
        for panel, axis in zip(line, AXES):
            for row in rows:
                points = [p for p in row["points"] if p[figured] > 0]
                if row["axis"] == axis and points:
                    x, y = ([p[name] for p in points] for name in ("value", figured))
                    width = 2.5 if row["method"] == "RMISVC" else 1.2
                    panel.loglog(x, y, marker="o", markersize=3, lw=width, label=row["method"], **styles[row["method"]])
            panel.grid(True, which="major", alpha=0.3)
    for panel, axis in zip(panels[1], AXES):
        ticks = [value for value, _ in sizes_of(axis, DOUBLINGS)]
        panel.set_xticks(ticks, [str(value) for value in ticks], fontsize=8)
        panel.minorticks_off()
        panel.set_xlabel({"instances": "instances in a bag", "nonzeros": "non-zeros of an instance"}.get(axis, axis))
    panels[0][0].set_ylabel("CPU-seconds of a fit")
    panels[1][0].set_ylabel("MB that a fit adds")
    panels[1][0].set_ylim(bottom=1)  # less is noise
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8)
    with replacing(path) as aside:
        figure.savefig(aside, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--plot", type=Path, default=Path("docs/images/scaling.png"))
    parser.add_argument("--methods", default="", help="class names, by commas; default: all")
    parser.add_argument("--largest", type=int, default=DOUBLINGS, help="how often each number is doubled")
    parser.add_argument("--limit", type=int, default=30, help="CPU-seconds after which an axis ends")
    options = parser.parse_args()
    methods = options.methods.split(",") if options.methods else [kind.__name__ for kind in _kinds()]
    options.output.mkdir(parents=True, exist_ok=True)
    rows = measure(methods, options.largest, options.limit, options.output / "scaling.json")
    write_text(options.output / "scaling.md", markdown(rows))
    draw(rows, options.plot)
    print(markdown(rows))


if __name__ == "__main__":
    main()
