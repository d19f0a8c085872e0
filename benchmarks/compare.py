"""Speed, memory and accuracy side by side with other packages, each in a throw-away virtual environment.

    python benchmarks/compare.py                              # all that pip can install; about an hour
    python benchmarks/compare.py --peers bagwise,plain,mil --sizes 92x5x166,200x20x100
    python benchmarks/compare.py --misvm ../misvm --milpy ../MILpy    # these have no release: give their checkouts

Every fit runs in a process of its own, on one thread, within limits of time and memory; what fails is reported with
how it fails. Times are CPU-seconds of a fit after a warm-up on a few bags, means where a fit takes less than a
second. Accuracy is the share of 500 new bags of the same kind that the fitted model gets right. The data are made:
standard normal instances, one of which in every positive bag is moved by six deviations along one axis.

Writes compare.json, which a second call resumes, and compare.md, its table.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bagwise._utils.atomic import write_text

PEERS_FOLDER = Path(__file__).resolve().parent / "peers"
SIZES = ("92x5x166", "200x20x100", "2000x20x100")
TEST_BAGS = 500
SHIFT = 6.0
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)


@dataclass(frozen=True)
class Peer:
    """A package to compare with: how to install it, and which method of it belongs to which row."""

    script: str
    methods: dict[str, str]  # name in the script -> family, the row of the table
    requirements: tuple[str, ...] = ()  # none: runs in this environment
    checkout: Path | None = None
    search_path: tuple[str, ...] = field(default=())

    def named(self, checkout: Path) -> Peer:
        return Peer(self.script, self.methods, self.requirements, checkout, self.search_path)


OURS = {
    "RMISVC": "RMI-SVM", "RMISVC, fixed lam": "RMI-SVM",
    "MISVC": "MI-SVM", "MiSVC": "mi-SVM", "MILES": "MILES", "EMDD": "EM-DD", "DDSVC": "DD-SVM",
    "MIKernelSVC": "MI-Kernel", "MILBoost": "MILBoost", "APR": "APR", "SingleInstance": "SIL",
    "AttentionMIL": "Attention", "MiNet": "mi-Net", "MINet": "MI-Net", "RMINet": "RMI-Net", "MiFV": "miFV",
    "MiVLAD": "miVLAD", "CitationKNN": "Citation-kNN", "MiGraphSVC": "miGraph", "PPMMKernelSVC": "PPMM",
    "DiverseDensity": "Diverse density", "MIForest": "MIForests", "MIGraphSVC": "MIGraph",
}  # fmt: skip

PEERS = {
    "bagwise": Peer("bagwise_methods.py", OURS),
    "plain": Peer(
        "plain.py",
        {
            "SIL, LinearSVC": "SIL",
            "MI-SVM, LinearSVC loop": "MI-SVM",
            "mi-SVM, LinearSVC loop": "mi-SVM",
            "RMI-SVM, NumPy": "RMI-SVM",
        },
    ),
    "mil": Peer(
        "mil_package.py",
        {"MILES as released": "MILES", "MILES": "MILES", "APR": "APR"},
        ("mil==1.0.5", "numpy", "scikit-learn"),  # it names no requirements itself
    ),
    "sawmil": Peer(
        "sawmil_package.py",
        {"NSK, OSQP": "MI-Kernel", "NSK, DAQP": "MI-Kernel", "sMIL, OSQP": "MI-SVM", "sAwMIL, OSQP": "MI-SVM"},
        ("sawmil[osqp,daqp]==0.2.1",),
    ),
    "torchmil": Peer("torchmil_package.py", {"ABMIL": "Attention"}, ("torchmil==1.0.2",)),
    "mikit-learn": Peer(
        "mikit_learn_package.py",
        {"AdditiveAttention": "Attention", "InstanceNetwork": "mi-Net", "InstanceWrapper": "SIL"},
        ("mikit-learn==1.0.6",),
    ),
}
CHECKOUTS = {
    "misvm": Peer(
        "misvm_checkout.py",
        {"MI-SVM": "MI-SVM", "mi-SVM": "mi-SVM", "NSK": "MI-Kernel"},
        ("numpy", "scipy", "cvxopt"),
        search_path=(".",),
    ),
    "milpy": Peer(
        "milpy_checkout.py",
        {"EM-DD": "EM-DD", "MILBoost": "MILBoost"},
        ("numpy", "scipy", "scikit-learn"),
        search_path=("..", ".", "Algorithms", "functions"),
    ),
}


def make_problem(size: str, path: Path) -> None:
    """Write training and test bags of a size such as 92x5x166 (bags, instances each, features)."""
    bags, instances, features = (int(part) for part in size.split("x"))
    rng = np.random.RandomState(0)
    arrays = {}
    for name, count in (("train", bags), ("test", TEST_BAGS)):
        y = np.arange(count) % 2
        x = rng.randn(count, instances, features)
        x[y == 1, rng.randint(instances, size=int(y.sum())), 0] += SHIFT
        arrays |= {name: x, f"{name}_y": y}
    np.savez(path, **arrays)


def install(peer: Peer, folder: Path) -> str:
    """A Python that has the peer; raises RuntimeError with pip's last word where it cannot be installed."""
    if not peer.requirements:
        return sys.executable
    python, ready = str(folder / "bin" / "python"), folder / ".installed"
    if ready.exists():
        return python
    venv.create(folder, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        raise RuntimeError(f"pip install {' '.join(peer.requirements)}: {lines[-1].strip()}")
    ready.touch()
    return python


def run(python: str, peer: Peer, method: str, problem: Path, limits: argparse.Namespace) -> dict:
    """Measure one method on one problem in a process of its own."""
    search = [str((peer.checkout / part).resolve()) for part in peer.search_path] if peer.checkout else []
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(search), "PYTHONWARNINGS": "ignore"}
    seconds = limits.time_limit + 60  # start-up and warm-up come on top
    command = [python, str(PEERS_FOLDER / peer.script), method, str(problem)]
    command += ["--cpu-seconds", str(seconds), "--memory-mb", str(limits.memory_limit)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode == 0 and done.stdout.strip():
        return json.loads(done.stdout.strip().splitlines()[-1])
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"fails": f"over {limits.time_limit} s"}
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    what = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
    return {"fails": f"crashed ({what}: {last})"}


