"""What a million images cost, from what can be measured on one machine.

    python benchmarks/scaling_plan.py -o benchmarks/results/scaling_plan.json

Measures three things. What the parts of the work on an image cost. How the cluster's own overhead grows with
workers: tasks that only wait, as long as a shard would take to be read from slow storage, on 1 to 4 workers. And a
store index of 100 000 images: time, disk and memory to write it, open it and look up. Then does the arithmetic.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

BOXES, COMPONENTS = 400, 256
PHOTOGRAPHS = 24  # of the demo, brought to 500 x 375


def cpu_seconds() -> dict:
    """CPU-seconds of each part of the work on an image, on one thread: medians."""
    import cv2

    from bagwise.datasets import load_demo_photos
    from bagwise.discovery.features.reduction import Reduction
    from bagwise.discovery.proposals.boxes import edge_boxes
    from bagwise.discovery.proposals.edges import edge_detector
    from bagwise.discovery.run.settings import Settings
    from bagwise.discovery.sources.images import read_image

    cv2.setNumThreads(1)
    detector, features, spent = edge_detector(), Settings().make_features(), []
    files = sorted(load_demo_photos().root.glob("*/*.webp"))[: PHOTOGRAPHS + 1]
    for file in files:
        image = cv2.resize(read_image(file), (500, 375), interpolation=cv2.INTER_AREA)
        marks = [time.process_time()]
        edges = detector(image)
        marks.append(time.process_time())
        boxes, _ = edge_boxes(image, lambda _, edges=edges: edges, max_boxes=BOXES)
        marks.append(time.process_time())
        prepared = features.prepare(image, boxes)
        marks.append(time.process_time())
        if features.reduction is None:
            rows = features.averages(prepared, (500, 375), boxes, np.arange(len(boxes)))
            features.reduction = Reduction.fit(rows, COMPONENTS)
            continue  # compiled and fitted, not counted
        features.finish(prepared, (500, 375), boxes)
        marks.append(time.process_time())
        spent.append(np.diff(marks))
    return dict(zip(("edges", "boxes", "network", "pooling"), np.median(spent, axis=0).round(4).tolist()))


def wait(item):
    """A task that waits, as one does that reads from slow storage."""
    time.sleep(item[1])
    return item[0]


def overhead(workers: int, tasks: int, seconds: float) -> dict:
    """Wall time of tasks that only wait, against the time they must take."""
    from bagwise._utils.cluster import open_cluster

    with open_cluster(workers=workers, say=lambda text: None) as cluster:
        list(cluster.map(wait, [(i, 0.0) for i in range(2 * workers)]))
        started = time.perf_counter()
        assert len(list(cluster.map(wait, [(i, seconds) for i in range(tasks)]))) == tasks
        spent = time.perf_counter() - started
    ideal = tasks * seconds / workers
    return {"workers": workers, "tasks": tasks, "task seconds": seconds, "seconds": spent, "efficiency": ideal / spent}


def index(n_images: int, folder: Path) -> dict:
    """A store with the index of many images, its arrays left out; runs in a process of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bagwise.discovery.features.store import IMAGES_PER_SHARD, INDEX, FeatureStore
    from bagwise.discovery.learning.models import examples
    from bagwise.discovery.sources.imageset import ImageSet

    FeatureStore(folder, {})
    started = time.perf_counter()
    files = [f"{i % 20:02d}/image-{i:08d}.jpg" for i in range(n_images)]
    for shard, first in enumerate(range(0, n_images, IMAGES_PER_SHARD)):
        part = files[first : first + IMAGES_PER_SHARD]
        stops = np.arange(1, len(part) + 1) * BOXES
        columns = [part, [500] * len(part), [375] * len(part), stops - BOXES, stops]
        (folder / f"shard-{shard:05d}").mkdir()
        table = pa.table(dict(zip(INDEX.names, columns)), schema=INDEX)
        pq.write_table(table, folder / f"shard-{shard:05d}" / "index.parquet", compression="zstd")
    written = time.perf_counter() - started
    before = resident()
    started = time.perf_counter()
    store = FeatureStore(folder)
    opened = time.perf_counter() - started
    memory = resident() - before
    images = ImageSet(folder, files, [(file[:2],) for file in files])
    started = time.perf_counter()
    shown, absent = examples(images, store, "07", seed=0)
    return {
        "images": len(store), "shards": len(list(folder.glob("shard-*"))),
        "write seconds": written, "open seconds": opened, "open bytes of memory": memory,
        "index bytes on disk": sum(path.stat().st_size for path in folder.glob("*/index.parquet")),
        "examples of one class": [len(shown), len(absent)], "seconds to choose them": time.perf_counter() - started,
    }  # fmt: skip


def resident() -> int:
    if Path("/proc/self/statm").exists():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def plan(measured: dict, n_images: int, workers: int) -> dict:
    """Hours, disk and memory for a collection."""
    found = measured["index"]
    per_image = BOXES * (COMPONENTS + 4 + 16 + 4)  # int8 features, scale, corners, objectness
    return {
        "images": n_images,
        "workers": workers,
        "core hours": n_images * sum(measured["cpu seconds per image"].values()) / 3600,
        "hours": n_images * sum(measured["cpu seconds per image"].values()) / 3600 / workers,
        "store terabytes": n_images * per_image / 1e12,
        "shards": -(-n_images // 64),
        "index gigabytes of memory": n_images * found["open bytes of memory"] / found["images"] / 1e9,
        "seconds to open the index": n_images * found["open seconds"] / found["images"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/scaling_plan.json"))
    parser.add_argument("--images", type=int, default=100_000, help="size of the synthetic index")
    parser.add_argument("--only-index", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_index:
        print(json.dumps(index(arguments.images, arguments.only_index)))
        return
    report: dict = {"cpu seconds per image": cpu_seconds()}
    with tempfile.TemporaryDirectory() as folder:
        child = [sys.executable, __file__, "--images", str(arguments.images), "--only-index", str(Path(folder) / "s")]
        report["index"] = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
    report["waiting tasks"] = [overhead(workers, 24 * workers, 0.5) for workers in (1, 2, 4)]
    report["overhead of one task"] = overhead(1, 1000, 0.0)["seconds"] / 1000
    report["plan"] = [plan(report, 10**6, 32), plan(report, 10**8, 1024)]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
