"""RMISVC's steps on a graphics card: right, and how near to the speed of the card's memory.

    python benchmarks/gpu.py -o benchmarks/results/gpu.json

Checks the kernels against the algorithm in plain NumPy, then times twenty classes at once, each with bags of its own,
at the size of object discovery (400 boxes of 6401 numbers), against the card's copy bandwidth in the same run.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch
import triton

from bagwise import RMISVC
from bagwise.bags import Bags
from bagwise.rmi.objective import Loss, instance_coefficients, value_and_gradient
from bagwise.rmi.problem import Iterate, Problem
from bagwise.rmi.torch_solver import CardData, CudaStepper, aligned_width

CLASSES, STEPS, BOXES, FEATURES = 20, 8000, 400, 6401
LOSS = Loss(lam=0.003, beta=5.0, margin=1.2)


def copy_bandwidth(n_bytes: int = 8 << 30) -> float:
    """Bytes read and written per second by a large copy on the card."""
    source = torch.randn(n_bytes // 4, device="cuda")
    target = torch.empty_like(source)
    times = [elapsed(lambda: target.copy_(source)) for _ in range(10)]
    return 2 * n_bytes / float(np.median(times[3:]))


def elapsed(run) -> float:
    """Seconds on the card."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000


def plain_steps(problem: Problem, k: int, order, radius: float, average_from: int):
    """The algorithm in NumPy and float64: last iterate, and the mean of the later ones."""
    bags, loss = problem.bags, problem.loss
    w, mean = np.zeros(bags.n_features + 1), 0.0
    for t, i in enumerate(order, start=1):
        x = np.hstack([bags[int(i)].astype(np.float64), np.ones((len(bags[int(i)]), 1))])
        z = x @ w + bags.prior[bags.offsets[i] : bags.offsets[i + 1]]
        c = instance_coefficients(z, np.array([0, len(z)]), problem.targets[i : i + 1, k], loss)[1]
        w = (1 - 1 / t) * w + problem.weight[i, k] / (loss.lam * t) * (x.T @ c)
        w *= min(1, radius / max(np.linalg.norm(w), 1e-300))
        mean = mean + w if t > average_from else mean
    return w, mean / (len(order) - average_from)


