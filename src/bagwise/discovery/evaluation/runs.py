"""Judge a run folder by boxes that people drew: what ``bagwise evaluate`` writes and the report shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from bagwise.discovery.evaluation.protocols import Protocol, protocol
from bagwise.discovery.evaluation.rankings import (
    EDGE_BOXES,
    Ranked,
    answers_first,
    kept_boxes,
    method_of,
    proposed_boxes,
    scored_boxes,
)
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics.corloc import CorLoc, boxes_of, corloc_any_class, corloc_per_class, iou, percent
from bagwise.metrics.detection import COUNTS, average_precision, calibration, detected, detection_rate, first_hits
from bagwise.metrics.truth import TruthBox


def evaluate_run(
    run: RunFolder,
    truth: ImageSet,
    *,
    name: str = "labels",
    lists: str | Path | None = None,
    against: Sequence[RunFolder] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """Judge a run, and others on the same images beside it.

    Parameters
    ----------
    run : RunFolder
    truth : ImageSet
        With boxes; of the run's images or of more.
    name, lists
        The protocol, see :mod:`bagwise.discovery.evaluation.protocols`.
    against : sequence of RunFolder
        Runs with other methods, for the curve of detection rates.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict
        Ready for JSON; see :mod:`bagwise.discovery.evaluation.kept`.
    """
    known = truth_of(run, truth, strangers=name != "labels")
    chosen = protocol(name, known, labels=labelled_files(run), lists=lists)
    answers, confidence = first_answers(run)
    per_class = corloc_per_class(answers, known, chosen.groups, seed=seed)
    tight = corloc_per_class(answers, known, chosen.groups, overlap=0.7, seed=seed)
    single = _one_answer_per_image(answers, confidence)
    asked = sorted({file for _, files in chosen.groups.values() for file in files})
    any_class = {
        "any-class": corloc_any_class(single, known, files=asked),
        "any-class, easy objects": _easy(single, known, asked, seed),
    }
    return {
        "format": 1,
        "truth": {"root": str(truth.root), "kind": truth.kind},
        "protocol": {
            "name": chosen.name,
            "groups": len(chosen.groups),
            "classes": {name: label for name, (label, _) in chosen.groups.items()},
            "images": chosen.images,
            "pairs": chosen.pairs,
            "without_truth": sum(file not in known for file, _ in labelled_files(run)),
            "not_in_run": len(set(asked) - {file for file, _ in labelled_files(run)}),
        },
        "corloc": {
            "per-class": _corloc_dict(per_class),
            "per-class, IoU > .7": _corloc_dict(tight),
            **{key: _corloc_dict(value) for key, value in any_class.items() if value is not None},
        },
        "detection_rate": _detection_rates([run, *against], known, chosen),
        "detection": _detection(run, known, chosen),
        "confidence": _confidence(answers, confidence, known, chosen),
    }


def truth_for(run: RunFolder, path: Path, split: str | None = None) -> ImageSet:
    """Boxes that people drew, of a run's images.

    Parameters
    ----------
    run : RunFolder
    path : Path
        A VOC or COCO folder, or a COCO file. The images that a file names are looked for beside it and among those
        of the run, wherever more of them are.
    split : str, optional
        Which part of a folder.
    """
    if path.suffix.lower() != ".json" or not path.is_file():
        return read_source(path, split=split)
    found, errors = [], []
    for root in (path.parent, run.source_root):
        try:
            found.append(read_source(root, labels=path))
        except ValueError as error:
            errors.append(error)
    if not found:
        raise errors[-1]
    return max(found, key=len)


def truth_of(run: RunFolder, truth: ImageSet, *, strangers: bool = False) -> dict[str, list[TruthBox]]:
    """The true objects per file of the run; with ``strangers``, of the images that are not in the run, too.

    Files are the same when their paths are, or else when they end in a name that is unique on both sides:
    a run over a folder per class can be judged by the VOC folder its images came from.
    """
    if truth.truth is None:
        raise ValueError(f"{truth.root} has no boxes to compare with; pass a VOC or COCO folder")
    files = run.images["file"].to_pylist()
    known = {file: truth.truth[file] for file in files if file in truth.truth}
    left = {file: objects for file, objects in truth.truth.items() if file not in known}
    here, there = _unique_names(files), _unique_names(truth.truth)
    for name, file in here.items():
        if file not in known and name in there:
            known[file] = left.pop(there[name])
    if not known:
        raise ValueError(
            f"no image of the run {run.path} is in {truth.root}: the names have nothing in common "
            f"({files[0] if files else 'the run has no image'!r} is not there)"
        )
    return known | left if strangers else known


def _unique_names(files: Iterable[str]) -> dict[str, str]:
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(PurePosixPath(file).name, []).append(file)
    return {name: found[0] for name, found in by_name.items() if len(found) == 1}


def labelled_files(run: RunFolder) -> list[tuple[str, list[str]]]:
    """The run's images with their labels."""
    return list(zip(run.images["file"].to_pylist(), run.images["labels"].to_pylist(), strict=True))


