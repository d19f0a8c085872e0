"""The long fuzzing: 100 000 cases and more, under atheris where it is installed.

    python -m tests.fuzz.campaign -n 100000 -o benchmarks/results/fuzz.json

Each reader gets its share of damaged copies of a good file; atheris, which watches what code the bytes reach, leads
them further (--atheris READER). A process may use four gigabytes, and a case ten seconds: more counts as a failure.
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


def too_slow(*_: object) -> None:
    raise RuntimeError(f"a case took more than {SECONDS_PER_CASE} seconds")


def try_reader(name: str, cases: int, seed: int) -> dict:
    """Feed one reader; runs in a process of its own."""
    from tests.fuzz.mutations import damaged
    from tests.fuzz.targets import TARGETS, survive

    signal.signal(signal.SIGALRM, too_slow)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, hard))
    target = next(target for target in TARGETS if target.__name__ == name)
    rng = random.Random(f"{seed} {name}")
    taken, slowest = 0, 0.0
    for _ in range(cases):
        data = damaged(TARGETS[target], rng)
        started = time.perf_counter()
        signal.alarm(SECONDS_PER_CASE)
        try:
            taken += survive(target, data)
        except BaseException:
            Path(f"fuzz-failure-{name}").write_bytes(data)
            print(f"{name} failed; its bytes are in ./fuzz-failure-{name}", file=sys.stderr)
            raise
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found = {"cases": cases, "taken": taken, "refused": cases - taken, "failures": 0, "seed": seed}
    return {**found, "slowest seconds": round(slowest, 3), "peak resident MB": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--cases", type=int, default=100_000, help="for all readers together")
    parser.add_argument("-o", "--output", type=Path, help="what it holds of other readers is kept")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--readers", help="names separated by commas; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", metavar="READER", help="let atheris lead one reader, for this number of cases")
    arguments = parser.parse_args()
    # A process that is killed, or that libFuzzer ends, leaves its files behind: this one takes them away with its room.
    with tempfile.TemporaryDirectory(prefix="bagwise-fuzz-") as room:
        os.environ["TMPDIR"] = room
        if arguments.atheris:
            led = get_context("spawn").Process(target=lead, args=(arguments.atheris, arguments.cases, arguments.seed))
            led.start()
            led.join()
            failed = led.exitcode != 0
        else:
            failed = try_readers(arguments) > 0
    sys.exit(1 if failed else 0)


def try_readers(arguments: argparse.Namespace) -> int:
    """Feed the chosen readers, each in a process of its own; give the number of those that failed."""
    from tests.fuzz.targets import TARGETS  # not before atheris had a chance to instrument what it imports

    names = [target.__name__ for target in TARGETS]
    each = -(-arguments.cases // len(names))
    chosen = arguments.readers.split(",") if arguments.readers else names
    report: dict = {"readers": {}}
    if arguments.output and arguments.output.exists():
        report = json.loads(arguments.output.read_text())
    with ProcessPoolExecutor(arguments.jobs, max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(try_reader, name, each, arguments.seed): name for name in chosen}
        for future in as_completed(running):
            try:
                report["readers"][running[future]] = future.result()
            except Exception as error:
                report["readers"][running[future]] = {"cases": 0, "failures": 1, "error": repr(error)}
            report["cases"] = sum(found["cases"] for found in report["readers"].values())
            report["failures"] = sum(found["failures"] for found in report["readers"].values())
            print(running[future], json.dumps(report["readers"][running[future]]), flush=True)
            if arguments.output:
                arguments.output.parent.mkdir(parents=True, exist_ok=True)
                arguments.output.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    return report["failures"]


def lead(name: str, cases: int, seed: int) -> None:
    """Let atheris choose the bytes, by the code they reach in bagwise."""
    import atheris

    os.environ["NUMBA_DISABLE_JIT"] = "1"  # numba cannot compile instrumented code
    with atheris.instrument_imports(include=["bagwise"]):
        from tests.fuzz.targets import TARGETS, survive
    target = next(target for target in TARGETS if target.__name__ == name)
    corpus = Path(f"fuzz-corpus-{name}")
    corpus.mkdir(exist_ok=True)
    (corpus / "good").write_bytes(TARGETS[target])
    options = [f"-runs={cases}", f"-seed={seed + 1}", f"-timeout={SECONDS_PER_CASE}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: survive(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
