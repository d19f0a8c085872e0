"""Which method suits these bags? All that can read them, by repeated cross-validation on the user's own data."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bagwise._utils.journal import appending, read_journal
from bagwise._utils.lock import sole_use
from bagwise._utils.progress import track
from bagwise._utils.words import counted
from bagwise.bags import Bags
from bagwise.base import BagClassifier, check_labels
from bagwise.benchmark.cross_validation import Repeat, cross_validate_once, p_value, summarise
from bagwise.registry import classifiers, find

GUESSING = "guessing"
FEW_BAGS = 6  # of each class, on which a method is fitted first
NOT_TOLD_APART = 0.05  # p from which two methods cannot be told apart


@dataclass(frozen=True)
class Compared:
    """One method on the user's bags.

    Attributes
    ----------
    method : str
        Class name; "guessing" answers with the most frequent class and the classes' shares.
    accuracy, log_loss, auc, calibration_error : float or None
        Means over all test bags and repeats; None where the method has no such figure.
    fit_seconds : float
        Median CPU time of a fit.
    p_value : float or None
        How likely the distance in accuracy from the best method is chance; None for the best itself.
    note : str
        Why the method was not measured, or empty.
    """

    method: str
    accuracy: float | None = None
    log_loss: float | None = None
    auc: float | None = None
    calibration_error: float | None = None
    fit_seconds: float | None = None
    p_value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """What `compare` found: the methods, the best accuracy first.

    Attributes
    ----------
    rows : list of Compared
    n_folds, n_repeats : int
    recommended : str
        Of the methods that cannot be told apart from the most accurate one, that with the lowest log loss.
    """

    rows: list[Compared]
    n_folds: int
    n_repeats: int
    recommended: str

    def to_pandas(self) -> Any:
        """The rows as a DataFrame indexed by method."""
        import pandas

        return pandas.DataFrame([asdict(row) for row in self.rows]).set_index("method")

    def __str__(self) -> str:
        lines = [["method", "accuracy", "log loss", "AUC", "time per fit", "against the best"]]
        for row in self.rows:
            if row.note:
                lines.append([row.method, row.note])
                continue
            lines.append(
                [
                    row.method,
                    _told(row.accuracy, "{:.1%}"),
                    _told(row.log_loss, "{:.3f}"),
                    _told(row.auc, "{:.3f}"),
                    _told(row.fit_seconds, "{:.2g} s"),
                    "" if row.method == GUESSING else "best" if row.p_value is None else f"p = {row.p_value:.3f}",
                ]
            )
        widths = [max(len(line[k]) for line in lines if len(line) > 2) for k in range(len(lines[0]))]
        table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
        return f"{table}\n\n{self.reason}"

    @property
    def reason(self) -> str:
        """The recommendation in words."""
        alike = [row.method for row in self.rows if row.p_value is not None and row.p_value > NOT_TOLD_APART]
        text = f"Recommended: {self.recommended}."
        if self.recommended == GUESSING:
            return "No method does better than guessing on these bags: more bags or other features are needed."
        if alike:
            text += (
                f" The most accurate method and {counted(len(alike), 'other')} cannot be told apart "
                f"(p > {NOT_TOLD_APART}); of these it has the lowest log loss."
            )
        return text + " The figure of the best of many is a little optimistic: check it on bags set aside."


def compare(
    X: Any,
    y: ArrayLike,
    *,
    methods: Iterable[str | BagClassifier] | None = None,
    positive: Any = None,
    n_folds: int = 5,
    n_repeats: int = 3,
    seconds_per_method: float = 120.0,
    output: str | Path | None = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare methods with default settings on labelled bags, by repeated stratified cross-validation.

    All methods see the same folds. After the first fit of a method the time of the others is estimated: a method
    that would take longer than ``seconds_per_method`` is left out, with a note.

    Parameters
    ----------
    X : Bags, or anything that makes Bags
    y : (n_bags,) labels
    methods : iterable of names or estimators, default=all of the library that can read the bags
    positive : label, optional
        Of two labels, the one that a single instance causes; see `BagClassifier.fit`.
    n_folds : int, default=5
        Fewer where a class has fewer bags.
    n_repeats : int, default=3
    seconds_per_method : float, default=120
    output : path, optional
        A folder: finished repeats are kept there, and the same call resumes.
    n_jobs : int, default=1
        Processes.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from bagwise import compare
    >>> from bagwise.datasets import load_musk1
    >>> bags, y = load_musk1()
    >>> found = compare(bags, y, methods=["MIKernelSVC", "SingleInstance"], n_folds=2, n_repeats=1)
    >>> best, guess = found.rows[0], found.rows[-1]
    >>> guess.method, best.accuracy > guess.accuracy + 0.1
    ('guessing', True)
    """
    bags = X if isinstance(X, Bags) else Bags(X)
    models = _models(bags, methods)
    if positive is not None:
        models = {name: model.set_params(positive=positive) for name, model in models.items()}
    labels = check_labels(next(iter(models.values())), bags, y)
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y holds only one class, {classes[0]!r}: there is nothing to compare")
    n_folds = min(n_folds, int(counts.min()))
    if n_folds < 2:
        raise ValueError(f"class {classes[counts.argmin()]!r} has a single bag: cross-validation needs two at least")
    data = _fingerprint(bags, labels, n_folds) if output is not None else ""
    done: dict[tuple[str, int], Repeat] = {}
    too_slow: dict[str, float] = {}
    limit = [n_repeats, seconds_per_method]
    with ExitStack() as stack:
        add: Any = lambda entry: None  # noqa: E731
        if output is not None:
            path = stack.enter_context(sole_use(output)) / "compare.jsonl"
            for _, entry in read_journal(path):
                if entry.get("data") != data or entry["settings"] != _settings(models.get(entry["method"])):
                    continue
                if "seconds" in entry:
                    if entry["limit"] == limit:
                        too_slow[entry["method"]] = entry["seconds"]
                else:
                    done[entry["method"], entry["repeat"]] = Repeat(**entry["result"])
            add = stack.enter_context(appending(path))
        missing = [(name, r) for r in range(n_repeats) for name in models if (name, r) not in done]
        new = [(name, r) for name, r in missing if name not in too_slow]
        estimates = _too_slow(models, bags, labels, n_folds, n_repeats, seconds_per_method, new)
        for name, seconds in track(estimates, total=len({name for name, _ in new}), description="first fits"):
            if seconds is not None:
                too_slow[name] = seconds
                about = {"method": name, "settings": _settings(models[name]), "limit": limit, "seconds": seconds}
                add({"data": data, **about})
        tasks = [(name, r) for name, r in missing if name not in too_slow]
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        finished = parallel(delayed(_run)(name, models[name], bags, labels, r, n_folds) for name, r in tasks)
        for name, repeat, result in track(finished, total=len(tasks), description="comparing"):
            done[name, repeat] = result
            settings = _settings(models[name])
            add({"data": data, "method": name, "settings": settings, "repeat": repeat, "result": asdict(result)})
    shown = f"more than {seconds_per_method:.0f} s in all"
    left_out = dict.fromkeys(name for name, r in missing if name in too_slow)
    notes = {name: f"left out: {too_slow[name]:.0f} s a fit, {shown}" for name in left_out}
    repeats = {name: [done[name, r] for r in range(n_repeats)] for name in models if name not in notes}
    return _comparison(repeats, notes, labels, n_folds, n_repeats)


