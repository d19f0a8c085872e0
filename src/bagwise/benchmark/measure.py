"""Run methods on data sets by a protocol: in parallel, resuming where an interrupted run stopped."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from bagwise._utils.cluster import Cluster
from bagwise._utils.journal import appending, read_journal
from bagwise._utils.lock import sole_use
from bagwise._utils.progress import track
from bagwise.benchmark.cross_validation import Repeat, cross_validate_once, p_value, summarise
from bagwise.benchmark.methods import METHODS, NEWS_SETS, PROTOCOLS, SETS, load_set


@dataclass(frozen=True)
class Task:
    """One repeat of one method on one set: the unit that is never lost."""

    method: str
    dataset: str
    protocol: str
    repeat: int
    settings: str  # tells results of other parameters apart

    def run(self) -> Repeat:
        method = METHODS[self.method]
        bags, y, y_instance = method.data(self.dataset, self.protocol)
        model = method.model(self.dataset, self.protocol)
        return cross_validate_once(model, bags, y, self.repeat, y_instance=y_instance)


@dataclass(frozen=True)
class Row:
    """Accuracy of a method on a set, in percent."""

    method: str
    dataset: str
    protocol: str
    mean: float
    std: float
    fit_seconds: float
    repeats: int
    instance_auc: float | None = None
    # How likely the distance from the best method on this set is chance; None for the best itself.
    p_value: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    auc: float | None = None


def plan(methods: list[str], sets: list[str], protocol: str, repeats: int) -> list[Task]:
    """All tasks, repeat by repeat, so that a first picture of everything is there early."""
    _known(methods, METHODS, "method")
    _known(sets, (*SETS, *NEWS_SETS), "data set")
    _known([protocol], PROTOCOLS, "protocol")
    tasks = [
        Task(method, dataset, protocol, repeat, METHODS[method].settings(dataset, protocol))
        for repeat in range(repeats)
        for dataset in sets
        for method in methods
        if METHODS[method].can_run(dataset, protocol)
    ]
    if not tasks:
        raise ValueError(
            f"none of these methods runs on these sets under the protocol {protocol!r}: try --protocol default"
        )
    return tasks


def run(tasks: list[Task], results: Path, n_jobs: int = -1, cluster: Cluster | None = None) -> dict[Task, Repeat]:
    """Run what is not yet in the results file, adding each task to it as soon as it is done.

    Parameters
    ----------
    results : a file with one JSON object per line
    cluster : where to run the tasks, instead of in ``n_jobs`` processes here
    """
    with sole_use(results.parent):
        done = read_results(results)
        missing = [task for task in tasks if task not in done]
        if cluster is not None:
            finished: Iterable[tuple[Task, Repeat]] = cluster.map(Task.run, missing)
        else:
            for dataset, protocol in dict.fromkeys((task.dataset, task.protocol) for task in missing):
                load_set(dataset, protocol)  # a set that is not here is missed now, not after an hour's work on others
            parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
            finished = parallel(delayed(_run_named)(task) for task in missing)
        _run_missing(finished, len(missing), results, done)
    return {task: done[task] for task in tasks}


def _run_missing(finished: Iterable[tuple[Task, Repeat]], count: int, results: Path, done: dict[Task, Repeat]) -> None:
    with appending(results) as add:
        for task, repeat in track(finished, total=count, description="cross-validation"):
            add({"task": asdict(task), "result": asdict(repeat)})
            done[task] = repeat


def _run_named(task: Task) -> tuple[Task, Repeat]:
    return task, task.run()


def read_results(results: Path) -> dict[Task, Repeat]:
    """What a results file holds; a line that a crash cut short does not count."""
    done: dict[Task, Repeat] = {}
    for number, entry in read_journal(results):
        try:
            done[Task(**entry["task"])] = Repeat(**entry["result"])
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"{results}, line {number}, is not a benchmark result: name another file, or remove this one"
            ) from error
    return done


def kept(results: Path, methods: list[str], sets: list[str], protocol: str) -> dict[Task, Repeat]:
    """What a results file holds of these methods with their present parameters, repeat by repeat."""
    found = {
        task: repeat
        for task, repeat in sorted(read_results(results).items(), key=lambda item: item[0].repeat)
        if task.method in methods
        and task.dataset in sets
        and task.protocol == protocol
        and task.settings == METHODS[task.method].settings(task.dataset, protocol)
    }
    if not found:
        raise ValueError(f"{results} holds no result of these methods and sets under the protocol {protocol!r}")
    return found


def rows(done: dict[Task, Repeat]) -> list[Row]:
    """Summarise the tasks of each method and set."""
    groups: dict[tuple[str, str, str], list[Repeat]] = {}
    for task, repeat in done.items():
        groups.setdefault((task.method, task.dataset, task.protocol), []).append(repeat)
    best: dict[tuple[str, str], list[Repeat]] = {}
    for (_, dataset, protocol), repeats in groups.items():
        leader = best.setdefault((dataset, protocol), repeats)
        if summarise(repeats)[0] > summarise(leader)[0]:
            best[dataset, protocol] = repeats
    return [
        _row(method, dataset, protocol, repeats, best[dataset, protocol])
        for (method, dataset, protocol), repeats in groups.items()
    ]


def _row(method: str, dataset: str, protocol: str, repeats: list[Repeat], best: list[Repeat]) -> Row:
    mean, std, seconds = summarise(repeats)
    known = [auc for repeat in repeats for auc in repeat.instance_auc if auc is not None]
    losses = [loss for repeat in repeats for loss in repeat.log_loss]
    common = min(len(repeats), len(best))
    return Row(
        method,
        dataset,
        protocol,
        100 * mean,
        100 * std,
        seconds,
        len(repeats),
        instance_auc=_mean(known),
        p_value=None if repeats is best else p_value(best[:common], repeats[:common]),
        log_loss=_mean(losses),
        calibration_error=_mean([r.calibration_error for r in repeats if r.calibration_error is not None]),
        auc=_mean([r.auc for r in repeats if r.auc is not None]),
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def environment() -> dict[str, Any]:
    """What the figures were measured with."""
    import numpy
    import sklearn

    import bagwise

    versions = {"bagwise": bagwise.__version__, "numpy": numpy.__version__, "scikit-learn": sklearn.__version__}
    return {**versions, "python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}


def _known(names: list[str], known: Any, what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}: choose from {', '.join(known)}")
