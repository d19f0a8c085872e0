"""The report's page, section by section."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files as package_files
from typing import Any

import numpy as np

from bagwise._utils.progress import track
from bagwise._utils.words import confidence_in_words, counted
from bagwise.discovery.evaluation.kept import kept_evaluation, kept_truth
from bagwise.discovery.run.folder import RunFolder
from bagwise.metrics.corloc import boxes_of, percent
from bagwise.metrics.truth import TruthBox
from bagwise.report.charts import Line, histogram, line_chart
from bagwise.report.learning import learning_section
from bagwise.report.pictures import (
    BUDGET,
    Answer,
    answers_by_class,
    per_row,
    picture,
    rows_of_gallery,
    thumbnail,
)
from bagwise.report.reviewed import review_section
from bagwise.report.tables import table
from bagwise.report.text import escape
from bagwise.review.decisions import read_decisions
from bagwise.review.reviewed import reviewed_labels

PROBLEMS_SHOWN = 50
# Nothing may be fetched and no script may run, whatever a file name or a label holds.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

Truth = Mapping[str, Sequence[TruthBox]]


def render(run: RunFolder) -> str:
    """The whole page."""
    evaluation, truth = kept_evaluation(run), kept_truth(run)
    classes: dict[str, str] = evaluation["protocol"]["classes"] if evaluation else {}
    answers = answers_by_class(run, truth, classes)
    sections = [
        _head(run, answers, evaluation),
        _class_table(run, answers, evaluation),
        review_section(run),
        _plots(answers, evaluation),
        learning_section(run, answers, truth, classes),
        *_galleries(run, answers, truth, classes),
        _problems(run.manifest["problems"]),
        _small_print(run),
    ]
    style = package_files("bagwise.report").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(f"{counted(len(run.images), 'image')}, {counted(len(run.classes), 'class', 'classes')}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Objects found in {title}</title><style>{style}</style></head><body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body></html>\n"
    )


def _head(run: RunFolder, answers: Mapping[str, Sequence[Answer]], evaluation: Mapping[str, Any] | None) -> str:
    every = [answer for found in answers.values() for answer in found]
    objects = run.boxes["kind"].to_pylist().count("object")
    cards = [
        (f"{len(run.images):,}", "images"),
        (f"{len(run.classes):,}", "classes"),
        (f"{objects:,}", "objects found"),
    ]
    if every:
        cards.append((confidence_in_words(float(np.mean([answer.confidence for answer in every]))), "mean confidence"))
    if evaluation:
        for name, shown in (("per-class", "CorLoc, per class"), ("any-class", "CorLoc, any class")):
            mean = evaluation["corloc"][name]["mean"]
            interval = f"{100 * mean['low']:.1f} to {100 * mean['high']:.1f}"
            cards.append((f"{100 * mean['value']:.1f}%", f"{shown} ({interval})"))
    seconds = sum(value for value in run.manifest["timings"].values() if isinstance(value, int | float))
    if seconds:
        cards.append((_duration(seconds), "computing time"))
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(text)}</span></li>" for value, text in cards)
    made = f"bagwise {run.manifest['bagwise']}, {_moment(run.manifest['created'])}"
    return (
        f'<header><h1>Objects found in {counted(len(run.images), "image")}</h1><p class="faint">{escape(made)}</p>'
        f'<ul class="cards">{items}</ul></header>'
    )


def _class_table(run: RunFolder, answers: Mapping[str, Sequence[Answer]], evaluation: Mapping[str, Any] | None) -> str:
    rates = evaluation["corloc"]["per-class"]["groups"] if evaluation else {}
    heads = ["class", "images", "confidence", "below 50%", *(["CorLoc, % (interval)"] if rates else [])]
    labelled = Counter(label for labels in reviewed_labels(run, read_decisions(run.path)) for label in labels)
    rows = []
    shown = set(_classes_shown(answers)[0])
    for number, label in enumerate(run.classes):
        sure = np.array([answer.confidence for answer in answers[label]])
        cells = [
            f'<a href="#class-{number}">{escape(label)}</a>' if label in shown else escape(label),
            f"{labelled[label]:,}",
            escape(confidence_in_words(float(sure.mean()))) if len(sure) else "–",
            f"{np.mean(sure < 0.5):.0%}" if len(sure) else "–",
        ]
        if rates:
            cells.append(percent(rates[label]) if label in rates else "–")
        rows.append(cells)
    return f'<section id="classes"><h2>Classes</h2>{table(heads, rows)}</section>'


def _plots(answers: Mapping[str, Sequence[Answer]], evaluation: Mapping[str, Any] | None) -> str:
    every = [answer.confidence for found in answers.values() for answer in found]
    counts = np.histogram(every, bins=10, range=(0, 1))[0].tolist()
    told = f"How many of the {len(every)} answers have which confidence, from 0 to 100% in tenths: {counts}"
    plots = [f"<div><h3>Confidence of the answers</h3>{histogram(counts, title=told, x_label='confidence')}</div>"]
    if evaluation:
        plots = [_rate_plot(evaluation["detection_rate"]), _calibration_plot(evaluation["confidence"]), *plots]
        intro = (
            "A box is right when it overlaps a true box of its class by more than one half (intersection over union)."
        )
    else:
        intro = "How good the boxes are is not known: <code>bagwise evaluate RUN --truth FOLDER</code> compares them "
        intro += "with boxes that people drew, and this page then shows the figures."
    charts = f'<div class="charts">{"".join(plots)}</div>'
    return f'<section id="plots"><h2>How far to trust it</h2><p>{intro}</p>{charts}</section>'


def _rate_plot(rates: Mapping[str, Any]) -> str:
    counts = rates["counts"]
    lines = [
        Line(name, [(count, value) for count, value in zip(counts, values, strict=True) if value is not None])
        for name, values in rates["methods"].items()
    ]
    deepest = max(len(line.points) for line in lines)
    chart = line_chart(
        lines,
        title="Detection rate against number of boxes; the figures are in the table below",
        x_label="boxes per image",
        y_label="images with a right box",
        ticks=[count for count in (1, 2, 5, 10, 50, 100, 400) if count <= max(counts[deepest - 1], 2)],
        logarithmic=True,
    )
    rows = [
        [str(count), *("–" if values[i] is None else f"{100 * values[i]:.1f}" for values in rates["methods"].values())]
        for i, count in enumerate(counts[:deepest])
    ]
    figures = table(["boxes", *(escape(name) + ", %" for name in rates["methods"])], rows)
    return f"<div><h3>Images with a right box, by number of boxes</h3>{chart}{figures}</div>"


def _calibration_plot(confidence: Mapping[str, Any]) -> str:
    curve = confidence["calibration"]
    bins = [
        (mean, right, count)
        for mean, right, count in zip(curve["confidence"], curve["correct"], curve["count"], strict=True)
        if count
    ]
    chart = line_chart(
        [Line("measured", [(100 * mean, right) for mean, right, _ in bins])],
        title="Share of right answers against confidence; the figures are in the table below",
        x_label="confidence (%)",
        y_label="share of right answers",
        ticks=[0, 20, 40, 60, 80, 100],
        diagonal=True,
    )
    rows = [[f"{100 * mean:.0f}", f"{100 * right:.0f}", f"{count:,}"] for mean, right, count in bins]
    said = f"Calibration error {100 * curve['error']:.1f} points, Brier score {curve['brier']:.3f}"
    if confidence["average_precision"] is not None:
        said += (
            f"; average precision of the confidence {confidence['average_precision']:.3f} "
            f"(random order: {confidence['share_right']:.3f})"
        )
    figures = table(["confidence, %", "right, %", "answers"], rows)
    return f'<div><h3>Calibration of the confidence</h3>{chart}<p class="faint">{said}.</p>{figures}</div>'


def _galleries(
    run: RunFolder, answers: Mapping[str, Sequence[Answer]], truth: Truth | None, classes: Mapping[str, str]
) -> list[str]:
    shown, count = _classes_shown(answers)
    note = ""
    if len(shown) < len(run.classes):
        note = f"<p>The {len(shown)} classes with the most images, of {len(run.classes)}.</p>"
    masked = any(answer.mask for found in answers.values() for answer in found)
    names = ["found", *(["mask"] if masked else []), *(["true"] if truth is not None else [])]
    key = " &nbsp; ".join(_swatch(name) for name in names)
    links = "".join(f'<li><a href="#class-{run.classes.index(name)}">{escape(name)}</a></li>' for name in shown)
    sections = [
        f'<section id="galleries"><h2>Galleries</h2><p>{key}. Answers by the model\'s confidence: the highest, the '
        "lowest, and between them those nearest to one half.</p>"
        f"{note}<nav aria-label='Classes'><ul>{links}</ul></nav></section>"
    ]
    for label in track(shown, description="pictures of classes"):
        rows = []
        for title, chosen in rows_of_gallery(answers[label], count).items():
            if chosen:
                figures = "".join(_figure(run, answer, truth, classes) for answer in chosen)
                rows.append(f'<h3>{title}</h3><div class="gallery">{figures}</div>')
        body = "".join(rows) or "<p>Nothing was found for this class.</p>"
        sections.append(f'<section id="class-{run.classes.index(label)}"><h2>{escape(label)}</h2>{body}</section>')
    return sections


def _classes_shown(answers: Mapping[str, Sequence[Answer]]) -> tuple[list[str], int]:
    """The classes that get a gallery, and the pictures per row: what the budget allows."""
    count = per_row(len(answers))
    if count:
        return list(answers), count
    return sorted(answers, key=lambda label: -len(answers[label]))[: BUDGET // 3], 1


def _swatch(name: str) -> str:
    return f'<svg class="swatch {name}" viewBox="0 0 24 14"><rect x="2" y="2" width="20" height="10"/></svg> {name}'


def _figure(run: RunFolder, answer: Answer, truth: Truth | None, classes: Mapping[str, str]) -> str:
    true = boxes_of((truth or {}).get(answer.file, ()), classes.get(answer.label, answer.label))
    boxes = [*(("true", box) for box in true), ("found", answer.box)]
    verdict = {True: "right", False: "wrong", None: ""}[answer.right]
    sure = confidence_in_words(answer.confidence)
    caption = f"<b>{escape(sure)}</b>"
    if verdict:
        caption += f' <span class="verdict-{verdict}">{"✓" if answer.right else "✗"} {verdict}</span>'
    x1, y1, x2, y2 = answer.box
    alt = (
        f"{answer.file}: {answer.label} found at {x1:.0f}, {y1:.0f} to {x2:.0f}, {y2:.0f} "
        f"with confidence {sure}{', ' + verdict if verdict else ''}"
    )
    source = thumbnail(run, answer.file)
    return picture(
        source,
        (answer.width, answer.height),
        boxes,
        alt=alt,
        caption=f"{caption} {escape(answer.file)}",
        state=verdict,
        mask=answer.mask,
    )


def _problems(problems: Sequence[Mapping[str, str]]) -> str:
    if not problems:
        return ""
    rows = [[escape(problem["file"]), escape(problem["reason"])] for problem in problems[:PROBLEMS_SHOWN]]
    more = len(problems) - len(rows)
    rest = f"<p>and {more:,} more, in manifest.json</p>" if more > 0 else ""
    listed = table(["file", "what was wrong"], rows, text=True)
    return (
        f'<section id="problems"><h2>{counted(len(problems), "problem")} with the images</h2>{listed}{rest}</section>'
    )


def _small_print(run: RunFolder) -> str:
    """Timings, settings and hashes: enough to repeat the run."""
    parts = []
    for key, title in (("timings", "Seconds"), ("settings", "Settings"), ("hashes", "Hashes (SHA-256)")):
        values = {**({"source": run.manifest["source"].get("kind", "")} if key == "settings" else {})}
        values |= run.manifest[key]
        if values:
            rows = [[escape(name), f"<code>{escape(_plain(value))}</code>"] for name, value in _flat(values)]
            parts.append(f"<h3>{title}</h3>{table([], rows, text=True)}")
    return f'<section id="settings"><h2>How it was made</h2>{"".join(parts)}</section>' if parts else ""


def _moment(created: str) -> str:
    """``2026-11-16 15:03 UTC`` for the manifest's ``2026-11-16T15:03:08+00:00``."""
    return f"{datetime.fromisoformat(created).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Entries of nested mappings, named by their path."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _plain(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) and abs(value) >= 1 else str(value)
