"""What each step of choosing a box adds, with the models and the features of one run.

    python benchmarks/choices.py RUN --truth VOC_ROOT [--split train]

The steps come after learning, so one run is enough: its models score the boxes, and parts of the ranking are added one
after the other. CorLoc per class (protocol "classes"), mean over classes, at IoU .5 and .7.
"""

import argparse
from pathlib import Path

import numpy as np

from bagwise.discovery.evaluation.protocols import whole_classes
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.localize import rivals_of
from bagwise.discovery.learning.masks import fitted_masks
from bagwise.discovery.learning.scoring import ScoredImage, score_images
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.models import images_of, load_models
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics.corloc import boxes_of, iou

OVERLAPS = (0.5, 0.7)


def choices(image: ScoredImage, plain: np.ndarray, trust: float) -> dict[str, np.ndarray]:
    """The chosen box, (4,), step by step; ``plain`` are the scores without evidence and figure."""
    chosen = image.boxes[[image.scores.argmax()]]
    tight = image.shapes[[image.scores.argmax()]]
    fitted, _ = fitted_masks(image, tight, trust)
    return {
        "objectness alone": image.boxes[image.objectness.argmax()],
        "figure and objectness, no class": image.boxes[image.figure.argmax()],
        "the class's model and objectness": image.boxes[plain.argmax()],
        "+ evidence": image.boxes[image.alone.argmax()],
        "+ figure": chosen[0],
        "+ tightened to the figure": tight[0],
        "+ half-way to the mask": fitted[0],
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--truth", type=Path, required=True)
    parser.add_argument("--split")
    options = parser.parse_args()
    run, truth = RunFolder(options.run), read_source(options.truth, split=options.split).truth
    if truth is None:
        raise SystemExit(f"{options.truth} has no boxes")
    store, models, images = FeatureStore(run.store_path), load_models(run), images_of(run)
    rates: dict[str, list[np.ndarray]] = {}
    for label, (_, members) in whole_classes(truth).groups.items():
        model, hits = models[label], {}
        files = [file for file in members if file in store]
        for image in score_images(store, model, files, rivals_of(images, list(models.values()), label)):
            whole = model.ranking.terms(image.maps, image.boxes, image.size, image.evidence, model.trust).whole
            true = boxes_of(truth[image.file], label)
            for step, box in choices(image, image.alone - whole, model.trust).items():
                hits.setdefault(step, []).append([(iou(box, true) > overlap).any() for overlap in OVERLAPS])
        for step, values in hits.items():
            rates.setdefault(step, []).append(np.mean(values, axis=0))
    print("| step | CorLoc | at IoU > .7 |\n| --- | ---: | ---: |")
    for step, values in rates.items():
        print(f"| {step} | " + " | ".join(f"{100 * value:.1f}" for value in np.mean(values, axis=0)) + " |")


if __name__ == "__main__":
    main()
