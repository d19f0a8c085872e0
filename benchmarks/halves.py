"""Classes learned on one half of the images, found in the other, of which nobody said what they show.

    python -m benchmarks.halves VOC_ROOT -o FOLDER [--split train] [--features RUN]

The first, third, fifth, ... image by name are learned from, the others are asked. Prints average precision of the
boxes, one per image and class, and of the images: how well it is told which of them show a class.
--features takes boxes and features, which know nothing of classes, from a run on all the images: most of the time.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.unseen import lend

from bagwise._utils.atomic import write_text
from bagwise.discovery.evaluation.runs import evaluate_run
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.scoring import score_images
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.models import load_models
from bagwise.discovery.run.pipeline import SHOWN_FROM, discover, discover_unlabelled
from bagwise.discovery.sources.reading import ImageSet, read_source
from bagwise.metrics.detection import average_precision

KEEP_FROM = 0.01  # what `bagwise detect --threshold` allows at the least: a threshold would cut the curve short


def halves(images: ImageSet) -> tuple[ImageSet, ImageSet]:
    """Every second image, and the others."""
    rows = np.arange(len(images))
    return images.take(rows[::2]), images.take(rows[1::2])


def without_labels(images: ImageSet) -> ImageSet:
    """The same images as if nobody had looked at them."""
    return ImageSet(images.root, images.files, [()] * len(images), kind="images")


@dataclass(frozen=True)
class Told:
    """How well it is told which images show a class.

    Attributes
    ----------
    precision : float
        Average precision over the images.
    shown, labelled, right : int
        Images that show it, that the threshold labels with it, and those of them that do show it.
    """

    precision: float
    shown: int
    labelled: int
    right: int


def told_from_images(learned: RunFolder, found: RunFolder, asked: ImageSet) -> dict[str, Told]:
    """Per class; images that may show it, only marked difficult, are asked neither way."""
    store = FeatureStore(found.store_path)
    rows = [row for row, file in enumerate(asked.files) if file in store]
    told = {}
    for label, model in load_models(learned).items():
        sure = [row for row in rows if label not in asked.unsure[row]]
        scored = score_images(store, model, [asked.files[row] for row in sure])
        presence = np.array([image.presence for image in scored])
        shows = np.array([label in asked.labels[row] for row in sure])
        named = np.array([model.calibration.shown(value) >= SHOWN_FROM for value in presence])
        if shows.any():
            precision = average_precision(shows, presence)
            told[label] = Told(precision, int(shows.sum()), int(named.sum()), int((named & shows).sum()))
    return told


def main() -> None:
    """Read the options, learn, detect, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--split")
    parser.add_argument("--features", type=Path)
    options = parser.parse_args()
    truth = read_source(options.source, split=options.split)
    known, asked = halves(truth)
    if options.features:
        for name in ("learned", "found"):
            lend(RunFolder(options.features).store_path, options.output / name)
    learned = discover(known, options.output / "learned", say=print)
    found = discover_unlabelled(
        learned.path, without_labels(asked), options.output / "found", threshold=KEEP_FROM, say=print
    )
    detection = evaluate_run(found, truth)["detection"]
    told = told_from_images(learned, found, asked)
    print(f"learned from {len(known)} images, asked about {len(asked)}\n")
    print("| class | objects | boxes (all points) | boxes (VOC 2007 style) | images |\n" + "| --- |" + " ---: |" * 4)
    for label, value in detection["classes"].items():
        points = f"{100 * value['all_points']:.1f} | {100 * value['eleven_points']:.1f}"
        print(f"| {label} | {value['objects']} | {points} | {100 * told[label].precision:.1f} |")
    mean = float(np.mean([each.precision for each in told.values()]))
    points = f"{100 * detection['all_points']:.1f} | {100 * detection['eleven_points']:.1f}"
    print(f"| mean | {detection['objects']} | {points} | {100 * mean:.1f} |\n")
    shown, labelled, right = (
        sum(getattr(each, name) for each in told.values()) for name in ("shown", "labelled", "right")
    )
    print(
        f"of {shown} times that an image shows a class, the threshold of {SHOWN_FROM:.0%} names {right} "
        f"({right / shown:.1%}); {labelled - right} of {labelled} labels are wrong"
    )
    images = {label: asdict(each) for label, each in told.items()}
    write_text(options.output / "halves.json", json.dumps({"boxes": detection, "images": images}, indent=1) + "\n")


if __name__ == "__main__":
    main()
