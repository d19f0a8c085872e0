"""Recall and speed of the box proposals on PASCAL VOC: ours, and OpenCV's search on the same edges.

    python benchmarks/proposals.py VOC_ROOT --split train [--images 200] [-o benchmarks/results/proposals.json]
    python benchmarks/proposals.py VOC_ROOT --split train --run RUN    # of the boxes that a run of discover kept

Without ``--images`` every image of the split is used; with it, that many drawn with a fixed seed.
An object (not marked difficult) is recalled when a box overlaps it by more than one half; an image-class pair is
reachable when at least one object of the class is. Times are CPU-milliseconds of one thread, means over images.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from bagwise._utils.boxes import overlaps
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.proposals.edges import EdgeDetector, edge_detector, edge_normals, thin_edges
from bagwise.discovery.proposals.search import MIN_STRENGTH, POWER, search_boxes
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.images import read_image
from bagwise.discovery.sources.reading import read_source

COUNTS = (50, 100, 200, 400, 1000)
SETTINGS = {"alpha": 0.65, "beta": 0.55, "min_score": 0.004}


def opencv_boxes(thin, normals, *, alpha, beta, min_score, max_boxes):
    """OpenCV's Edge Boxes: it counts pixels from one, keeps state, and answers ((), None) when nothing is found."""
    search = cv2.ximgproc.createEdgeBoxes(
        alpha=alpha, beta=beta, minScore=min_score, maxBoxes=max_boxes, edgeMinMag=MIN_STRENGTH
    )
    found, scores = search.getBoundingBoxes(thin ** np.float32(POWER), normals)
    if len(found) == 0:
        return np.empty((0, 4), np.int32), np.empty(0, np.float32)
    order = np.argsort(-scores.ravel(), kind="stable")
    boxes = found[order] - np.array([1, 1, 0, 0], found.dtype)
    boxes[:, 2:] += boxes[:, :2]
    return boxes, scores.ravel()[order]


SEARCHES = {"ours": search_boxes, "opencv": opencv_boxes}


@cache
def _detector(kind: str) -> EdgeDetector:
    cv2.setNumThreads(1)
    return edge_detector(kind)


def measure(file, truth, root, kind, searches, counts):
    """For one image: best overlap of each object at each count, per search, and the times."""
    image = read_image(Path(root) / file)
    times = {}
    started = time.process_time()
    edges = _detector(kind)(image)
    times["edges"] = time.process_time() - started
    started = time.process_time()
    normals = edge_normals(edges)
    thin = thin_edges(edges, normals)
    times["thinning"] = time.process_time() - started
    objects = np.array([t.box for t in truth], np.float32).reshape(-1, 4)
    best = {}
    for name in searches:
        for count in counts:
            started = time.process_time()
            boxes, _ = SEARCHES[name](thin, normals, max_boxes=count, **SETTINGS)
            times[f"{name} {count}"] = time.process_time() - started
            shared = overlaps(boxes.astype(np.float32), objects) if len(boxes) else np.zeros((1, len(objects)))
            best[name, count] = shared.max(0)
    return [t.label for t in truth], best, times


def kept_boxes(file, truth, store, counts):
    """The same for boxes that a run kept, the best found first."""
    boxes, _ = store.boxes(file)
    objects = np.array([t.box for t in truth], np.float32).reshape(-1, 4)
    shared = overlaps(boxes, objects)
    return [t.label for t in truth], {("run", count): shared[:count].max(0) for count in counts}, {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--split", default="train")
    parser.add_argument("--images", type=int, help="how many to draw; all of them by default")
    parser.add_argument("--run", type=Path, help="folder of a run whose boxes to judge, instead of searching")
    parser.add_argument("--detector", default="network")
    parser.add_argument("--searches", nargs="*", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--counts", nargs="*", type=int, default=list(COUNTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    images = read_source(options.root, split=options.split)
    truth = {f: [t for t in images.truth[f] if not t.difficult] for f in images.files}
    files = [f for f in images.files if truth[f]]
    if options.images:
        drawn = np.random.default_rng(0).choice(len(files), min(options.images, len(files)), replace=False)
        files = [files[i] for i in sorted(drawn)]
    if options.run:
        store = FeatureStore(RunFolder(options.run).store_path)
        options.searches, options.counts = ["run"], [count for count in options.counts if count <= 400]
        results = [kept_boxes(file, truth[file], store, options.counts) for file in files if file in store]
    else:
        work = partial(
            measure, root=images.root, kind=options.detector, searches=options.searches, counts=options.counts
        )
        with ProcessPoolExecutor(options.jobs) as workers:
            results = list(workers.map(work, files, [truth[f] for f in files], chunksize=4))

    rows = []
    for name in options.searches:
        for count in options.counts:
            objects = np.concatenate([best[name, count] for _, best, _ in results]) > 0.5
            pairs = [
                max(value for label, value in zip(labels, best[name, count]) if label == wanted) > 0.5
                for labels, best, _ in results
                for wanted in set(labels)
            ]
            spent = [times[f"{name} {count}"] for *_, times in results if times]
            rows.append(
                {
                    "search": name,
                    "boxes": count,
                    "objects recalled": round(float(objects.mean()), 4),
                    "pairs reachable": round(float(np.mean(pairs)), 4),
                    # The first image of each process pays for compiling: the median does not see it.
                    "CPU-ms": round(1000 * float(np.median(spent)), 1) if spent else None,
                }
            )
    times = [t for *_, t in results if t]
    steps = {s: round(1000 * float(np.median([t[s] for t in times])), 1) for s in ("edges", "thinning") if times}
    print(f"{len(files)} images, {options.detector} edges; CPU-ms before the search: {steps}")
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        aside = options.output.with_name(options.output.name + ".part")
        aside.write_text(
            json.dumps({"images": len(files), "detector": options.detector, "steps": steps, "rows": rows}, indent=1)
        )
        aside.replace(options.output)


if __name__ == "__main__":
    main()
