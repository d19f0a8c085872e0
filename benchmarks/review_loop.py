"""How CorLoc grows with the number of reviewed images: a simulated reviewer, random against doubt-first.

    python benchmarks/review_loop.py RUN --truth VOC_ROOT [--split train] [-o review_loop.json]

The reviewer looks at one image and class after another and uses keys alone: accepts the first of the shown
candidates that overlaps a true box by more than half, or rejects all (with --draw: draws the right box instead).
After every batch the reviewed classes are
fitted again, which changes the answers, and with them the order of doubt, of what is left. The run is not changed.

For each number of reviewed images the table gives CorLoc over all images (per class, unweighted mean) with refits
and without, and over the images still unreviewed, where only what the model learned can help.
"""

import argparse
import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise._utils.boxes import areas, overlaps
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.localize import Answer
from bagwise.discovery.run.folder import RunFolder, corners
from bagwise.discovery.run.settings import default_jobs
from bagwise.discovery.sources.reading import read_source
from bagwise.review.decisions import Box, ItemState, Pair
from bagwise.review.refit import Learner

RIGHT = 0.5  # CorLoc's overlap: more than this
CANDIDATES_LOOKED_AT = 9
STRATEGIES = ("random", "doubt-first")
Answers = dict[Pair, np.ndarray]  # the candidates' boxes, best first
Truth = dict[Pair, np.ndarray]


def is_right(box: np.ndarray, truth: np.ndarray) -> bool:
    return bool(overlaps(box[None].astype(float), truth.astype(float)).max() > RIGHT)


def as_box(row: np.ndarray) -> Box:
    x1, y1, x2, y2 = (float(value) for value in row)
    return x1, y1, x2, y2


def review(candidates: np.ndarray, truth: np.ndarray, draw: bool) -> tuple[ItemState, int]:
    """What the reviewer decides about one image, and the keys (and drawn boxes) it took."""
    shown = candidates[:CANDIDATES_LOOKED_AT]
    for place, box in enumerate(shown):
        if is_right(box, truth):
            passed = [other for other in shown[:place] if overlaps(other[None], box[None])[0, 0] < RIGHT]
            return ItemState("accepted", (as_box(box),), tuple(map(as_box, passed)), 1), place + 1
    seen = tuple(map(as_box, shown))
    if draw:
        largest = truth[areas(truth).argmax()]
        return ItemState("accepted", (as_box(largest),), seen, 1), len(shown) + 2
    return ItemState("rejected", (), seen, 1), len(shown)


def corloc(answers: Answers, decisions: dict[Pair, ItemState], truth: Truth, *, unreviewed_only: bool) -> float:
    """Percent of each class's images that are right, mean over classes; an accepted box is right, a rejected none."""
    hits: dict[str, list[bool]] = {}
    for pair, true in truth.items():
        state = decisions.get(pair)
        if state is None:
            hits.setdefault(pair[1], []).append(is_right(answers[pair][0], true))
        elif not unreviewed_only:
            hits.setdefault(pair[1], []).append(state.status == "accepted")
    return 100 * float(np.mean([np.mean(values) for values in hits.values()])) if hits else float("nan")


def table_answers(run: RunFolder) -> tuple[Answers, dict[Pair, float]]:
    """Candidates and confidence of every pair, from the run's table of boxes."""
    files = run.images["file"].to_pylist()
    rows = sorted(
        zip(
            run.boxes["image_id"].to_pylist(),
            run.boxes["label"].to_pylist(),
            run.boxes["rank"].to_pylist(),
            run.boxes["confidence"].to_pylist(),
            corners(run.boxes),
        ),
        key=lambda row: row[:3],
    )
    boxes: dict[Pair, list[np.ndarray]] = {}
    confidence: dict[Pair, float] = {}
    for image_id, label, _, sure, box in rows:
        pair = (files[image_id - 1], label)
        boxes.setdefault(pair, []).append(box)
        confidence.setdefault(pair, sure)
    return {pair: np.array(members) for pair, members in boxes.items()}, confidence


def take(answers: Answers, confidence: dict[Pair, float], new: Iterable[Answer]) -> None:
    """Put refitted answers in the place of the old."""
    grouped: dict[Pair, list[Answer]] = {}
    for answer in new:
        grouped.setdefault((answer.file, answer.label), []).append(answer)
    for pair, members in grouped.items():
        members.sort(key=lambda answer: answer.rank)
        answers[pair] = np.array([answer.box for answer in members], dtype=np.float32)
        confidence[pair] = members[0].confidence


