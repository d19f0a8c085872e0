"""What a run found, in a few lines for a person."""

from collections import Counter

import numpy as np
import pyarrow.compute as pc

from bagwise._utils.words import counted, visible
from bagwise.discovery.check.sizes import class_sizes
from bagwise.discovery.run.folder import RunFolder

PROBLEMS_SHOWN = 10
CLASSES_SHOWN = 5


def class_rows(run: RunFolder, min_confidence: float = 0.0) -> list[list[str]]:
    """The heading, and for each class the images with an object, the objects, and the mean confidence in them."""
    rows = [["class", "images", "objects", "confidence"]]
    objects = run.boxes.filter(pc.equal(run.boxes["kind"], "object"))
    labels = np.array(objects["label"].to_pylist(), dtype=object)
    confidence, image = objects["confidence"].to_numpy(), objects["image_id"].to_numpy()
    for label in run.classes:
        chosen = (labels == label) & (confidence >= min_confidence)
        mean = f"{confidence[chosen].mean():.2f}" if chosen.any() else "-"
        rows.append([visible(label), str(len(np.unique(image[chosen]))), str(int(chosen.sum())), mean])
    return rows


def doubts(run: RunFolder) -> list[str]:
    """What `bagwise check` says of the numbers of images, once more; nothing where labels were found, not given."""
    if run.manifest.get("labels_found"):
        return []
    shown = Counter(label for labels in run.images["labels"].to_pylist() for label in labels)
    lines = []
    for _, sentence, classes in class_sizes({label: shown[label] for label in run.classes}, len(run.images)):
        more = f", and {len(classes) - CLASSES_SHOWN} more" if len(classes) > CLASSES_SHOWN else ""
        lines.append(visible(f"{sentence} ({', '.join(classes[:CLASSES_SHOWN])}{more})"))
    return lines


def summary(run: RunFolder, min_confidence: float = 0.0) -> str:
    """A table of the classes, what to doubt of them, then what was left out, then how long it took."""
    rows = class_rows(run, min_confidence)
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in rows
    ]
    lines += doubts(run)
    problems = run.manifest["problems"]
    if problems:
        lines.append(f"left out ({len(problems)}):")
        lines += [visible(f"  {problem['file']}: {problem['reason']}") for problem in problems[:PROBLEMS_SHOWN]]
        if len(problems) > PROBLEMS_SHOWN:
            lines.append(f"  and {len(problems) - PROBLEMS_SHOWN} more, in {run.path / 'manifest.json'}")
    timings = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in run.manifest["timings"].items())
    lines.append(f"{run.path}: {counted(len(run.images), 'image')}; {timings}")
    return "\n".join(lines)
