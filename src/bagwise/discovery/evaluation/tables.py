"""The paper's tables 4, 5 and 6: object discovery, published and measured, with the time it took.

Table 4: CorLoc on Pascal06-all and Pascal07-all. Table 5: CorLoc on Pascal 2007, 20 classes. Table 6: training times.
Published figures are those of Wang, Zhu, Yao and Bai (ICCV 2015), which cites the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bagwise.discovery.evaluation.kept import kept_evaluation
from bagwise.discovery.evaluation.rankings import method_of
from bagwise.discovery.run.folder import RunFolder
from bagwise.metrics.corloc import percent

ALL_SETS = {"pascal06-all": "Pascal06-all", "pascal07-all": "Pascal07-all"}
PUBLISHED_ALL = {
    "RMI-SVM": {"pascal06-all": 53.0, "pascal07-all": 37.0},
    "mi-SVM": {"pascal06-all": 30.0, "pascal07-all": 20.0},
}
PUBLISHED_CLASSES = {
    "aeroplane": 37.7,
    "bicycle": 58.8,
    "bird": 39.0,
    "boat": 4.7,
    "bottle": 4.0,
    "bus": 48.4,
    "car": 70.0,
    "cat": 63.7,
    "chair": 9.0,
    "cow": 54.2,
    "diningtable": 33.3,
    "dog": 37.4,
    "horse": 61.6,
    "motorbike": 57.6,
    "person": 30.1,
    "pottedplant": 31.7,
    "sheep": 32.4,
    "sofa": 52.8,
    "train": 49.0,
    "tvmonitor": 27.8,
}
PUBLISHED_MEANS = {
    "RMI-SVM": 40.2,
    "Multi-fold MIL": 38.8,
    "Shi 2013": 36.2,
    "Siva 2013": 32.0,
    "Siva and Xiang 2011": 30.4,
    "Siva 2012": 30.2,
}
# Seconds, on one CPU of 2012: 45 models of Pascal07-all; all 20 classes of Pascal 2007.
PUBLISHED_SECONDS = {
    ("RMI-SVM", "pascal07-all"): 854.0,
    ("mi-SVM", "pascal07-all"): 4300.0,
    ("RMI-SVM", "classes"): 2100.0,
}


@dataclass(frozen=True)
class Measured:
    """A run that was evaluated: its method, protocol, CorLoc and times."""

    name: str
    method: str
    protocol: str
    corloc: Mapping[str, Any]
    groups: int
    learning_seconds: float | None
    total_seconds: float | None


def measured(run: RunFolder) -> Measured:
    """What the tables need of a run."""
    evaluation = kept_evaluation(run)
    if evaluation is None:
        raise ValueError(f"{run.path} has not been evaluated: run `bagwise evaluate {run.path} --truth FOLDER` first")
    times = {name: value for name, value in run.manifest["timings"].items() if isinstance(value, int | float)}
    return Measured(
        run.path.name,
        method_of(run),
        evaluation["protocol"]["name"],
        evaluation["corloc"]["per-class"],
        evaluation["protocol"]["groups"],
        times.get("learning"),
        sum(times.values()) if times else None,
    )


def discovery_tables(runs: Sequence[RunFolder]) -> str:
    """The three tables as Markdown, from runs that were evaluated; what was not measured has a dash."""
    found = [measured(run) for run in runs]
    return "\n\n".join([_table_4(found), _table_5(found), _table_6(found)]) + "\n"


def _table_4(found: Sequence[Measured]) -> str:
    head = ["method", *(f"{name}, {kind}" for name in ALL_SETS.values() for kind in ("published", "measured"))]
    rows = []
    for method in _methods(found, tuple(ALL_SETS), PUBLISHED_ALL):
        row = [method]
        for protocol in ALL_SETS:
            published = PUBLISHED_ALL.get(method, {}).get(protocol)
            row += [_number(published), _of(found, method, protocol)]
        rows.append(row)
    return _markdown("Table 4. CorLoc (%), class and viewpoint pairs", head, rows)


def _table_5(found: Sequence[Measured]) -> str:
    # A run on other images has its time in table 6, but its figures would mean nothing beside these.
    mine = [
        item
        for item in found
        if item.protocol in ("classes", "labels") and set(item.corloc["groups"]) <= set(PUBLISHED_CLASSES)
    ]
    head = ["class", "RMI-SVM, published", *(f"{item.method} ({item.name}), measured{_part(item)}" for item in mine)]
    rows = [
        [label, _number(published), *(_rate(item.corloc["groups"].get(label)) for item in mine)]
        for label, published in PUBLISHED_CLASSES.items()
    ]
    rows.append(["**mean**", _number(PUBLISHED_MEANS["RMI-SVM"]), *(_rate(item.corloc["mean"]) for item in mine)])
    others = ", ".join(f"{name} {value}" for name, value in PUBLISHED_MEANS.items() if name != "RMI-SVM")
    table = _markdown("Table 5. CorLoc (%), Pascal 2007 train, 20 classes", head, rows)
    return f"{table}\n\nPublished means of others: {others}."


def _part(item: Measured) -> str:
    """What a mean over fewer classes must say."""
    return "" if item.groups == len(PUBLISHED_CLASSES) else f", {item.groups} of {len(PUBLISHED_CLASSES)} classes"


def _table_6(found: Sequence[Measured]) -> str:
    head = ["method", "protocol", "groups", "published learning, s", "measured learning, s", "measured, all stages, s"]
    rows = [
        [method, protocol, "-", _number(seconds), "-", "-"]
        for (method, protocol), seconds in PUBLISHED_SECONDS.items()
        if not any(item.method == method and item.protocol == protocol for item in found)
    ]
    for item in found:
        published = PUBLISHED_SECONDS.get((item.method, item.protocol))
        times = [_number(value) for value in (published, item.learning_seconds, item.total_seconds)]
        rows.append([f"{item.method} ({item.name})", item.protocol, str(item.groups), *times])
    return _markdown("Table 6. Time", head, rows)


def _methods(found: Sequence[Measured], protocols: Sequence[str], published: Mapping[str, Any]) -> list[str]:
    extra = [item.method for item in found if item.protocol in protocols]
    return list(dict.fromkeys([*published, *extra]))


def _of(found: Sequence[Measured], method: str, protocol: str) -> str:
    fitting = [item for item in found if item.method == method and item.protocol == protocol]
    return "; ".join(_rate(item.corloc["mean"]) for item in fitting) or "-"


def _rate(rate: Mapping[str, float] | None) -> str:
    return "-" if rate is None else percent(rate)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}".removesuffix(".0")


def _markdown(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] + ["---:"] * (len(head) - 1), *rows)]
    return f"**{title}**\n\n" + "\n".join(lines)
