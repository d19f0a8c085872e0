"""Measure one fit in a process of its own.

Runs in every peer's environment, so it needs nothing but NumPy. A peer is a script that names its methods and calls
`main`; `main` prints one JSON object: what was measured, or how it failed.
"""

import argparse
import contextlib
import json
import os
import resource
import sys
import time
import traceback

import numpy as np

REPEAT_BELOW = 1.0  # seconds in all: shorter fits are repeated, and the mean taken, for some clocks tick in 8 ms
REPEATS = 50
WARM_UP_BAGS = 24  # compilers, caches and thread pools are warmed up on so many bags first


def main(methods, version):
    """Measure the method that the command line names.

    Parameters
    ----------
    methods : dict of str to callable
        ``fit(tables, y)``, with a list of (m, d) arrays and labels 0 and 1, returns ``predict(tables) -> labels``.
    version : callable that gives the version of what is measured
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=list(methods))
    parser.add_argument("problem", help="an .npz file of compare.py")
    parser.add_argument("--cpu-seconds", type=int, required=True)
    parser.add_argument("--memory-mb", type=int, required=True)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (options.cpu_seconds, options.cpu_seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (options.memory_mb << 20, options.memory_mb << 20))
    report = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # peers print as they go
        answer = _attempt(methods[options.method], options.problem, version)
    print(json.dumps(answer), file=report, flush=True)
    os._exit(0)  # some peers leave threads behind


def _attempt(fit, problem, version):
    try:
        return {"version": version(), **measure(fit, *load(problem))}
    except MemoryError as error:
        return {"fails": f"out of memory ({_short(error)})"}
    except BaseException as error:
        traceback.print_exc()
        if "allocate" in str(error):  # torch has its own word for it
            return {"fails": f"out of memory ({_short(error)})"}
        return {"fails": f"{type(error).__name__}: {_short(error)}"}


def _short(error, length=200):
    text = " ".join(str(error).split())
    return text if len(text) <= length else text[:length] + "…"


def load(path):
    """Training tables and labels, and those to test on."""
    with np.load(path) as arrays:
        return list(arrays["train"]), arrays["train_y"], list(arrays["test"]), arrays["test_y"]


def measure(fit, tables, y, test, test_y):
    """CPU-seconds and memory of a fit, and the share of new bags that it then gets right."""
    some = np.concatenate([np.flatnonzero(y == label)[: WARM_UP_BAGS // 2] for label in (0, 1)])
    fit([tables[i] for i in some], y[some])
    before = memory("VmRSS")
    forget_peak()
    spent = []
    while len(spent) < REPEATS and sum(spent) < REPEAT_BELOW:
        started = time.process_time()
        predict = fit(tables, y)
        spent.append(time.process_time() - started)
    peak = memory("VmHWM")
    right = float(np.mean(np.asarray(predict(test)).ravel() == test_y))
    return {
        "seconds": sum(spent) / len(spent),
        "repeats": len(spent),
        "peak_mb": peak,
        "added_mb": max(0.0, peak - before),
        "accuracy": right,
    }


def memory(name):
    """A figure of /proc/self/status in MB; the process's peak where there is no such file."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)


def forget_peak():
    """Have the peak (VmHWM) start anew, where the system can."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