def check(dtype, steps: int, problems: int = 3) -> dict:
    """Differences from plain NumPy on ragged bags with a prior: of the vectors, and of what they are for."""
    rng = np.random.RandomState(0)
    tables = [rng.randn(rng.randint(1, 700), 300).astype(dtype) for _ in range(150)]
    tables = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in tables]
    targets = rng.rand(len(tables), problems) < 0.3
    for x, row in zip(tables, targets):
        for k in np.flatnonzero(row):
            x[rng.randint(len(x)), k] += 1
    bags = Bags(tables, prior=rng.randn(sum(map(len, tables))))
    weight = rng.uniform(0.5, 1.5, targets.shape)
    problem = Problem(bags, targets, weight / weight.mean(axis=0), LOSS, True)
    radius = problem.radius("safe")
    order = np.array([rng.randint(len(bags), size=steps) for _ in range(problems)])
    data = CardData.from_problem(problem, 300)
    stepper = CudaStepper(data, LOSS, True, Iterate.zero(problems, 300), radius)
    stepper.run(order, steps // 2)
    again = CudaStepper(data, LOSS, True, Iterate.zero(problems, 300), radius)
    again.run(order, steps // 2)
    coef, intercept = (part / (steps - steps // 2) for part in stepper.sums())
    differences: dict = {"steps": steps, "dtype": np.dtype(dtype).name}
    for k in range(problems):
        last, mean = plain_steps(problem, k, order[k], radius[k], steps // 2)
        ours = np.append(coef[k], intercept[k])
        value = [
            value_and_gradient(
                w, bags.instances, bags.offsets, targets[:, k], LOSS, prior=bags.prior, bag_weight=problem.weight[:, k]
            )[0]
            for w in (ours, mean)
        ]
        found = {
            "last": relative(np.append(stepper.last().coef[k], stepper.last().intercept[k]), last),
            "mean": relative(ours, mean),
            "objective": abs(value[0] / value[1] - 1),
        }
        differences = {**differences, **{key: max(v, differences.get(key, 0.0)) for key, v in found.items()}}
    differences["same bits again"] = bool(np.array_equal(stepper.last().coef, again.last().coef))
    return differences


def relative(a, b) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def synthetic(n_bags: int, dtype) -> CardData:
    """Bags of discovery's size, made on the card; one box of a positive image is drawn towards its class."""
    width = aligned_width(FEATURES, torch.empty((), dtype=dtype).element_size())
    generator = torch.Generator(device="cuda").manual_seed(0)
    x = torch.zeros((n_bags * BOXES, width), dtype=dtype, device="cuda")
    concepts = torch.randn((CLASSES, FEATURES), device="cuda", generator=generator)
    targets = torch.rand((n_bags, CLASSES), device="cuda", generator=generator) < 0.1
    for i in range(n_bags):
        rows = torch.randn((BOXES, FEATURES), device="cuda", generator=generator)
        for box, k in enumerate(torch.nonzero(targets[i]).flatten().tolist()):
            rows[box * 7] += 2 * concepts[k]
        x[i * BOXES : (i + 1) * BOXES, :FEATURES] = rows / rows.norm(dim=1, keepdim=True)
    offsets = torch.arange(0, (n_bags + 1) * BOXES, BOXES, device="cuda")
    weight = torch.ones((n_bags, CLASSES), dtype=torch.float64, device="cuda")
    return CardData(x, FEATURES, offsets, targets.to(torch.uint8), weight)


def timed(data: CardData, order) -> float:
    """Seconds for all steps, median of three after one that compiles."""
    times = []
    for _ in range(4):
        stepper = CudaStepper(
            data, LOSS, True, Iterate.zero(CLASSES, FEATURES), np.full(CLASSES, 1 / np.sqrt(LOSS.lam))
        )
        torch.cuda.synchronize()
        started = time.perf_counter()
        stepper.run(order, STEPS // 2)
        coef, intercept = (part / (STEPS - STEPS // 2) for part in stepper.sums())
        times.append(time.perf_counter() - started)  # all of it: order to the card, recording, steps, answer back
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise SystemExit("the steps gave numbers that are not finite")
    return float(np.median(times[1:]))


def whole_fit(n_bags: int = 1000, boxes: int = 100, features: int = 512) -> dict:
    """RMISVC.fit as a user calls it, from host memory, on both devices."""
    rng = np.random.RandomState(0)
    y = rng.randint(20, size=n_bags)
    x = rng.randn(n_bags, boxes, features).astype(np.float32)
    x[np.arange(n_bags), rng.randint(boxes, size=n_bags), y] += 8
    report = {}
    for device in ("cuda", "cpu"):
        RMISVC(device=device, epochs=1, random_state=0).fit(x[:100], y[:100])
        started = time.perf_counter()
        model = RMISVC(device=device, epochs=20, random_state=0).fit(x, y)
        report[f"{device} seconds"] = time.perf_counter() - started
        report[device] = model
    report["difference of coef_"] = relative(report["cuda"].coef_, report["cpu"].coef_)
    report["same labels"] = float(np.mean(report.pop("cuda").predict(x) == report.pop("cpu").predict(x)))
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/gpu.json"))
    parser.add_argument("--bags", type=int, default=2500, help="images on the card")
    arguments = parser.parse_args()
    report: dict = {
        "card": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "triton": triton.__version__, "python": platform.python_version()},
    }

    def save(key, value):
        report[key] = value
        print(key, json.dumps(value), flush=True)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")

    save("checks", [check(dtype, steps) for dtype in (np.float64, np.float32) for steps in (50, 2000)])
    bandwidth = copy_bandwidth()
    save("copy bytes per second", bandwidth)
    save("size", {"classes": CLASSES, "steps": STEPS, "boxes": BOXES, "features": FEATURES, "bags": arguments.bags})
    rng = np.random.RandomState(0)
    own = np.array([rng.randint(arguments.bags, size=STEPS) for _ in range(CLASSES)])
    rows = []
    for dtype in (torch.float32, torch.float16):
        data = synthetic(arguments.bags, dtype)
        item = data.instances.element_size()
        for kind, order in (("own bags", own), ("same bags", own[0])):
            seconds = timed(data, order)
            touched = 2 * CLASSES * STEPS * BOXES * data.instances.shape[1] * item
            rows.append(
                {
                    "storage": str(dtype), "orders": kind, "seconds": seconds,
                    "microseconds per step": 1e6 * seconds / STEPS,
                    "bytes per second": touched / seconds, "of copy bandwidth": touched / seconds / bandwidth,
                }
            )  # fmt: skip
        del data
        torch.cuda.empty_cache()
    save("timings", rows)
    save("fit", whole_fit())


if __name__ == "__main__":
    main()
