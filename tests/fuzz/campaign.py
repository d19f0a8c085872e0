"""The long fuzzing: 100 000 cases and more, under atheris where it is installed.

    python -m tests.fuzz.campaign -n 100000 -o benchmarks/results/fuzz.json

Each reader gets its share of damaged copies of a good file; atheris, which watches what code the bytes reach, leads
them further. The process may use four gigabytes, and a case ten seconds: more counts as a failure.
"""

import argparse
import json
import random
import resource
import signal
import sys
import time
from pathlib import Path

SECONDS_PER_CASE = 10


def too_slow(*_: object) -> None:
    raise RuntimeError(f"a case took more than {SECONDS_PER_CASE} seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--cases", type=int, default=100_000)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", metavar="TARGET", help="let atheris lead one reader, for this number of cases")
    arguments = parser.parse_args()
    if arguments.atheris:
        lead(arguments.atheris, arguments.cases, arguments.seed)
        return
    from tests.fuzz.mutations import damaged
    from tests.fuzz.targets import TARGETS, survive

    signal.signal(signal.SIGALRM, too_slow)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, hard))
    report: dict = {"cases": 0, "seed": arguments.seed, "taken": {}, "refused": {}, "slowest seconds": {}}
    each = -(-arguments.cases // len(TARGETS))
    for target, seed in TARGETS.items():
        name = target.__name__
        rng = random.Random(f"{arguments.seed} {name}")
        taken, slowest = 0, 0.0
        for _ in range(each):
            data = damaged(seed, rng)
            started = time.perf_counter()
            signal.alarm(SECONDS_PER_CASE)
            try:
                taken += survive(target, data)
            except BaseException:
                Path("fuzz-failure").write_bytes(data)
                print(f"{name} failed; its bytes are in ./fuzz-failure", file=sys.stderr)
                raise
            finally:
                signal.alarm(0)
            slowest = max(slowest, time.perf_counter() - started)
        report["cases"] += each
        report["taken"][name], report["refused"][name] = taken, each - taken
        report["slowest seconds"][name] = round(slowest, 3)
        print(f"{name:16} {each} cases, {taken} taken, slowest {slowest:.3f} s", flush=True)
    report["peak resident MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    report["failures"] = 0
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")


def lead(name: str, cases: int, seed: int) -> None:
    """Let atheris choose the bytes, by the code they reach in bagwise."""
    import atheris

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