def measure_all(options: argparse.Namespace, peers: dict[str, Peer], done: list[dict]) -> Iterator[dict]:
    """Measure whatever is not done yet, smallest sizes first, one environment at a time."""
    known = {(row["peer"], row["method"], row["size"]) for row in done}
    with tempfile.TemporaryDirectory(prefix="bagwise-compare-") as scratch:
        problems = {size: Path(scratch) / f"{size}.npz" for size in options.sizes}
        for size, path in problems.items():
            make_problem(size, path)
        for name, peer in peers.items():
            asked = [m for m, family in peer.methods.items() if not options.families or family in options.families]
            waiting = [(m, s) for m in asked for s in options.sizes if (name, m, s) not in known]
            if not waiting:
                continue
            print(f"{name}: setting up", file=sys.stderr, flush=True)
            try:
                python = install(peer, (options.environments or Path(scratch)) / f"environment-{name}")
            except RuntimeError as error:
                python, failure = "", str(error)
            given_up: dict[str, str] = {}  # too slow or too large at one size: not tried at a larger one
            for method, size in waiting:
                if not python:
                    result = {"fails": failure}
                elif method in given_up:
                    result = {"fails": f"{given_up[method]} already at a smaller size"}
                else:
                    result = run(python, peer, method, problems[size], options)
                    if result.get("fails", "").startswith(("over ", "out of memory")):
                        given_up[method] = result["fails"]
                yield {"peer": name, "method": method, "family": peer.methods[method], "size": size, **result}


