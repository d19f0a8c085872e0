"""The learning figure: what the answer was after 0, 100, 500, 1000 and 2000 steps."""

from collections.abc import Mapping, Sequence

import numpy as np

from bagwise.discovery.run.folder import RunFolder, corners
from bagwise.metrics.corloc import boxes_of, iou
from bagwise.metrics.truth import TruthBox
from bagwise.report.charts import Line, line_chart
from bagwise.report.pictures import Answer, picture, thumbnail
from bagwise.report.text import escape

EXAMPLES = 4


def learning_section(
    run: RunFolder,
    answers: Mapping[str, Sequence[Answer]],
    truth: Mapping[str, Sequence[TruthBox]] | None,
    classes: Mapping[str, str],
) -> str:
    """HTML of the figure, or nothing when the run kept no snapshots."""
    if run.snapshots is None or not len(run.snapshots):
        return ""
    steps, boxes = _snapshots(run)
    curve = _curve(steps, boxes, truth, classes, _end(answers)) if truth else ""
    rows = "".join(_row(run, answer, steps, boxes, truth, classes) for answer in _most_telling(answers, steps, boxes))
    return (
        '<section id="learning"><h2>How the answers came about</h2>'
        "<p>The best box of an image as the model learns, from the start, when it knows nothing of the class, "
        "to the end, when it has found what the class's images share. The models of the run learn on from there, with "
        f"more steps, so that their answers may still change.</p>{curve}{rows}</section>"
    )


def _end(answers: Mapping[str, Sequence[Answer]]) -> float:
    """CorLoc of the run's own answers, over the pairs that can be judged; NaN where there is none."""
    judged = ([answer.right for answer in found if answer.right is not None] for found in answers.values())
    rates = [np.mean(right) for right in judged if right]
    return float(np.mean(rates)) if rates else float("nan")


def _snapshots(run: RunFolder) -> tuple[list[int], dict[tuple[str, str], dict[int, np.ndarray]]]:
    table = run.snapshots
    assert table is not None
    files = run.images["file"].to_pylist()
    places: dict[tuple[str, str], dict[int, np.ndarray]] = {}
    columns = (table[name].to_pylist() for name in ("steps", "image_id", "label"))
    for step, image, label, box in zip(*columns, corners(table), strict=True):
        places.setdefault((files[image - 1], label), {})[step] = box
    return sorted(set(table["steps"].to_pylist())), places


def _most_telling(
    answers: Mapping[str, Sequence[Answer]],
    steps: Sequence[int],
    places: Mapping[tuple[str, str], Mapping[int, np.ndarray]],
) -> list[Answer]:
    """Of the surest half of each class, the image whose answer moved furthest; right ones before others."""
    verdicts = {True: 0, None: 1, False: 2}
    chosen: list[tuple[int, float, Answer]] = []
    for found in answers.values():
        followed = [answer for answer in found if steps[0] in places.get((answer.file, answer.label), {})]
        telling = [
            (verdicts[answer.right], float(iou(answer.box, places[answer.file, answer.label][steps[0]])[0, 0]), answer)
            for answer in followed[: max(1, len(followed) // 2)]
        ]
        chosen += sorted(telling, key=lambda item: item[:2])[:1]
    return [answer for *_, answer in sorted(chosen, key=lambda item: item[:2])[:EXAMPLES]]


def _row(
    run: RunFolder,
    answer: Answer,
    steps: Sequence[int],
    places: Mapping[tuple[str, str], Mapping[int, np.ndarray]],
    truth: Mapping[str, Sequence[TruthBox]] | None,
    classes: Mapping[str, str],
) -> str:
    source = thumbnail(run, answer.file)
    true = boxes_of((truth or {}).get(answer.file, ()), classes.get(answer.label, answer.label))
    cells = []
    for step in steps:
        box = places[answer.file, answer.label].get(step)
        if box is None:
            continue
        alt = f"{answer.file}: the answer for {answer.label} after {step} steps"
        drawn = [*(("true", item) for item in true), ("found", box)]
        cells.append(picture(source, (answer.width, answer.height), drawn, alt=alt, caption=f"after {step} steps"))
    title = f"<h3>{escape(answer.label)}: {escape(answer.file)}</h3>"
    return f'{title}<div class="steps" style="--columns:{len(cells)}">{"".join(cells)}</div>'


def _curve(
    steps: Sequence[int],
    places: Mapping[tuple[str, str], Mapping[int, np.ndarray]],
    truth: Mapping[str, Sequence[TruthBox]],
    classes: Mapping[str, str],
    end: float,
) -> str:
    """CorLoc of each snapshot, over the pairs that can be judged: the unweighted mean over classes."""
    hits: dict[str, dict[int, list[bool]]] = {}
    for (file, label), boxes in places.items():
        objects = boxes_of(truth.get(file, ()), classes.get(label, label))
        if len(objects):
            for step, box in boxes.items():
                right = bool((iou(box, objects) > 0.5).any())
                hits.setdefault(label, {}).setdefault(step, []).append(right)
    points = []
    for step in steps:
        rates = [np.mean(found[step]) for found in hits.values() if step in found]
        if rates:
            points.append((float(step), float(np.mean(rates))))
    if len(points) < 2:
        return ""
    said = ", ".join(f"{100 * rate:.1f}% after {step:g} steps" for step, rate in points)
    said += f", {100 * end:.1f}% at the end of the run"
    chart = line_chart(
        [Line("CorLoc", points)],
        title=f"CorLoc in the course of learning: {said}",
        x_label="steps",
        y_label="CorLoc",
        ticks=_spaced([step for step, _ in points]),
    )
    return f'<div class="charts"><div>{chart}<p class="faint">CorLoc: {said}.</p></div></div>'


def _spaced(steps: Sequence[float]) -> list[float]:
    """Marks of the axis that leave room for their figures: the ends, and what lies a tenth of the way apart."""
    marks = [steps[0]]
    for step in steps[1:-1]:
        if min(step - marks[-1], steps[-1] - step) > 0.1 * (steps[-1] - steps[0]):
            marks.append(step)
    return [*marks, steps[-1]]
