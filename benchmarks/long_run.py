"""Many images through discovery, killed again and again: flat memory, nothing lost, the same bytes in the end.

    python benchmarks/long_run.py [--images 100000] [--kill-every 45] [--jobs 1] [-o long_run.json]

Paints very small images of two kinds of object, runs discovery over them once without a disturbance, and beside that
once with `kill -9` every so many seconds and a new start. Both runs have to end with the same bytes in every table,
model and shard, and every image once in the store. Memory is what the system counts as resident, looked at twice a
second while features are made. With these images and settings discovery takes five milliseconds of a core for an
image; half of them are Python's own, so that more than two or three threads (`--jobs`) bring little.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("ball", "gate")
COMPARED = ("images.parquet", "boxes.parquet", "boxes.json", "models/*.bagwise", "store/*/*", "store/*.npz")
LONGER = 1.25  # each start has this much more time than the one before: on any machine one gets to the end


def paint(folder: Path, number: int) -> str:
    """One image: a disc or a rectangle on noise, another one for every number; its name."""
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(number)
    kind = KINDS[number % 2]
    image = Image.fromarray(rng.integers(90, 160, (36, 48, 3), dtype=np.uint8))
    x, y = rng.integers(2, 20, 2).tolist()
    pen = ImageDraw.Draw(image)
    shape, colour = (pen.ellipse, (220, 30, 30)) if kind == "ball" else (pen.rectangle, (30, 60, 200))
    shape((x, y, x + 18, y + 13), fill=colour)
    target = folder / kind / f"{number // 2 // 1000:03d}" / f"{number // 2:06d}.jpg"
    target.parent.mkdir(parents=True, exist_ok=True)
    image.save(target, quality=85)
    return target.relative_to(folder).as_posix()


def write_network(path: Path) -> None:
    """Eight random filters over squares of 32 pixels: what is tested here is everything but the network."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(0).normal(0, 0.05, (8, 3, 32, 32)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "weight"], ["map"], strides=[32, 32], kernel_shape=[32, 32]),
        helper.make_node("Relu", ["map"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "height", "width"])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 8, "rows", "columns"])],
        [numpy_helper.from_array(weight, "weight")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def work(source: Path, network: Path, output: Path, jobs: int) -> None:
    """In a process of its own: discovery with the quickest settings there are."""
    from bagwise.discovery.learning.models import Recipe
    from bagwise.discovery.run.pipeline import discover
    from bagwise.discovery.run.settings import Settings

    settings = Settings(
        edges="gradient", figure=False, max_boxes=4, short_sides=(64,), components=4, backbone=str(network),
        recipe=Recipe(steps=2000),
    )  # fmt: skip
    discover(source, output, settings=settings, jobs=jobs)


class Watched:
    """A discovery run in another process, whose memory is looked at."""

    def __init__(self, source: Path, network: Path, output: Path, jobs: int):
        self._store = output / "store"
        command = [sys.executable, __file__, "--work", str(source), str(network), str(output), str(jobs)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.seen: list[tuple[int, float]] = []  # shards, MB

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code, or None when the time was up and the process was killed."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            code = self._process.poll()
            if code is not None:
                return code
            if end is not None and time.monotonic() > end:
                self._process.send_signal(signal.SIGKILL)
                self._process.wait()
                return None
            self._look()
            time.sleep(0.5)

    def _look(self) -> None:
        try:
            with open(f"/proc/{self._process.pid}/status") as status:
                resident = next((int(line.split()[1]) for line in status if line.startswith("VmRSS")), 0)
        except (FileNotFoundError, ProcessLookupError):
            return
        shards = sum(1 for _ in self._store.glob("shard-*"))
        self.seen.append((shards, resident / 1024))


def digests(output: Path) -> dict[str, str]:
    """SHA-256 of everything that a run found or made on the way."""
    files = sorted(path for pattern in COMPARED for path in output.glob(pattern) if path.is_file())
    return {path.relative_to(output).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def index_of(store: Path) -> tuple[list[str], bool]:
    """The images of a store, and whether the index that it keeps says of each what its shards say.

    The file of the index holds times, so its bytes differ from run to run.
    """
    from bagwise.discovery.features.store import TOGETHER, FeatureStore

    kept = FeatureStore(store)
    entries = [kept.entry(file) for file in kept.files]
    (store / TOGETHER).unlink(missing_ok=True)
    anew = FeatureStore(store)
    return list(kept.files), entries == [anew.entry(file) for file in anew.files]


def memory(seen: list[tuple[int, float]]) -> dict[str, Any]:
    """Resident megabytes over the course of making features, and how they grow."""
    begun, ended = (limit(shards for shards, _ in seen) for limit in (min, max))
    steady = [((shards - begun) / (ended - begun), mb) for shards, mb in seen if shards < ended]
    x, y = (np.array(values, float) for values in zip(*steady))
    grown = float(np.polyfit(x[x > 0.1], y[x > 0.1], 1)[0]) / (ended - begun)  # after the libraries are loaded
    first, final = (float(np.median(y[(x > low) & (x <= low + 0.2)])) for low in (0.1, 0.8))
    return {
        "first fifth MB": round(first, 1),
        "last fifth MB": round(final, 1),
        "MB per 1000 images": round(grown / 64 * 1000, 3),
        "peak MB": round(max(mb for _, mb in seen), 1),
    }


def undisturbed(source: Path, network: Path, output: Path, jobs: int) -> tuple[Watched, float]:
    """The run that nobody ends, and its seconds."""
    started = time.monotonic()
    run = Watched(source, network, output, jobs)
    if run.wait() != 0:
        raise SystemExit("the undisturbed run failed")
    return run, time.monotonic() - started


def killed_and_again(
    source: Path, network: Path, output: Path, jobs: int, seconds: float
) -> tuple[int, Watched, float]:
    """How often the run was killed, its last start, and the seconds of all starts."""
    started, kills = time.monotonic(), 0
    while (code := (run := Watched(source, network, output, jobs)).wait(seconds)) is None:
        kills += 1
        seconds *= LONGER
    if code != 0:
        raise SystemExit("a run that was started again failed")
    return kills, run, time.monotonic() - started


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        source, network, output = map(Path, sys.argv[2:5])
        work(source, network, output, jobs=int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--kill-every", type=float, default=45.0, help="seconds; more after each kill")
    parser.add_argument("--jobs", type=int, default=1, help="threads of each of the two runs")
    parser.add_argument("-o", "--output", type=Path, default=Path("long_run.json"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, network = folder / "images", folder / "small.onnx"
        with ProcessPoolExecutor() as painters:
            painted = sorted(painters.map(partial(paint, source), range(chosen.images), chunksize=500))
        write_network(network)
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(undisturbed, source, network, folder / "whole", chosen.jobs)
            kills, last, killed_seconds = killed_and_again(
                source, network, folder / "killed", chosen.jobs, chosen.kill_every
            )
            whole, seconds = running.result()
        expected, found = digests(folder / "whole"), digests(folder / "killed")
        left = [path.name for path in (folder / "killed").rglob(".writing-*")]
        held, kept_index_is_right = index_of(folder / "killed" / "store")
        result = {
            "images": chosen.images,
            "images in the store": len(held),
            "index agrees with the shards": kept_index_is_right,
            "kills": kills,
            "kill every seconds": chosen.kill_every,
            "threads of each run": chosen.jobs,
            "undisturbed seconds": round(seconds, 1),
            "killed and started again seconds": round(killed_seconds, 1),
            "files compared": len(expected),
            "files that differ": sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n)),
            "left aside": left,
            "memory": memory(whole.seen),
            "memory of the last start": memory(last.seen) if len({s for s, _ in last.seen}) > 20 else None,
            "cores": os.cpu_count(),
        }
    print(json.dumps(result, indent=1))
    chosen.output.write_text(json.dumps(result, indent=1) + "\n")
    if result["files that differ"] or left or not kept_index_is_right or sorted(held) != painted:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
