"""How many images of things that were never learned get a label all the same.

    python benchmarks/unseen.py -o FOLDER [--images FOLDER_PER_CLASS] [--threshold .9]

Each class is held out in turn: the others are learned, and its images, which show none of them, are asked about. Boxes
and features are made once: they know nothing of classes.
By default the embedded demo images. What the same threshold finds where there is something is counted by
benchmarks/halves.py.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import numpy as np

from bagwise._utils.atomic import write_text
from bagwise.datasets import load_demo_photos
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.pipeline import discover, discover_unlabelled
from bagwise.discovery.sources.reading import ImageSet, read_source


def lend(store: Path, run: Path) -> None:
    """Boxes and features for a new run: hard links to those of another."""
    if not (run / "store").exists():
        shutil.copytree(store, run / "store", copy_function=os.link)


def labels_given(learned: RunFolder, asked: ImageSet, folder: Path, threshold: float) -> dict[str, tuple[str, ...]]:
    """What each image was labelled with, by its file; images that nothing was found in have an empty tuple."""
    strangers = ImageSet(asked.root, asked.files, [()] * len(asked), kind="images")
    lend(learned.store_path, folder)
    found = discover_unlabelled(learned.path, strangers, folder, threshold=threshold)
    return {row["file"]: tuple(row["labels"]) for row in found.images.to_pylist()}


def held_out(images: ImageSet, label: str) -> tuple[ImageSet, ImageSet]:
    """The images that do not show a class, and those that show it and nothing else."""
    shows = np.array([label in labels for labels in images.labels])
    alone = np.array([labels == (label,) for labels in images.labels])
    return images.take(np.flatnonzero(~shows)), images.take(np.flatnonzero(alone))


def main() -> None:
    """Read the options, hold out one class after the other, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--threshold", type=float, default=0.9)
    options = parser.parse_args()
    images = read_source(options.images or load_demo_photos().root)
    store = discover(images, options.output / "all").store_path
    given: dict[str, dict[str, tuple[str, ...]]] = {}
    print("| held out | images | labelled | as |\n| --- | ---: | ---: | --- |")
    for label in images.classes:
        known, asked = held_out(images, label)
        lend(store, options.output / label / "learned")
        learned = discover(known, options.output / label / "learned")
        given[label] = labels_given(learned, asked, options.output / label / "found", options.threshold)
        taken = [names for names in given[label].values() if names]
        told = ", ".join(sorted({name for names in taken for name in names}))
        print(f"| {label} | {len(given[label])} | {len(taken)} | {told} |", flush=True)
    asked_about = sum(map(len, given.values()))
    labelled = sum(bool(names) for found in given.values() for names in found.values())
    print(f"| all | {asked_about} | {labelled} ({labelled / asked_about:.1%}) | |")
    write_text(options.output / "unseen.json", json.dumps(given, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
