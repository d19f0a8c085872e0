"""Score boundary maps against human annotators, by the protocol of BSDS500.

    python evaluate.py --data BSDS500 --detector network|gradient|FOREST           the test split
    python evaluate.py --data BSDS500 --detector CANDIDATE.onnx --split held-out    what train.py kept back
    python evaluate.py --data BSDS500 --humans                                      annotators against one another

Maps are thinned to their crests, cut at many thresholds, and matched one pixel to one pixel with each annotator's lines
within .0075 of the diagonal. A predicted pixel is right if any annotator matches it; recall counts over all annotators.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from data import Example, held_out, load_split
from matching import match

from bagwise.discovery.proposals.edges import EdgeDetector, NetworkEdges, edge_detector, edge_normals, thin_edges

TOLERANCE = 0.0075
THRESHOLDS = np.linspace(0.02, 0.98, 33)


def count(predicted: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """Right predictions, predictions, boundary pixels found, boundary pixels: summed over the annotators."""
    radius = TOLERANCE * np.hypot(*predicted.shape)
    right, found = np.zeros_like(predicted), 0
    for lines in boundaries:
        matched = match(predicted, lines, radius)
        right |= matched
        found += matched.sum()
    return np.array([right.sum(), predicted.sum(), found, boundaries.sum()], np.int64)


def count_thresholds(thin: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """`count` at every threshold: int64 array (thresholds, 4)."""
    return np.stack([count(thin >= threshold, boundaries) for threshold in THRESHOLDS])


def precision_recall(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision (1 where nothing is predicted) and recall of counts (..., 4)."""
    right, predicted, found, total = np.moveaxis(counts.astype(float), -1, 0)
    return np.where(predicted > 0, right / np.maximum(predicted, 1), 1.0), found / np.maximum(total, 1)


def f_measure(precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    return 2 * precision * recall / np.maximum(precision + recall, 1e-12)


def best_f(counts: np.ndarray) -> tuple[float, float]:
    """Best F over thresholds, precision and recall interpolated between neighbours, and the threshold it has."""
    precision, recall = precision_recall(counts)
    places = np.linspace(0, len(counts) - 1, 100 * (len(counts) - 1) + 1)
    index = np.arange(len(counts))
    scores = f_measure(np.interp(places, index, precision), np.interp(places, index, recall))
    best = int(scores.argmax())
    return float(scores[best]), float(np.interp(places[best], index, THRESHOLDS))


def summarise(counts: np.ndarray) -> dict[str, float]:
    """ODS (one threshold for all), OIS (the best for each image) and average precision of (n, thresholds, 4)."""
    ods, threshold = best_f(counts.sum(0))
    precision, recall = precision_recall(counts)
    own = f_measure(precision, recall).argmax(1)
    ois = f_measure(*precision_recall(counts[np.arange(len(counts)), own].sum(0)))
    precision, recall = precision_recall(counts.sum(0))
    order = np.argsort(recall, kind="stable")
    grid = np.linspace(0, 1, 101)
    average = np.interp(grid, recall[order], precision[order], left=precision[order][0], right=0.0).mean()
    return {"ODS": ods, "OIS": float(ois), "AP": float(average), "threshold": threshold}


def humans(example: Example) -> np.ndarray:
    """Counts of each annotator taken as a detector against the others, summed."""
    lines = example.boundaries
    return sum(
        (count(lines[i], np.delete(lines, i, 0)) for i in range(len(lines)) if len(lines) > 1), np.zeros(4, np.int64)
    )


def score_map(edges: np.ndarray, example: Example) -> np.ndarray:
    """Counts of one boundary map, before thinning."""
    edges = np.asarray(edges, np.float32)
    return count_thresholds(thin_edges(edges, edge_normals(edges)), example.boundaries)


@cache
def _detector(kind: str) -> EdgeDetector:
    return NetworkEdges(weights=kind) if kind.endswith(".onnx") else edge_detector(kind)


def score_detector(example: Example, kind: str) -> np.ndarray:
    """Counts of a detector, named as for `edge_detector` or by an ONNX file, on one image."""
    return score_map(_detector(kind)(example.image), example)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of BSDS500")
    parser.add_argument("--humans", action="store_true")
    parser.add_argument("--detector", default="network")
    parser.add_argument("--split", default="test", choices=["train", "val", "test", "held-out"])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.split == "held-out":
        _, examples = held_out(load_split(options.data, "train", "val"))
    else:
        examples = load_split(options.data, options.split)
    with ProcessPoolExecutor(options.jobs) as workers:
        if options.humans:
            precision, recall = precision_recall(sum(workers.map(humans, examples)))
            result = {"F": f_measure(precision, recall), "precision": precision, "recall": recall}
        else:
            result = summarise(np.stack([*workers.map(partial(score_detector, kind=options.detector), examples)]))
    print(json.dumps({key: round(float(value), 4) for key, value in result.items()}))


if __name__ == "__main__":
    main()