def seconds_told(seconds: float) -> str:
    """A time, with as many digits as it is sure of."""
    if seconds < 0.1:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def cell(row: dict | None) -> str:
    """Seconds, memory and accuracy; or in a word how it fails."""
    if row is None:
        return ""
    if "fails" in row:
        reason = row["fails"]
        return reason if reason.startswith("over") else "out of memory" if "out of memory" in reason else "fails"
    return f"{seconds_told(row['seconds'])} · {row['added_mb']:.0f} MB · {100 * row['accuracy']:.0f} %"


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table; all columns but the first two are figures."""
    rule = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


def tables(rows: list[dict]) -> str:
    """Two tables as Markdown, ours against the fastest other and everything in full, and a list of what fails."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    families = dict.fromkeys(row["family"] for row in rows)
    short = []
    for family in families:
        others = {row["peer"] for row in rows if row["family"] == family} - {"bagwise"}
        if others:
            short.append([family, ", ".join(sorted(others)), *(_against(rows, family, size) for size in sizes)])
    full = []
    for family in families:
        members = dict.fromkeys((row["peer"], row["method"]) for row in rows if row["family"] == family)
        for peer, method in members:
            mine = {row["size"]: row for row in rows if (row["peer"], row["method"]) == (peer, method)}
            version = next((row["version"] for row in mine.values() if "version" in row), "")
            full.append([family, f"{peer} {version}: {method}", *(cell(mine.get(size)) for size in sizes)])
    failures = [f"- {r['peer']}, {r['method']}, {r['size']}: {r['fails']}" for r in rows if "fails" in r]
    parts = [
        "How many times faster than the fastest other that works (CPU-seconds of a fit on one thread). Sizes are bags "
        "x instances in each x features.",
        markdown(["method", "compared with", *sizes], short),
        "In full: CPU-seconds of a fit · memory that the fit adds · share of 500 new bags that it then gets right.",
        markdown(["method", "package", *sizes], full),
        *(["What fails, and how:", "\n".join(failures)] if failures else []),
    ]
    return "\n\n".join(parts) + "\n"


def _against(rows: list[dict], family: str, size: str) -> str:
    """bagwise's time against the fastest other of the family that works."""
    there = [row for row in rows if row["family"] == family and row["size"] == size and "seconds" in row]
    ours = [row["seconds"] for row in there if row["peer"] == "bagwise"]
    others = [row["seconds"] for row in there if row["peer"] != "bagwise"]
    if not ours:
        return "-"
    if not others:
        tried = any(row["family"] == family and row["size"] == size and row["peer"] != "bagwise" for row in rows)
        return f"{seconds_told(min(ours))}; {'no other works' if tried else 'others not measured'}"
    return f"**{min(others) / min(ours):.1f}** ({seconds_told(min(ours))}; {seconds_told(min(others))})"


def environment() -> dict[str, str | int | None]:
    """When and on what the figures are measured."""
    described = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in described if line.startswith("model name")]
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"), help="folder of the results")
    parser.add_argument("--peers", default="", help=f"some of {', '.join(PEERS)}; default all")
    parser.add_argument("--families", default="", help="rows of the table, such as MI-SVM,mi-SVM; default all")
    parser.add_argument("--sizes", default=",".join(SIZES), help="bags x instances x features, by commas")
    parser.add_argument("--time-limit", type=int, default=600, help="CPU-seconds of a fit")
    parser.add_argument("--memory-limit", type=int, default=12_000, help="MB of address space")
    parser.add_argument("--environments", type=Path, help="folder in which to keep the environments for another time")
    for name in CHECKOUTS:
        parser.add_argument(f"--{name}", type=Path, help=f"folder of a checkout of {name}")
    options = parser.parse_args(arguments)
    options.sizes = options.sizes.split(",")
    options.families = options.families.split(",") if options.families else []
    return options


def chosen_peers(options: argparse.Namespace) -> dict[str, Peer]:
    """The peers to measure, and the checkouts that were given."""
    names = options.peers.split(",") if options.peers else list(PEERS)
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"there is no peer {unknown[0]!r}: choose from {', '.join(PEERS)}")
    peers = {name: PEERS[name] for name in names}
    if "bagwise" in peers:
        from bagwise.registry import classifiers

        there = {kind.__name__ for kind in classifiers()}
        methods = {name: family for name, family in OURS.items() if name.split(",")[0] in there}
        peers["bagwise"] = Peer("bagwise_methods.py", methods)
    for name, peer in CHECKOUTS.items():
        path = getattr(options, name)
        if path is not None:
            if not path.is_dir():
                raise SystemExit(f"--{name}: there is no folder {path}")
            peers[name] = peer.named(path)
    return peers


def main() -> None:
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "compare.json"
    document = json.loads(file.read_text()) if file.exists() else {"environment": environment(), "rows": []}
    rows = document["rows"]
    for row in measure_all(options, chosen_peers(options), list(rows)):
        print(
            f"{row['peer']} {row['method']} {row['size']}: {row.get('fails') or cell(row)}", file=sys.stderr, flush=True
        )
        rows.append(row)
        write_text(file, json.dumps(document, indent=1) + "\n")
        write_text(options.output / "compare.md", tables(rows))
    print(tables(rows))


if __name__ == "__main__":
    main()