def _models(bags: Bags, methods: Iterable[str | BagClassifier] | None) -> dict[str, BagClassifier]:
    """Unfitted estimators by name: those asked for, or all that can read the bags."""
    if methods is None:
        csr, prior = sparse.issparse(bags.instances), bags.prior is not None
        able = [kind for kind in classifiers() if kind.accepts_sparse >= csr and kind.uses_prior >= prior]
        return {kind.__name__: kind() for kind in able}
    models: dict[str, BagClassifier] = {}
    for method in methods:
        if isinstance(method, str):
            kind = find(method).load()
            models[kind.__name__] = kind()
        else:
            models[type(method).__name__ if type(method).__name__ not in models else repr(method)] = method
    if not models:
        raise ValueError("methods names no method: leave it out to compare all")
    return models


def _run(name: str, model: BagClassifier, bags: Bags, y: NDArray, repeat: int, n_folds: int) -> tuple[str, int, Repeat]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a default setting warns of in one fold is no news to the user here
        splits = StratifiedKFold(n_folds, shuffle=True, random_state=repeat).split(np.zeros(len(y)), y)
        return name, repeat, cross_validate_once(model, bags, y, repeat, splits=splits)


def _too_slow(
    models: dict[str, BagClassifier],
    bags: Bags,
    y: NDArray,
    n_folds: int,
    n_repeats: int,
    limit: float,
    missing: list[tuple[str, int]],
) -> Iterator[tuple[str, float | None]]:
    """For each method that has not run yet, the seconds of a fit if all of them would take too long, else None.

    A first fit on a few bags loads and compiles what the method needs, which no other fit has to do again. Then a
    quarter of the bags is asked, and a half.
    """
    order = np.random.RandomState(0).permutation(len(y))
    few = np.sort(np.concatenate([order[y[order] == label][:FEW_BAGS] for label in np.unique(y)]))
    for name in dict.fromkeys(name for name, _ in missing):
        a_fit = 0.0
        _seconds_of_a_fit(models[name], bags, y, few)
        for share in (0.25, 0.5):
            part = np.sort(order[: max(20, int(share * len(y)))])
            if len(np.unique(y[part])) < 2:
                break
            seconds = _seconds_of_a_fit(models[name], bags, y, part)
            # Time grows at least with the number of bags: a full fit takes no less than this.
            a_fit = seconds if share == 0.25 else seconds * (1 - 1 / n_folds) * len(y) / len(part)
            if share == 0.25 and seconds > limit:
                break
        yield name, a_fit if a_fit > limit or (a_fit * n_folds * n_repeats > limit and share == 0.5) else None