def simulate(
    run: RunFolder, learner: Learner, truth: Truth, strategy: str, batches: list[int], seed: int, draw: bool
) -> list[dict[str, Any]]:
    """Review batch after batch; one record per number of reviewed images."""
    random = np.random.default_rng(seed)
    answers, confidence = table_answers(run)
    first = dict(answers)
    pairs = [pair for pair in truth if pair in answers]
    if not pairs:
        raise SystemExit("no image of the run has a true box: is the truth that of the same folder and names?")
    lot = dict(zip(pairs, random.random(len(pairs)).tolist()))
    decisions: dict[Pair, ItemState] = {}
    without: dict[Pair, ItemState] = {}
    keys = 0
    records = []
    for target in [0, *batches]:
        left = [pair for pair in pairs if pair not in decisions]
        left.sort(key=lambda pair: confidence[pair] if strategy == "doubt-first" else lot[pair])
        fresh = left[: target - len(decisions)]
        for pair in fresh:
            decisions[pair], pressed = review(answers[pair], truth[pair], draw)
            without[pair] = review(first[pair], truth[pair], draw)[0]
            keys += pressed
        started = time.perf_counter()
        labels = sorted({label for _, label in fresh})
        with ThreadPoolExecutor(default_jobs()) as pool:
            learner.take(list(pool.map(lambda label: learner.fit(label, decisions), labels)))
            for new in pool.map(learner.answers, labels):
                take(answers, confidence, new)
        record = {
            "reviewed": len(decisions),
            "share": round(len(decisions) / len(pairs), 4),
            "keys": keys,
            "accepted": sum(state.status == "accepted" for state in decisions.values()),
            "corloc": round(corloc(answers, decisions, truth, unreviewed_only=False), 2),
            "corloc_without_refit": round(corloc(first, without, truth, unreviewed_only=False), 2),
            "unreviewed": round(corloc(answers, decisions, truth, unreviewed_only=True), 2),
            "unreviewed_without_refit": round(corloc(first, without, truth, unreviewed_only=True), 2),
            "refit_seconds": round(time.perf_counter() - started, 1),
        }
        records.append(record)
        print(f"{strategy}: {record}", flush=True)
    return records


def as_table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Numbers of reviewed images down, strategies across."""
    lines = [
        "| reviewed | strategy | keys | CorLoc, all | without refit | CorLoc, unreviewed | without refit |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in zip(*results.values()):
        for strategy, record in zip(results, row):
            lines.append(
                f"| {record['reviewed']} ({100 * record['share']:.0f}%) | {strategy} | {record['keys']} "
                f"| {record['corloc']:.1f} | {record['corloc_without_refit']:.1f} "
                f"| {record['unreviewed']:.1f} | {record['unreviewed_without_refit']:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder with its feature store")
    parser.add_argument("--truth", type=Path, required=True, help="where the true boxes are")
    parser.add_argument("--split", default=None, help="of a VOC root, such as train")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--classes", nargs="+", default=None, help="only these")
    parser.add_argument("--draw", action="store_true", help="the reviewer draws a box where no candidate is right")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=None, help="write the figures as JSON")
    options = parser.parse_args()
    run = RunFolder(options.run)
    source = read_source(options.truth, split=options.split)
    if source.truth is None:
        raise SystemExit(f"{options.truth} has no true boxes")
    store = FeatureStore(run.store_path)
    truth: Truth = {}
    for file, labels in zip(run.images["file"].to_pylist(), run.images["labels"].to_pylist()):
        for label in labels if options.classes is None else set(labels) & set(options.classes):
            boxes = [true.box for true in source.truth.get(file, []) if true.label == label]
            if boxes and file in store:
                truth[(file, label)] = np.array(boxes, dtype=np.float32)
    batches = [round(share * len(truth)) for share in options.shares]
    results = {
        name: simulate(run, Learner(run), truth, name, batches, options.seed, options.draw)
        for name in options.strategies
    }
    print(as_table(results))
    if options.output is not None:
        write_text(options.output, json.dumps({"images and classes": len(truth), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
