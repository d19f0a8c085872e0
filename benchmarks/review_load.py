"""The review page under load: many images, many windows, decisions by the thousand, and a kill in the middle.

    python benchmarks/review_load.py [--images 50000] [--tabs 20] [--rate 10000] [--minutes 2] [-o review_load.json]

Every tab opens the page's index, as a browser does, and again every ten seconds. It decides about one image after
another at its share of the rate (decisions a minute), asks for the next image as the page does, looks at a thumbnail
now and then, and asks every two seconds what the others did. Half way the server is ended by `kill -9` and started
again; tabs send again what was not answered. In the end the log must hold every decision once. Times are those of
answers while the server was up, seen by the tabs; memory is what the system counts as resident. Everything stays on
this computer's loopback address.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("cat", "dog")
POLL_EVERY = 2.0
OPEN_EVERY = 10.0
ALONE = 60  # openings by a single window, before the load
THUMBNAIL_EVERY = 20
MADE_GOOD = 1.0  # seconds of waiting


def write_run(folder: Path, images: int) -> Path:
    """A run of so many images with four boxes each; all images are the same few files."""
    from PIL import Image

    from bagwise.discovery.run.folder import RunFolder

    source = folder / "images"
    source.mkdir()
    Image.new("RGB", (160, 120), (90, 120, 60)).save(source / "0.jpg")
    files = [f"{number}.jpg" for number in range(images)]
    for file in files[1:]:
        os.link(source / "0.jpg", source / file)
    labels = [CLASSES[number % 2] for number in range(images)]
    table = {
        "image_id": np.arange(1, images + 1),
        "file": files,
        "width": np.full(images, 160),
        "height": np.full(images, 120),
        "labels": [[label] for label in labels],
    }
    of_box = np.repeat(np.arange(images), 4)
    rank = np.tile(np.arange(4), images)
    boxes = {
        "image_id": of_box + 1,
        "label": [labels[image] for image in of_box],
        "rank": rank,
        "kind": np.where(rank == 0, "object", "alternative"),
        **{name: side + 5.0 * rank for name, side in zip(("x1", "y1", "x2", "y2"), (10, 10, 90, 80))},
        "score": -rank.astype(float),
        "confidence": np.random.default_rng(0).random(len(rank)) / (rank + 1),
        "objectness": np.full(len(rank), 0.5),
    }
    RunFolder.create(folder / "run", {"classes": CLASSES, "source": {"root": str(source)}}, table, boxes)
    return folder / "run"


class Server:
    """`bagwise review` in a process of its own, on a port that it keeps over restarts."""

    def __init__(self, run: Path):
        self._run = run
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.memory: list[float] = []
        self.start()

    def start(self) -> None:
        """Start and wait for the greeting, which holds the token."""
        command = [sys.executable, "-m", "bagwise", "review", str(self._run), "--port", str(self.port), "--no-browser"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        greeting = re.search(r"token=(\S+)", self._process.stdout.readline())
        if not greeting:
            raise SystemExit("the server did not start")
        self.token = greeting[1]

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def look(self) -> None:
        """Note how much memory it holds now."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except FileNotFoundError:
            return
        resident = re.search(r"VmRSS:\s+(\d+)", status)
        if resident:
            self.memory.append(int(resident[1]) / 1024)


@dataclass
class Seen:
    """What all tabs saw."""

    decision: list[float] = field(default_factory=list)
    item: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    index: list[float] = field(default_factory=list)
    picture: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)  # what the tabs wait for each other, not for the server
    sent_again: int = 0
    answered: set[str] = field(default_factory=set)