def first_answers(run: RunFolder) -> tuple[Ranked, dict[tuple[str, str], float]]:
    """The answer per (file, label), and the confidence in it."""
    files = run.images["file"].to_pylist()
    boxes = run.corners()
    answers, confidence = {}, {}
    columns = (run.boxes[name].to_pylist() for name in ("image_id", "label", "rank", "confidence"))
    for row, (image, label, rank, sure) in enumerate(zip(*columns, strict=True)):
        if rank == 0:
            answers[files[image - 1], label] = boxes[row]
            confidence[files[image - 1], label] = sure
    return answers, confidence


def correct_answers(
    answers: Ranked, known: Mapping[str, Sequence[TruthBox]], groups: Mapping[str, tuple[str, Sequence[str]]]
) -> dict[tuple[str, str], bool]:
    """For every (file, group) that was asked and answered: whether the answer is right (IoU > .5, same class)."""
    return {
        (file, name): bool((iou(answers[file, name], boxes_of(known.get(file, ()), label)) > 0.5).any())
        for name, (label, files) in groups.items()
        for file in files
        if (file, name) in answers
    }


def summary(evaluation: Mapping[str, Any]) -> str:
    """The evaluation as a page of plain text."""
    chosen = evaluation["protocol"]
    lines = [
        f"protocol {chosen['name']}: {chosen['groups']} groups, {chosen['images']} images, {chosen['pairs']} pairs",
    ]
    if chosen["without_truth"]:
        lines.append(f"{chosen['without_truth']} images of the run have no truth and are not judged")
    if chosen["not_in_run"]:
        lines.append(f"{chosen['not_in_run']} images of the protocol are not in the run and count as misses")
    for name, value in evaluation["corloc"].items():
        mean = value["mean"]
        left = f", {value['unanswered']} unanswered" if value["unanswered"] else ""
        lines.append(f"CorLoc, {name}: {percent(mean)}, {mean['hits']} of {mean['of']}{left}")
    groups = evaluation["corloc"]["per-class"]["groups"]
    width = max(map(len, groups))
    lines += [f"  {name:<{width}}  {percent(rate)}, {rate['hits']} of {rate['of']}" for name, rate in groups.items()]
    rates = evaluation["detection_rate"]
    lines.append("detection rate (%) against number of boxes:")
    width = max(map(len, rates["methods"]))
    lines.append(f"  {'boxes':<{width}}  " + " ".join(f"{count:>5}" for count in rates["counts"]))
    for name, values in rates["methods"].items():
        shown = ("    -" if value is None else f"{100 * value:5.1f}" for value in values)
        lines.append(f"  {name:<{width}}  " + " ".join(shown))
    detection = evaluation["detection"]
    lines.append(
        f"average precision over all boxes: {_percent(detection['all_points'])} "
        f"(VOC 2007 style {_percent(detection['eleven_points'])}), {detection['boxes']} boxes, "
        f"{detection['objects']} objects"
    )
    sure = evaluation["confidence"]
    lines.append(
        f"confidence: average precision {_number(sure['average_precision'])} "
        f"(random order {_number(sure['share_right'])}), calibration error {_number(sure['calibration']['error'])}, "
        f"Brier score {_number(sure['calibration']['brier'])}"
    )
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _one_answer_per_image(answers: Ranked, confidence: Mapping[tuple[str, str], float]) -> dict[str, np.ndarray]:
    """Of an image's answers for several classes, the most confident."""
    best: dict[str, tuple[str, str]] = {}
    for pair in sorted(answers):
        if pair[0] not in best or confidence[pair] > confidence[best[pair[0]]]:
            best[pair[0]] = pair
    return {file: answers[pair] for file, pair in best.items()}


