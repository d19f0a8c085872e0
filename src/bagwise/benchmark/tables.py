"""The benchmark's tables: ours beside the published figures, with the difference marked."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bagwise.benchmark.measure import Row, environment
from bagwise.benchmark.published import published

# Differences of up to so many points are within what another shuffling of the folds does.
CLOSE = 1.0


def mark(difference: float | None) -> str:
    """▲ better than published, ▼ worse, = as good as the same."""
    if difference is None:
        return ""
    return "=" if abs(difference) <= CLOSE else "▲" if difference > 0 else "▼"


def cells(rows: list[Row]) -> list[list[str]]:
    """One line per method and set: ours, published, difference, time."""
    lines = []
    for row in rows:
        target = published(row.method, row.dataset)
        difference = None if target is None else row.mean - target
        lines.append(
            [
                row.dataset,
                row.method,
                f"{row.mean:.1f} ± {row.std:.1f}",
                f"{row.repeats} x 10",
                "-" if target is None else f"{target:.1f}",
                "" if difference is None else f"{difference:+.1f} {mark(difference)}",
                _chance(row.p_value),
                "" if row.log_loss is None else f"{row.log_loss:.2f}",
                "" if row.calibration_error is None else f"{row.calibration_error:.2f}",
                "" if row.instance_auc is None else f"{row.instance_auc:.3f}",
                f"{1000 * row.fit_seconds:.0f} ms",
            ]
        )
    return lines


HEADER = [
    "set",
    "method",
    "accuracy",
    "folds",
    "published",
    "difference",
    "against the best",
    "log loss",
    "calibration error",
    "instance AUC",
    "time per fit",
]
NOTE = (
    "▲ ▼ =: better, worse, or within a point of the published figure. Against the best: p of the corrected resampled "
    "t-test (Nadeau and Bengio) between the folds of this method and of the best on the set; above .05 they cannot be "
    "told apart. Calibration error: expected, over ten bins."
)


def _chance(p: float | None) -> str:
    return "best" if p is None else "p < .001" if p < 0.001 else f"p = {p:.3f}"


def _telling_columns(rows: list[Row]) -> list[list[str]]:
    """Header and lines, without the columns that say nothing here."""
    lines = [HEADER, *cells(rows)]
    told = [k for k in range(len(HEADER)) if any(line[k] not in ("", "best") for line in lines[1:])]
    return [[line[k] for k in told] for line in lines]


def markdown(rows: list[Row]) -> str:
    """The table as Markdown; where the truth about instances is known, two tables with a column for each method."""
    if all(row.instance_auc is None for row in rows):
        return _markdown_table(_telling_columns(rows)) + f"\n{NOTE}\n"
    judged = [row for row in rows if row.instance_auc is not None]
    repeats = sorted({row.repeats for row in rows})
    return (
        f"Area under the ROC curve of the instance scores ({' or '.join(map(str, repeats))} x 10 folds):\n\n"
        + _markdown_table(_by_set({(row.dataset, row.method): row.instance_auc or 0.0 for row in judged}, "{:.2f}"))
        + "\nAccuracy on bags:\n\n"
        + _markdown_table(_by_set({(row.dataset, row.method): row.mean for row in rows}, "{:.0f}"))
    )


def _markdown_table(lines: list[list[str]]) -> str:
    header, *rest = lines
    return "".join("| " + " | ".join(line) + " |\n" for line in [header, ["---"] * len(header), *rest])


def _by_set(figures: dict[tuple[str, str], float], form: str) -> list[list[str]]:
    """A line for each set and one for the mean, a column for each method, the best mean first."""
    sets, methods = (list(dict.fromkeys(keys)) for keys in zip(*figures))
    means = {name: [value for (_, method), value in figures.items() if method == name] for name in methods}
    methods.sort(key=lambda name: -sum(means[name]) / len(means[name]))
    lines = [["set", *methods]]
    for name in sets:
        found = [figures.get((name, method)) for method in methods]
        lines.append([name, *("-" if value is None else form.format(value) for value in found)])
    return [*lines, ["**mean**", *(form.format(sum(means[name]) / len(means[name])) for name in methods)]]


def rich_table(rows: list[Row], title: str) -> Any:
    """The table for a terminal."""
    from rich.table import Table

    table = Table(title=title, caption=NOTE)
    header, *lines = _telling_columns(rows)
    for name in header:
        table.add_column(name, justify="left" if name in ("set", "method") else "right", no_wrap=name == "accuracy")
    last = None
    for line in lines:
        if last is not None and line[0] != last:
            table.add_section()
        last = line[0]
        table.add_row(*line)
    return table


def summary(rows: list[Row], command: str) -> str:
    """The rows as JSON, with what made them."""
    document = {"command": command, "environment": environment(), "rows": [asdict(row) for row in rows]}
    return json.dumps(document, indent=1) + "\n"