class Connection:
    """One connection of a tab, opened again when the server was away."""

    def __init__(self, server: Server):
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """One request; OSError when the server is away."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._server.port)
        reader, writer = self._streams
        data = b"" if body is None else json.dumps(body).encode()
        place = f"127.0.0.1:{self._server.port}"
        head = f"{method} {path} HTTP/1.1\r\nHost: {place}\r\n"
        head += "Accept-Encoding: gzip, deflate, br\r\n"
        head += f"Cookie: bagwise_review_{self._server.port}={self._server.token}\r\n"
        if body is not None:
            head += f"Origin: http://{place}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        try:
            writer.write(head.encode() + b"\r\n" + data)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = re.search(r"content-length: (\d+)", answer)
            content = await reader.readexactly(int(length[1])) if length else b""
        except (OSError, asyncio.IncompleteReadError) as error:
            writer.close()
            self._streams = None
            raise OSError("the server went away") from error
        return int(answer.split()[1]), content


async def timed(times: list[float], connection: Connection, *request: Any) -> bytes:
    """Ask until there is an answer; count the time of the attempt that had one."""
    while True:
        started = time.perf_counter()
        try:
            status, content = await connection.ask(*request)
        except OSError:
            await asyncio.sleep(0.25)
            continue
        times.append(time.perf_counter() - started)
        if status != 200:
            raise SystemExit(f"{request[:2]} was answered {status}: {content[:200]!r}")
        return content


async def decide(server: Server, seen: Seen, tab: int, items: range, pace: float, end: float) -> None:
    """A tab that decides about its items in turn, at its pace, until the time is up."""
    connection = Connection(server)
    await asyncio.sleep(tab * 0.05)
    due = time.monotonic()
    for number in range(10**9):
        if time.monotonic() > end:
            return
        # Round after round over the tab's own items: each is decided about, then changed, then changed again.
        item, version = items[number % len(items)], number // len(items)
        key = f"tab{tab}-{number}"
        body = {"version": version, "client": f"tab{tab}", "key": key}
        body |= {"action": "reject"} if number % 3 == 2 else {"action": "accept", "boxes": [[10, 10, 90 + version, 80]]}
        attempts = 0
        while True:
            started = time.perf_counter()
            try:
                status, content = await connection.ask("POST", f"/api/items/{item}/decision", body)
            except OSError:
                attempts += 1
                await asyncio.sleep(0.25)
                continue
            seen.decision.append(time.perf_counter() - started)
            break
        if status != 200:
            raise SystemExit(f"a decision was answered {status}: {content[:200]!r}")
        seen.sent_again += attempts > 0
        seen.answered.add(key)
        await timed(seen.item, connection, "GET", f"/api/items/{items[(number + 1) % len(items)]}")
        if number % THUMBNAIL_EVERY == 0:
            await timed(seen.picture, connection, "GET", f"/images/{item + 1}/thumbnail")
        # People who had to wait do not work faster afterwards than they did before.
        due = max(due, time.monotonic() - MADE_GOOD) + pace
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def open_page(server: Server, seen: Seen, tab: int, end: float) -> None:
    """The same tab opening the page, again and again."""
    connection = Connection(server)
    await asyncio.sleep(tab * 0.05)
    while time.monotonic() < end:
        await timed(seen.index, connection, "GET", "/api/index")
        await asyncio.sleep(OPEN_EVERY * (1 + tab / 40))


async def open_alone(server: Server) -> dict[str, Any]:
    """One window that opens the page again and again while nobody does anything."""
    connection, times = Connection(server), []
    for _ in range(ALONE):
        content = await timed(times, connection, "GET", "/api/index")
    return {**milliseconds(times), "bytes": len(content)}


async def poll(server: Server, seen: Seen, tab: int, end: float) -> None:
    """The same tab asking what the others did."""
    connection, seq = Connection(server), 0
    await asyncio.sleep(1 + tab * POLL_EVERY / 20)
    while time.monotonic() < end:
        seq = json.loads(await timed(seen.changes, connection, "GET", f"/api/changes?since={seq}"))["seq"]
        await asyncio.sleep(POLL_EVERY)


async def load(server: Server, images: int, tabs: int, rate: float, seconds: float) -> tuple[Seen, float]:
    """All tabs at once, and the kill; what they saw, and how long the server was away."""
    seen, away = Seen(), 0.0
    end = time.monotonic() + seconds
    share = images // tabs
    tasks = [
        asyncio.create_task(decide(server, seen, tab, range(tab * share, (tab + 1) * share), 60 * tabs / rate, end))
        for tab in range(tabs)
    ]
    tasks += [asyncio.create_task(other(server, seen, tab, end)) for tab in range(tabs) for other in (open_page, poll)]

    async def watch() -> None:
        while True:
            server.look()
            await asyncio.sleep(0.5)

    async def wait_a_little() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.01)
            seen.own.append(time.perf_counter() - started - 0.01)

    watching = [asyncio.create_task(watch()), asyncio.create_task(wait_a_little())]
    await asyncio.sleep(seconds / 2)
    started = time.perf_counter()
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    away = time.perf_counter() - started
    await asyncio.gather(*tasks)
    for task in watching:
        task.cancel()
    return seen, away


def check_log(path: Path, answered: set[str]) -> dict[str, Any]:
    """Whether the log holds each decision that was acknowledged, and none twice."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    keys = [line["key"] for line in lines]
    versions: dict[str, int] = {}
    gaps = 0
    for line in lines:
        gaps += line["version"] != versions.get(line["file"], 0) + 1
        versions[line["file"]] = line["version"]
    return {
        "lines": len(lines),
        "acknowledged and lost": len(answered - set(keys)),
        "written twice": len(keys) - len(set(keys)),
        "out of order": gaps + sum(line["seq"] != number for number, line in enumerate(lines, start=1)),
    }


def milliseconds(times: list[float]) -> dict[str, float]:
    """How long answers took."""
    values = np.array(times) * 1000
    shares = {
        name: round(float(np.percentile(values, q)), 1) for name, q in (("median", 50), ("p99", 99), ("max", 100))
    }
    return {"count": len(times), **shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=10_000, help="decisions a minute, of all tabs together")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("-o", "--output", type=Path, default=Path("review_load.json"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run = write_run(Path(name), chosen.images)
        server = Server(run)
        seconds = 60 * chosen.minutes
        alone = asyncio.run(open_alone(server))
        seen, away = asyncio.run(load(server, chosen.images, chosen.tabs, chosen.rate, seconds))
        server.kill()
        memory = server.memory
        result = {
            "images": chosen.images,
            "tabs": chosen.tabs,
            "minutes": chosen.minutes,
            "decisions a minute": round(len(seen.decision) / (seconds - away) * 60),
            "milliseconds": {
                "decision": milliseconds(seen.decision),
                "next image": milliseconds(seen.item),
                "changes": milliseconds(seen.changes),
                "opening the page": milliseconds(seen.index),
                "opening the page, alone": alone,
                "thumbnail": milliseconds(seen.picture),
                "of these the script itself": milliseconds(seen.own),
            },
            "killed": {"away seconds": round(away, 1), "decisions sent again": seen.sent_again},
            "log": check_log(run / "decisions.jsonl", seen.answered),
            "memory MB": {
                "first": round(memory[2], 1), "most": round(max(memory), 1), "last": round(memory[-1], 1)
            },
            "cores": os.cpu_count(),
        }  # fmt: skip
    print(json.dumps(result, indent=1))
    chosen.output.write_text(json.dumps(result, indent=1) + "\n")
    if any(result["log"][name] for name in ("acknowledged and lost", "written twice", "out of order")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
