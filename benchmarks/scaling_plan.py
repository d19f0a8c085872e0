"""What a million images cost: every part of the work on one image, and the index of a million of them.

    python benchmarks/scaling_plan.py -o benchmarks/results/scaling_plan.json

Measures three things. What the parts of the work on an image cost, and what its features take on disk, with default
settings. How the cluster's own overhead grows with workers: tasks that only wait, as long as a shard would take to be
read from slow storage, on 1 to 4 workers. And a run of a million images without their arrays: time and memory of
fresh processes that put the index of its 15 625 shards together, and that open the run and choose a class's examples.
Then does the arithmetic.
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

PHOTOGRAPHS = 24  # of the demo, as JPEG files of 500 x 375
SIZE = (500, 375)
CLASSES = 20
BOXES, CELLS, PICTURE = 400, (75, 100), (96, 128)  # of an image in the synthetic index
TIMES = 5  # fresh processes that open the index


def one_image() -> dict:
    """CPU-seconds of each part of the work on an image, on one thread, and bytes of what is kept of it: medians."""
    import cv2
    from PIL import Image
    from threadpoolctl import threadpool_limits

    from bagwise.datasets import load_demo_photos
    from bagwise.discovery.features.reduction import Reduction
    from bagwise.discovery.features.store import FeatureStore, Maps
    from bagwise.discovery.run.settings import Settings
    from bagwise.discovery.sources.images import read_image

    cv2.setNumThreads(1)
    settings = Settings()
    look_at, features, spent = settings.make_proposer(), settings.make_features(), []
    files = sorted(load_demo_photos().root.glob("*/*.webp"))[: PHOTOGRAPHS + 1]
    parts = ("decoding", "edges, figure and boxes", "network", "averages, reduction and maps", "writing")
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        store = FeatureStore(Path(folder) / "store", {})
        for number, file in enumerate(files):
            jpeg = Path(folder) / f"{file.stem}.jpg"
            Image.fromarray(cv2.resize(read_image(file), SIZE, interpolation=cv2.INTER_AREA)).save(jpeg, quality=90)
            marks = [time.process_time()]
            image = read_image(jpeg)
            marks.append(time.process_time())
            look = look_at(image)
            marks.append(time.process_time())
            prepared = features.prepare(image, look.boxes)
            marks.append(time.process_time())
            if number == 0:  # compiled and fitted, not counted
                rows = features.averages(prepared, SIZE, look.boxes, np.arange(len(look.boxes)))
                features.reduction = Reduction.fit(rows, settings.components)
                features.finish(prepared, SIZE, look.boxes)
                continue
            values, cells = features.finish(prepared, SIZE, look.boxes)
            marks.append(time.process_time())
            store.write(jpeg.name, SIZE, look.boxes, look.objectness, values, Maps(cells, look.edges, look.figure))
            store.flush()
            marks.append(time.process_time())
            spent.append(np.diff(marks))
        kept = [sum(path.stat().st_size for path in shard.iterdir()) for shard in store.path.glob("shard-*")]
    seconds = dict(zip(parts, np.median(spent, axis=0).round(4).tolist()))
    return {"cpu seconds per image": seconds, "bytes per image": int(np.mean(kept))}


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


def make_index(n_images: int, folder: Path) -> dict:
    """A run of many images and its store, without arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bagwise.discovery.features.store import IMAGES_PER_SHARD, INDEX, FeatureStore
    from bagwise.discovery.run.folder import BOXES as ANSWERS
    from bagwise.discovery.run.folder import RunFolder

    store = FeatureStore(folder / "store", {})
    per_class = -(-n_images // CLASSES)
    files = [f"{i // per_class:02d}/image-{i:08d}.jpg" for i in range(n_images)]
    sizes = (BOXES, CELLS[0] * CELLS[1], PICTURE[0] * PICTURE[1])
    for shard, first in enumerate(range(0, n_images, IMAGES_PER_SHARD)):
        part = files[first : first + IMAGES_PER_SHARD]
        boxes, cells, pixels = (np.arange(len(part)) * size for size in sizes)
        same = [[number] * len(part) for number in (*SIZE, *CELLS, *PICTURE)]
        columns = [part, *same[:2], boxes, boxes + BOXES, *same[2:4], cells, *same[4:], pixels]
        (store.path / f"shard-{shard:05d}").mkdir()
        table = pa.table(dict(zip(INDEX.names, columns)), schema=INDEX)
        pq.write_table(table, store.path / f"shard-{shard:05d}" / "index.parquet", compression="zstd")
    labels = pa.array([file[:2] for file in files]).dictionary_encode()
    images = {
        "image_id": np.arange(1, n_images + 1),
        "file": files,
        "width": np.full(n_images, SIZE[0]),
        "height": np.full(n_images, SIZE[1]),
        "labels": pa.ListArray.from_arrays(pa.array(np.arange(n_images + 1), pa.int32()), labels.cast(pa.string())),
    }
    manifest = {"classes": sorted(labels.dictionary.to_pylist()), "source": {"root": "."}}
    RunFolder.create(folder, manifest, images, ANSWERS.empty_table())
    return {
        "images": n_images,
        "shards": len(list(store.path.glob("shard-*"))),
        "bytes of the shards' indexes": sum(p.stat().st_size for p in store.path.glob("*/index.parquet")),
    }


def gather(folder: Path) -> dict:
    """Open the store shard by shard, and keep the indexes together; in a process of its own."""
    from bagwise.discovery.features.store import TOGETHER, FeatureStore

    wall, cpu = time.perf_counter(), time.process_time()
    FeatureStore(folder / "store").consolidate()
    return {
        "seconds": time.perf_counter() - wall,
        "CPU-seconds": time.process_time() - cpu,
        "peak MB of the process": peak(),
        "bytes of the file": (folder / "store" / TOGETHER).stat().st_size,
    }


def choose(folder: Path) -> dict:
    """Open the run and its store, and choose the examples of a class; in a process of its own."""
    from bagwise.discovery.features.store import FeatureStore
    from bagwise.discovery.learning.models import examples
    from bagwise.discovery.run.folder import RunFolder
    from bagwise.discovery.run.models import images_of

    before = peak()
    wall, cpu = [time.perf_counter()], [time.process_time()]

    def mark() -> None:
        wall.append(time.perf_counter())
        cpu.append(time.process_time())

    store = FeatureStore(folder / "store")
    mark()
    images = images_of(RunFolder(folder))
    mark()
    shown, absent = examples(images, store, images.classes[7], seed=0)
    mark()
    assert (len(store), len(shown), len(absent)) == (len(images), 600, 600)
    parts = ("open the store", "read the images and labels", "choose the examples")
    return {
        **{f"{name}, CPU-seconds": float(each) for name, each in zip(parts, np.diff(cpu))},
        "CPU-seconds": cpu[-1] - cpu[0],
        "seconds": wall[-1] - wall[0],
        "peak MB of the process": peak(),
        "of them Python and its packages, MB": before,
    }


def peak() -> float:
    """Most memory that this process has held, in MB, pages of mapped files included."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage's figure begins with that of the process which started this one
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def index(n_images: int, folder: Path) -> dict:
    """The figures of a store's index."""

    def child(step: str) -> dict:
        command = [sys.executable, __file__, "--images", str(n_images), "--step", step, "--folder", str(folder)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    made, gathered = child("make"), child("gather")
    runs = [child("choose") for _ in range(TIMES)]
    opened = {name: float(np.median([run[name] for run in runs])) for name in runs[0]}
    return {**made, "put together": gathered, "open and choose, medians": opened}


def plan(measured: dict, n_images: int, workers: int) -> dict:
    """Hours, disk and memory for a collection."""
    found = measured["index"]
    opened, per_image = found["open and choose, medians"], sum(measured["cpu seconds per image"].values())
    more = opened["peak MB of the process"] - opened["of them Python and its packages, MB"]
    return {
        "images": n_images,
        "workers": workers,
        "core hours": n_images * per_image / 3600,
        "hours": n_images * per_image / 3600 / workers,
        "store terabytes": n_images * measured["bytes per image"] / 1e12,
        "shards": -(-n_images // 64),
        "index gigabytes of memory": n_images * more / found["images"] / 1e3,
        "CPU-seconds to open the index": n_images * opened["open the store, CPU-seconds"] / found["images"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/scaling_plan.json"))
    parser.add_argument("--images", type=int, default=1_000_000, help="size of the synthetic index")
    parser.add_argument("--only-index", action="store_true", help="keep the other figures as they are in the output")
    parser.add_argument("--step", choices=("make", "gather", "choose"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        steps = {"make": lambda folder: make_index(arguments.images, folder), "gather": gather, "choose": choose}
        print(json.dumps(steps[arguments.step](arguments.folder)))
        return
    report: dict = json.loads(arguments.output.read_text()) if arguments.only_index else one_image()
    with tempfile.TemporaryDirectory() as folder:
        report["index"] = index(arguments.images, Path(folder) / "run")
    if not arguments.only_index:
        report["waiting tasks"] = [overhead(workers, 24 * workers, 0.5) for workers in (1, 2, 4)]
        report["overhead of one task"] = overhead(1, 1000, 0.0)["seconds"] / 1000
    report["plan"] = [plan(report, 10**6, 32), plan(report, 10**8, 1024)]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
