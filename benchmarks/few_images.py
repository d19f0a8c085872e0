"""How far confidence can be trusted where classes have few images.

    python benchmarks/few_images.py RUN --truth VOC_ROOT [--split train] [--images 4 8 16 40] [--draws 3]

Classes are cut down to some of the images that show nothing else, and learned anew from the boxes and features of the
run. Prints how many of the answers are right, and the Brier score and the calibration error of their confidence, with
a curve of agreement for each class and with the one for all of them that discovery uses.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.confidence import agreement_curve, place_log_odds
from bagwise.discovery.learning.learn import agreed_among, learn_class
from bagwise.discovery.learning.models import ClassModel, Objectness
from bagwise.discovery.learning.scoring import score_images
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.models import images_of
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.reading import ImageSet, read_source
from bagwise.metrics.corloc import boxes_of, iou
from bagwise.metrics.detection import calibration


def cut_down(images: ImageSet, count: int, seed: int) -> ImageSet:
    """So many images of each class that has them."""
    rng = np.random.default_rng(seed)
    chosen: set[int] = set()
    for label in images.classes:
        alone = [row for row, labels in enumerate(images.labels) if tuple(labels) == (label,)]
        if len(alone) >= count:
            chosen |= set(rng.choice(alone, count, replace=False).tolist())
    return images.take(np.array(sorted(chosen)))


def with_own_curve(model: ClassModel) -> ClassModel:
    """The class as if it were the only one of its run."""
    return agreed_among([model])[0]


def answers(store: FeatureStore, images: ImageSet, model: ClassModel, truth: dict) -> Iterator[tuple[float, bool]]:
    """What an answer's scores say of it, and whether it is right."""
    files = [file for file, labels in zip(images.files, images.labels) if model.label in labels]
    for image in score_images(store, model, files):
        chosen = int(image.scores.argmax())
        true = boxes_of(truth[image.file], model.label)
        right = bool((iou(image.boxes[chosen], true) > 0.5).any())
        yield place_log_odds(image.boxes, image.scores, np.array([chosen]))[0], right


def main() -> None:
    """Read the options, cut down, learn, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--truth", type=Path, required=True)
    parser.add_argument("--split")
    parser.add_argument("--images", type=int, nargs="+", default=[4, 8, 16, 40])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    run, truth = RunFolder(options.run), read_source(options.truth, split=options.split).truth
    if truth is None:
        raise SystemExit(f"{options.truth} has no boxes")
    store, every = FeatureStore(run.store_path), images_of(run)
    recipe = Settings.from_dict(run.manifest["settings"]).recipe
    print("| images | draw | right | Brier, own | common | error, own | common |\n" + "| ---: " * 7 + "|")
    for count in options.images:
        for draw in range(options.draws):
            images = cut_down(every, count, draw)
            prior = Objectness.of_store(store, images.files, recipe.prior_weight)
            models = [learn_class(images, store, label, recipe, prior) for label in images.classes]
            curve = agreement_curve(model.agreement for model in models if model.agreement is not None)
            own, common, hits = [], [], []
            for model in models:
                log_odds, right = map(np.array, zip(*answers(store, images, model, truth)))
                own.append(with_own_curve(model).calibration.place(log_odds))
                common.append(model.calibration.agreeing(curve).place(log_odds))
                hits.append(right)
            right = np.concatenate(hits)
            found = [calibration(right, np.concatenate(each)) for each in (own, common)]
            brier = " | ".join(f"{each.brier:.3f}" for each in found)
            error = " | ".join(f"{each.error:.3f}" for each in found)
            print(f"| {count} | {draw} | {right.mean():.3f} | {brier} | {error} |", flush=True)


if __name__ == "__main__":
    main()