def _seconds_of_a_fit(model: BagClassifier, bags: Bags, y: NDArray, part: NDArray) -> float:
    """Seconds on the clock, or of the processor where other programs have it for part of the time."""
    started = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(bags[part], y[part])
    return min(time.perf_counter() - started[0], time.process_time() - started[1])


def _comparison(
    repeats: dict[str, list[Repeat]], notes: dict[str, str], y: NDArray, n_folds: int, n_repeats: int
) -> Comparison:
    share = np.unique(y, return_counts=True)[1] / len(y)
    guess = Compared(GUESSING, float(share.max()), float(-(share * np.log(share)).sum()), 0.5, 0.0, 0.0)
    best = max(repeats, key=lambda name: summarise(repeats[name])[0], default=None)
    rows = []
    for name, results in repeats.items():
        accuracy, _, seconds = summarise(results)
        losses = [loss for r in results for loss in r.log_loss]
        aucs = [r.auc for r in results if r.auc is not None]
        errors = [r.calibration_error for r in results if r.calibration_error is not None]
        rows.append(
            Compared(
                name,
                accuracy,
                float(np.mean(losses)) if losses else None,
                float(np.mean(aucs)) if aucs else None,
                float(np.mean(errors)) if errors else None,
                seconds,
                None if best is None or name == best else p_value(repeats[best], results),
            )
        )
    rows.sort(key=lambda row: -(row.accuracy or 0))
    alike = [row for row in rows if row.p_value is None or row.p_value > NOT_TOLD_APART]
    better = [row for row in alike if (row.accuracy or 0) > (guess.accuracy or 0)]
    chosen = min(better, key=lambda row: row.log_loss if row.log_loss is not None else np.inf, default=guess)
    left_out = [Compared(name, note=note) for name, note in notes.items()]
    return Comparison([*rows, *left_out, guess], n_folds, n_repeats, chosen.method)


def _told(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _settings(model: BagClassifier | None) -> str:
    return "" if model is None else repr(sorted((key, repr(value)) for key, value in model.get_params().items()))


def _fingerprint(bags: Bags, y: NDArray, n_folds: int) -> str:
    """Tells these bags, labels and folds from others in the same results file."""
    digest = hashlib.sha256(repr((bags.shape, n_folds, np.unique(y, return_inverse=True)[1].tolist())).encode())
    x = bags.instances
    for part in (x.data, x.indices, x.indptr) if sparse.issparse(x) else (x,):
        digest.update(np.ascontiguousarray(part).data)
    digest.update(bags.offsets.data)
    return digest.hexdigest()[:16]
