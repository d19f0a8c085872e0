"""The long fuzzing, led by coverage: a hundred thousand cases and more.

    TMPDIR=/dev/shm python -m tests.fuzz.campaign -n 150000 --seconds 10 -o benchmarks/results/fuzz.json

Each reader gets its share of damaged copies of a good file, and of those copies that reached new code of bagwise, and
goes on with more of them until it had so many seconds of computing: quick readers, which parse text, get more. A
process may use four gigabytes, and a case ten seconds: more counts as a failure. In memory (TMPDIR), no case waits for
a disk.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

SECONDS_PER_CASE = 10
# Code is reached early on, and watching what is reached costs as much as many a reader: of what comes later, a part.
WATCHED_FIRST, WATCHED_LATER = 2000, 10


def too_slow(*_: object) -> None:
    raise RuntimeError(f"a case took more than {SECONDS_PER_CASE} seconds")


def try_reader(name: str, least: int, seconds: float, seed: int) -> dict:
    """Feed one reader; runs in a process of its own."""
    from tests.fuzz.guided import Corpus, Reached
    from tests.fuzz.targets import TARGETS, survive

    signal.signal(signal.SIGALRM, too_slow)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, hard))
    target = next(target for target in TARGETS if target.__name__ == name)
    corpus, reached = Corpus(TARGETS[target], random.Random(f"{seed} {name}")), Reached()
    reached.run(survive, target, TARGETS[target])
    good, cases, taken, slowest = len(reached.steps), 0, 0, 0.0
    end = time.process_time() + seconds
    while cases < least or time.process_time() < end:
        cases += 1
        data = corpus.next()
        started = time.perf_counter()
        signal.alarm(SECONDS_PER_CASE)
        try:
            if cases < WATCHED_FIRST or cases % WATCHED_LATER == 0:
                accepted, new = reached.run(survive, target, data)
                if new:
                    corpus.keep(data)
            else:
                accepted = survive(target, data)
            taken += accepted
        except BaseException:
            Path(f"fuzz-failure-{name}").write_bytes(data)
            print(f"{name} failed; its bytes are in ./fuzz-failure-{name}", file=sys.stderr)
            raise
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found = {"cases": cases, "taken": taken, "refused": cases - taken, "failures": 0, "seeds": [seed]}
    found |= {"steps of the good file": good, "steps reached": len(reached.steps), "files kept": len(corpus.files)}
    return {**found, "slowest seconds": round(slowest, 3), "peak resident MB": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--cases", type=int, default=100_000, help="for all readers together, at least")
    parser.add_argument("--seconds", type=float, default=0.0, help="of computing for each reader, at least")
    parser.add_argument("-o", "--output", type=Path, help="what it holds of other readers and seeds is kept")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--readers", help="names separated by commas; default: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # A process that is killed, or that libFuzzer ends, leaves its files behind: this one takes them away with its room.
    with tempfile.TemporaryDirectory(prefix="bagwise-fuzz-") as room:
        os.environ["TMPDIR"] = room
        failed = try_readers(arguments) > 0
    sys.exit(1 if failed else 0)


def try_readers(arguments: argparse.Namespace) -> int:
    """Feed the chosen readers, each in a process of its own; give the number of those that failed."""
    from tests.fuzz.targets import TARGETS  # here, so that it finds the room

    names = [target.__name__ for target in TARGETS]
    each = -(-arguments.cases // len(names))
    chosen = arguments.readers.split(",") if arguments.readers else names
    report: dict = {"readers": {}}
    if arguments.output and arguments.output.exists():
        report = json.loads(arguments.output.read_text())
    with ProcessPoolExecutor(arguments.jobs, max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(try_reader, name, each, arguments.seconds, arguments.seed): name for name in chosen}
        for future in as_completed(running):
            try:
                found = future.result()
                report["readers"][running[future]] = together(report["readers"].get(running[future]), found)
            except Exception as error:
                report["readers"][running[future]] = {"cases": 0, "failures": 1, "error": repr(error)}
            report["cases"] = sum(found["cases"] for found in report["readers"].values())
            report["failures"] = sum(found["failures"] for found in report["readers"].values())
            print(running[future], json.dumps(report["readers"][running[future]]), flush=True)
            if arguments.output:
                arguments.output.parent.mkdir(parents=True, exist_ok=True)
                arguments.output.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    return report["failures"]


def together(before: dict | None, found: dict) -> dict:
    """What was found with several seeds; with the same seed again the cases are the same, and the latter count."""
    if before is None or not before.get("cases") or set(before["seeds"]) & set(found["seeds"]):
        return found
    summed = {name: before[name] + found[name] for name in ("cases", "taken", "refused", "failures", "seeds")}
    return {name: summed.get(name, max(before[name], value)) for name, value in found.items()}


if __name__ == "__main__":
    main()
