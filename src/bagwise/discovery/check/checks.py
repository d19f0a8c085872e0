"""Pre-flight: what is wrong or doubtful about a set of images, said before the long run."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bagwise._utils.boxes import overlaps
from bagwise._utils.progress import track
from bagwise._utils.words import counted
from bagwise.discovery.check.duplicates import fingerprint, near_duplicates
from bagwise.discovery.check.labelnoise import WholePicture, doubtful_labels
from bagwise.discovery.check.sizes import class_sizes
from bagwise.discovery.features.backbones import Backbone, default_backbone
from bagwise.discovery.proposals.boxes import edge_boxes
from bagwise.discovery.proposals.edges import EdgeDetector, edge_detector
from bagwise.discovery.sources.images import ImageError, read_image
from bagwise.discovery.sources.imageset import ImageSet, image_files

SAMPLE = 50  # images with boxes on which the proposals are tried
BATCH = 256  # images in flight


@dataclass(frozen=True)
class Finding:
    """Something to know before the run.

    ``severity`` is "wrong" (it will be left out, or cannot work), "doubtful" (have a look) or "good to know".
    """

    severity: str
    sentence: str
    details: list[str] = field(default_factory=list)


@dataclass
class _Seen:
    """What one reading of all images yields, row by row of those that could be read."""

    rows: list[int] = field(default_factory=list)
    bits: list[np.uint64] = field(default_factory=list)
    small: list[np.ndarray] = field(default_factory=list)
    features: list[np.ndarray] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def check_images(
    images: ImageSet,
    *,
    backbone: Backbone | None = None,
    detector: EdgeDetector | None = None,
    sample: int = SAMPLE,
) -> list[Finding]:
    """Read every image once and say what is wrong or doubtful.

    Parameters
    ----------
    images : ImageSet
    backbone : Backbone, optional
        Whose features judge the labels; by default that of discovery.
    detector : EdgeDetector, optional
        For the proposals, where the set has boxes; by default that of discovery.
    sample : int
        On how many images with boxes the proposals are tried.

    Returns
    -------
    list of Finding
        The worst first.
    """
    seen = _read_all(images, WholePicture(backbone if backbone is not None else default_backbone()))
    findings = [
        *_unusable(images, seen),
        *_unnamed(images),
        *_small_classes(images, seen),
        *_duplicates(images, seen),
        *_labels(images, seen),
        *_proposals(images, seen, detector, sample),
    ]
    order = ("wrong", "doubtful", "good to know")
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _read_all(images: ImageSet, look: WholePicture) -> _Seen:
    def examine(file: str) -> tuple[np.uint64, np.ndarray, np.ndarray] | str:
        try:
            image = read_image(images.root / file)
        except ImageError as error:
            return str(error)
        return *fingerprint(image), look(image)

    seen = _Seen()
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def results() -> Iterator[tuple[np.uint64, np.ndarray, np.ndarray] | str]:
            for start in range(0, len(images), BATCH):
                yield from pool.map(examine, images.files[start : start + BATCH])

        for row, result in enumerate(track(results(), total=len(images), description="reading images")):
            if isinstance(result, str):
                seen.unreadable.append(f"{images.files[row]}: {result}")
                continue
            seen.rows.append(row)
            for values, value in zip((seen.bits, seen.small, seen.features), result, strict=True):
                values.append(value)  # type: ignore[attr-defined]
    return seen


def _unusable(images: ImageSet, seen: _Seen) -> Iterator[Finding]:
    if seen.unreadable:
        yield Finding(
            "wrong", f"{counted(len(seen.unreadable), 'image')} cannot be read and will be left out", seen.unreadable
        )
    if images.problems:
        told = [f"{problem.file}: {problem.reason}" for problem in images.problems]
        yield Finding("wrong", f"{counted(len(told), 'entry', 'entries')} of the source cannot be used", told)


def _unnamed(images: ImageSet) -> Iterator[Finding]:
    """Images beside those that the file of labels names: they play no part, which may be a surprise."""
    if images.kind in ("csv", "jsonl", "coco", "fiftyone"):
        known = {*images.files, *(problem.file for problem in images.problems)}
        others = [file.relative_to(images.root).as_posix() for file in image_files(images.root)]
        others = [file for file in others if file not in known]
        if others:
            sentence = f"{counted(len(others), 'image')} of the folder without an entry in the labels, left alone"
            yield Finding("good to know", sentence, others)


def _small_classes(images: ImageSet, seen: _Seen) -> Iterator[Finding]:
    counts = dict.fromkeys(images.classes, 0)
    for row in seen.rows:
        for label in images.labels[row]:
            counts[label] += 1
    for each in class_sizes(counts, len(seen.rows)):
        yield Finding(*each)


def _duplicates(images: ImageSet, seen: _Seen) -> Iterator[Finding]:
    groups = near_duplicates(np.array(seen.bits, dtype=np.uint64), np.array(seen.small))
    same, differing = [], []
    for group in groups:
        rows = [seen.rows[member] for member in group]
        labels = {images.labels[row] for row in rows}
        files = ", ".join(images.files[row] for row in rows[:4]) + (f" and {len(rows) - 4} more" * (len(rows) > 4))
        if len(labels) > 1:
            differing.append(f"{files}: {' / '.join(sorted(', '.join(names) or 'no label' for names in labels))}")
        else:
            same.append(files)
    if differing:
        yield Finding(
            "doubtful", f"different labels in {counted(len(differing), 'group')} of nearly equal images", differing
        )
    if same:
        sentence = f"{counted(len(same), 'group')} of nearly equal images; they count as separate evidence but are not"
        yield Finding("doubtful", sentence, same)


def _labels(images: ImageSet, seen: _Seen) -> Iterator[Finding]:
    if not seen.rows:
        return
    found = doubtful_labels(np.array(seen.features), [images.labels[row] for row in seen.rows])
    if found:
        told = [
            f"{images.files[seen.rows[item.row]]}: labelled {item.label} ({item.probability:.0%}), "
            f"looks like {item.looks_like} ({item.its_probability:.0%})"
            for item in found
        ]
        yield Finding("doubtful", f"{counted(len(told), 'label')} may be wrong; the likeliest first", told)


def _proposals(images: ImageSet, seen: _Seen, detector: EdgeDetector | None, sample: int) -> Iterator[Finding]:
    """Recall of the proposals, where the set has boxes: no method can find what was not proposed."""
    rows = [row for row in seen.rows if images.truth and images.truth.get(images.files[row])]
    if not rows or sample < 1:
        return
    chosen = np.random.default_rng(0).permutation(rows)[:sample]
    detector = edge_detector() if detector is None else detector
    objects = found_objects = pairs = found_pairs = 0
    missed = []
    for row in track(chosen, description="trying proposals"):
        file = images.files[row]
        boxes, _ = edge_boxes(read_image(images.root / file), detector)
        truth = (images.truth or {})[file]
        fit = overlaps(boxes.astype(np.float64), np.array([item.box for item in truth])) > 0.5
        covered: list[bool] = [bool(column.any()) for column in fit.T]
        objects += len(truth)
        found_objects += sum(covered)
        for label in sorted({item.label for item in truth}):
            hit = any(ok and item.label == label for item, ok in zip(truth, covered, strict=True))
            pairs += 1
            found_pairs += hit
            if not hit:
                missed.append(f"{file}: no proposal fits any {label}")
    share = found_pairs / pairs
    sentence = (
        f"proposals fit {found_objects / objects:.0%} of {objects} objects and at least one object in {share:.0%} of "
        f"{pairs} image-class pairs (IoU > .5, {len(chosen)} images tried): the ceiling of what can be found"
    )
    yield Finding("doubtful" if share < 0.8 else "good to know", sentence, missed)


def as_document(images: ImageSet, findings: list[Finding]) -> dict[str, Any]:
    """The findings with all their details, ready for JSON."""
    return {
        "format": 1,
        "root": str(images.root),
        "kind": images.kind,
        "images": len(images),
        "classes": list(images.classes),
        "negatives": len(images.negatives),
        "findings": [asdict(finding) for finding in findings],
    }


def told(images: ImageSet, findings: list[Finding], details: int = 5) -> str:
    """The findings as text, with some details of each."""
    lines = [f"{images.root} ({images.kind}): {images.told()}"]
    for finding in findings:
        lines.append(f"{finding.severity}: {finding.sentence}")
        lines += [f"    {detail}" for detail in finding.details[:details]]
        if len(finding.details) > details:
            lines.append(f"    and {len(finding.details) - details:,} more")
    if not any(finding.severity != "good to know" for finding in findings):
        lines.append("nothing is wrong or doubtful")
    return "\n".join(lines)
