"""Compare the shipped figure map with the teacher's on the images that distil.py held out.

    python measure.py --voc VOC2007 --bsds BSDS500 --teacher MAPS [--weights CANDIDATE.onnx]

Mean absolute error; best F-measure over thresholds, averaged over images (teacher above .5, β² = .3, as is usual for
saliency); and how well the box of the largest component above .4 agrees with the teacher's (intersection over union).
"""

import argparse
import json
from pathlib import Path

import cv2
import numpy as np
from photos import find_images, read_image, read_target

from bagwise.discovery.proposals.edges import WEIGHTS, NetworkEdges
from bagwise.discovery.proposals.figure import components, figure_map

THRESHOLDS = np.linspace(0, 1, 52)[:-1]
BETA2 = 0.3


def f_measures(figure: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """F at every threshold; NaN where the teacher sees nothing."""
    if not truth.any():
        return np.full(len(THRESHOLDS), np.nan)
    predicted, right = (
        np.histogram(values, [*THRESHOLDS, np.inf])[0][::-1].cumsum()[::-1] for values in (figure, figure[truth])
    )
    precision, recall = right / np.maximum(predicted, 1), right / truth.sum()
    return (1 + BETA2) * precision * recall / np.maximum(BETA2 * precision + recall, 1e-12)


def box_overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Intersection over union of two boxes."""
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    inside = np.prod(np.maximum(high - low, 0))
    return float(inside / (np.prod(first[2:] - first[:2]) + np.prod(second[2:] - second[:2]) - inside))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", required=True)
    parser.add_argument("--bsds", required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    options = parser.parse_args()

    network = NetworkEdges(weights=options.weights)
    _, held_out = find_images(options.voc, options.bsds)
    errors, scores, overlaps = [], [], []
    for path in held_out:
        image = read_image(path)
        figure = figure_map(image, network)
        target = cv2.resize(read_target(options.teacher, path), image.shape[1::-1]).astype(np.float32) / 255
        errors.append(np.abs(figure - target).mean())
        scores.append(f_measures(figure, target > 0.5))
        ours, theirs = components(figure).boxes, components(target).boxes
        if len(theirs):
            overlaps.append(box_overlap(ours[0], theirs[0]) if len(ours) else 0.0)
    curve = np.nanmean(scores, 0)
    result = {
        "images": len(held_out),
        "mean absolute error": np.mean(errors),
        "max F": curve.max(),
        "at threshold": THRESHOLDS[curve.argmax()],
        "F at .4": curve[np.abs(THRESHOLDS - 0.4).argmin()],
        "box IoU": np.mean(overlaps),
        "box IoU > .5": np.mean(np.array(overlaps) > 0.5),
        "box IoU > .7": np.mean(np.array(overlaps) > 0.7),
    }
    print(json.dumps({key: round(float(value), 4) for key, value in result.items()}))


if __name__ == "__main__":
    main()