def _easy(single: Mapping[str, np.ndarray], known: Any, asked: Sequence[str], seed: int) -> CorLoc | None:
    """The any-class figure without hard objects, where the truth marks some and leaves others."""
    marked = [bool(item.difficult or item.truncated) for file in asked for item in known[file]]
    return corloc_any_class(single, known, hard=False, files=asked) if any(marked) and not all(marked) else None


def _corloc_dict(value: CorLoc) -> dict[str, Any]:
    return {
        "mean": asdict(value.mean),
        "groups": {name: asdict(rate) for name, rate in value.groups.items()},
        "unanswered": value.unanswered,
    }


def _detection(run: RunFolder, known: Mapping[str, Sequence[TruthBox]], chosen: Protocol) -> dict[str, Any]:
    """Average precision of the run's objects over all of its images that have a truth, per class and in the mean."""
    files, here = run.images["file"].to_pylist(), run.corners()
    judged = {file: known[file] for file in files if file in known}
    found: dict[str, list[tuple[str, np.ndarray, float]]] = {label: [] for label in run.classes}
    columns = (run.boxes[name].to_pylist() for name in ("image_id", "label", "kind", "confidence"))
    for row, (image, label, kind, sure) in enumerate(zip(*columns, strict=True)):
        if kind == "object" and files[image - 1] in judged:
            found[label].append((files[image - 1], here[row], sure))
    classes = {
        name: detected(answers, judged, chosen.groups[name][0] if name in chosen.groups else name)
        for name, answers in found.items()
    }
    counted = [value for value in classes.values() if value.objects]
    return {
        "all_points": float(np.mean([value.all_points for value in counted])) if counted else None,
        "eleven_points": float(np.mean([value.eleven_points for value in counted])) if counted else None,
        "boxes": sum(value.boxes for value in classes.values()),
        "objects": sum(value.objects for value in classes.values()),
        "classes": {label: asdict(value) for label, value in classes.items() if value.objects},
    }


def _detection_rates(
    runs: Sequence[RunFolder], known: Mapping[str, Sequence[TruthBox]], chosen: Protocol
) -> dict[str, Any]:
    methods: dict[str, list[float | None]] = {}
    for run in runs:
        scored = answers_first(kept_boxes(run), scored_boxes(run, chosen))
        method = method_of(run)
        name = method if method not in methods else f"{method} ({run.path.name})"
        methods[name] = _curve(scored or kept_boxes(run), known, chosen, all_kept=bool(scored))
    proposals = proposed_boxes(runs[0], chosen)
    if proposals and EDGE_BOXES not in methods:
        methods[EDGE_BOXES] = _curve(proposals, known, chosen, all_kept=True)
    return {"counts": list(COUNTS), "methods": methods}


def _curve(
    ranked: Ranked, known: Mapping[str, Sequence[TruthBox]], chosen: Protocol, *, all_kept: bool = False
) -> list[float | None]:
    """Rates at each count; None beyond the boxes that were kept, unless there never were more."""
    rates = detection_rate(first_hits(ranked, known, chosen.groups))
    deepest = max((len(boxes) for boxes in ranked.values()), default=1)
    return [float(rate) if all_kept or count <= deepest else None for count, rate in zip(COUNTS, rates, strict=True)]


def _confidence(
    answers: Ranked,
    confidence: Mapping[tuple[str, str], float],
    known: Mapping[str, Sequence[TruthBox]],
    chosen: Protocol,
) -> dict[str, Any]:
    judged = correct_answers(answers, known, chosen.groups)
    if not judged:
        raise ValueError(
            f"the run answers none of the {chosen.pairs} image-group pairs of the protocol {chosen.name}; "
            f"its labels must be the protocol's groups ({', '.join(list(chosen.groups)[:3])}, ...)"
        )
    right = np.array([*judged.values()])
    sure = np.array([confidence[pair] for pair in judged])
    curve = calibration(right, sure)
    return {
        "answers": len(right),
        "share_right": float(right.mean()),
        "average_precision": _or_none(average_precision(right, sure)),
        "calibration": {
            "edges": curve.edges.round(6).tolist(),
            "count": curve.count.tolist(),
            "confidence": [_or_none(value) for value in curve.confidence],
            "correct": [_or_none(value) for value in curve.correct],
            "error": curve.error,
            "brier": curve.brier,
        },
    }


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else float(value)
