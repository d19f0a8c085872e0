"""Discovery with a graphics card beside the same machine's cores.

    python -m benchmarks.card VOC_ROOT [--split train] [--images 1250] [--jobs 16] [--devices cuda cpu] [-o FOLDER]

Runs `discover` on the images (or some of them, evenly spread) with each device, in turn and in fresh folders, after a
small run of each in which loops are compiled (with --only-compile nothing else, with --compiled not that). Prints the
seconds of every part, and how many of the first boxes agree (IoU above .9); with -o the runs and card.json stay, for
`bagwise evaluate`.
"""

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import numpy as np

from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.pipeline import discover
from bagwise.discovery.run.settings import Settings, default_jobs
from bagwise.discovery.sources.reading import ImageSet, read_source
from bagwise.metrics.corloc import iou

WARM_UP = 32  # images


def measured(images: ImageSet, folder: Path, device: str, jobs: int) -> tuple[RunFolder, dict[str, float]]:
    """A run, and the seconds of its parts."""
    started = time.perf_counter()
    run = discover(images, folder, settings=Settings(device=device), jobs=jobs, say=print)
    return run, run.manifest["timings"] | {"together": round(time.perf_counter() - started, 1)}


def spread(images: ImageSet, count: int) -> ImageSet:
    """Some of the images, evenly spread."""
    return images.take(np.linspace(0, len(images) - 1, count).astype(int))


def first_boxes(run: RunFolder) -> dict[tuple[int, str], np.ndarray]:
    """The answer for every image and label."""
    columns = [run.boxes[name].to_pylist() for name in ("image_id", "label", "rank")]
    rows = enumerate(zip(*columns))
    corners = run.corners()
    return {(image, label): corners[row] for row, (image, label, rank) in rows if rank == 0}


def agreement(one: RunFolder, two: RunFolder) -> float:
    """Share of the answers that are the same in both runs."""
    a, b = first_boxes(one), first_boxes(two)
    assert a.keys() == b.keys()
    return float(np.mean([iou(a[key][None], b[key][None])[0, 0] > 0.9 for key in a]))


def main() -> None:
    """Read the options, run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--images", type=int, help="how many of the images")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--devices", nargs="+", default=["cuda", "cpu"], choices=["cuda", "cpu"])
    parser.add_argument("--compiled", action="store_true", help="no small run first")
    parser.add_argument("--only-compile", action="store_true", help="the small run only")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    images = read_source(options.root, None, options.split)
    if options.images:
        images = spread(images, options.images)
    with tempfile.TemporaryDirectory() as scratch:
        runs, seconds = {}, {}
        for device in options.devices:
            if not options.compiled:
                print(f"{device}: a small run first", flush=True)
                measured(spread(images, WARM_UP), Path(scratch) / f"few-{device}", device, options.jobs)
            if options.only_compile:
                continue
            folder = (options.output or Path(scratch)) / device
            runs[device], seconds[device] = measured(images, folder, device, options.jobs)
            print(device, json.dumps(seconds[device]), flush=True)
        if options.only_compile:
            return
        found = {
            "images": len(images),
            "jobs": options.jobs,
            "machine": platform.processor() or platform.machine(),
            "seconds": seconds,
        }
        if len(runs) == 2:
            found["same first boxes"] = agreement(*runs.values())
            found["times as fast"] = round(seconds["cpu"]["together"] / seconds["cuda"]["together"], 2)
        print(json.dumps(found, indent=1), flush=True)
        if options.output:
            (options.output / "card.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
