"""Speed and memory of RMISVC: against plain NumPy, against the memory, and at size.

    python benchmarks/rmi_speed.py -o benchmarks/results/rmi_speed.json

All times are CPU-seconds of one thread, medians of several runs; what is compared is measured in turns in one run.
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
from compare import environment
from numba import njit
from scipy import sparse

from bagwise.benchmark.methods import load_set
from bagwise.preprocessing import InstanceScaler
from bagwise.rmi.objective import Loss
from bagwise.rmi.problem import Iterate, Problem, in_single_precision, orders
from bagwise.rmi.sgd import sgd

ELEPHANT = Loss(0.017, 5.0, 1.5)


def seconds(run, times=7):
    """CPU-seconds of each of several runs."""
    spent = []
    for _ in range(times):
        started = time.process_time()
        run()
        spent.append(time.process_time() - started)
    return spent


def in_turns(*runs, times=7):
    """Median CPU-seconds of several functions, run in turns so that a noisy moment hits all of them."""
    spent: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(times):
        for k, run in enumerate(runs):
            spent[k] += seconds(run, 1)
    return [float(np.median(s)) for s in spent]


def plain_numpy(tables, y, order, loss):
    """The release's algorithm, vectorised over the instances of a bag."""
    w = np.zeros(tables[0].shape[1])
    for t, i in enumerate(order, start=1):
        x = tables[i]
        z = x @ w
        p = 1 / (1 + np.exp(-z))
        pull = p / np.expm1(np.logaddexp(0, z).sum()) if y[i] else -p
        sign = np.where(z >= 0, 1.0, -1.0)
        c = loss.beta * pull + np.where(sign * z < loss.margin, sign, 0.0) / len(z)
        eta = 1 / (loss.lam * t)
        w = (1 - eta * loss.lam) * w + eta * (c @ x)
        w *= min(1.0, 1 / np.sqrt(loss.lam) / np.sqrt(w @ w))
    return w


@njit(fastmath=True, nogil=True)
def touch_twice(x, offsets, order):
    """Read each bag's rows twice, and do next to nothing with them."""
    total = 0.0
    for i in order:
        for _ in range(2):
            for j in range(offsets[i], offsets[i + 1]):
                row = x[j]
                s = 0.0
                for k in range(len(row)):
                    s += row[k]
                total += s
    return total


def elephant():
    bags, y, _ = load_set("elephant", "paper")
    train = np.random.RandomState(0).permutation(200)[:180]
    bags, y = InstanceScaler("unit").fit_transform(bags[train]), y[train]
    with_bias = [np.hstack([bag, np.ones((len(bag), 1))]) for bag in bags]
    passes = list(orders(180, 18_000, "shuffle", np.random.RandomState(0)))
    flat = np.concatenate(passes)
    stored = in_single_precision(bags, lambda part: part, bags.n_features)
    problem = Problem(stored, (y == 1)[:, None], np.ones((180, 1)), ELEPHANT, True)

    def ours():
        return sgd(problem, Iterate.zero(1, 230), iter(passes), average_from=None, radius=problem.radius("pegasos"))[0]

    slow, fast, touch = in_turns(
        lambda: plain_numpy(with_bias, y, flat, ELEPHANT),
        ours,
        lambda: touch_twice(stored.instances, bags.offsets, flat),
        times=5,
    )
    w = plain_numpy(with_bias, y, flat, ELEPHANT)
    found = np.append(ours().coef[0], ours().intercept)
    assert np.linalg.norm(found - w) < 0.01 * np.linalg.norm(w), "the two must agree"
    return {
        "plain NumPy, s": slow,
        "bagwise, s": fast,
        "times faster": slow / fast,
        "touching the bytes twice, s": touch,
        "times the touching": fast / touch,
    }


def columns_do_not_matter():
    """A step on sparse bags must cost the same with ten times the columns."""
    bags, y, _ = load_set("trec1", "paper")
    csr = InstanceScaler("unit").fit_transform(bags)
    x = csr.instances
    wide = csr.with_instances(sparse.csr_array((x.data, x.indices, x.indptr), shape=(x.shape[0], 10 * x.shape[1])))
    flat = np.concatenate(list(orders(400, 40_000, "shuffle", np.random.RandomState(0))))

    def steps(bags):
        problem = Problem(bags, (y == 1)[:, None], np.ones((400, 1)), Loss(0.0003, 4, 2), True)
        start, radius = Iterate.zero(1, bags.n_features), problem.radius("pegasos")
        return lambda: sgd(problem, start, iter([flat]), average_from=20_000, radius=radius)

    narrow_s, wide_s = in_turns(steps(csr), steps(wide))
    return {
        "66 000 columns, µs per step": 1e6 * narrow_s / len(flat),
        "660 000 columns, µs per step": 1e6 * wide_s / len(flat),
        "nonzeros per step": bags.instances.nnz / len(bags),
    }


AT_SIZE = """
import resource, sys, time, numpy as np
sys.path[:0] = {paths!r}
from bagwise import Bags, RMISVC
from plain import fit_rmi_svm
rng = np.random.RandomState(0)
y = np.arange(2000) % 2
x = rng.randn(2000, 20, 100)
x[y == 1, 0, 0] += 4
bags = Bags(x)
RMISVC(0.01, epochs=1).fit(bags[:4], y[:4])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
RMISVC(0.001, random_state=0).fit(bags, y)
ours = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
fit_rmi_svm(list(x), y, lam=0.001, margin=0.5)
print(time.process_time() - started, ours, before / 1024, peak / 1024)
"""


def at_size():
    """2000 bags of 20 instances with 100 features, with a fixed λ, in a process of its own; then plain NumPy's."""
    here = Path(__file__).resolve().parent
    code = AT_SIZE.format(paths=[str(here.parent / "src"), str(here / "peers")])
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append([float(part) for part in done.stdout.split()])
    plain, spent, before, peak = np.median(runs, axis=0)
    return {
        "plain NumPy, s": plain,
        "fit, s": spent,
        "times faster": plain / spent,
        "memory before, MB": before,
        "added by the fit, MB": peak - before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    document = {
        "measured": environment(),
        "one Elephant fit, 18 000 steps": elephant(),
        "sparse steps": columns_do_not_matter(),
        "2000 x 20 x 100": at_size(),
    }
    for title, figures in document.items():
        print(title)
        for name, value in figures.items():
            print(f"  {name:32} {value:10.3f}" if isinstance(value, float) else f"  {name:32} {value}")
    if options.output:
        options.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
