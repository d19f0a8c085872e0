"""Runs to review, a server in its own process, and the hands that work on the page."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from bagwise.discovery.run.folder import RunFolder
from bagwise.review.server import ReviewServer

Image = pytest.importorskip("PIL.Image", reason="the review page needs bagwise[vision]")


def paint(path: Path, width: int, height: int, *, seed: int = 0, orientation: int | None = None, **save: Any) -> None:
    """A picture with a bright rectangle over its middle half, as stored (before any EXIF turn)."""
    random = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), random.integers(40, 120, 3), dtype=np.uint8)
    pixels[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4] = random.integers(150, 255, 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    if orientation is not None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        save["exif"] = exif
    Image.fromarray(pixels).save(path, **save)


def write_run(
    folder: Path, sizes: list[tuple[int, int]], *, labels: list[tuple[str, ...]] | None = None, candidates: int = 4
) -> RunFolder:
    """A run over images of these (upright) sizes, doubtful ones at the end, its images not yet painted."""
    labels = labels or [("cat",) if i % 2 else ("dog",) for i in range(len(sizes))]
    files = [f"{names[0]}/picture {i:04d}.jpg" for i, names in enumerate(labels)]
    rows: dict[str, list] = {
        name: []
        for name in ("image_id", "label", "rank", "kind", "x1", "y1", "x2", "y2", "score", "confidence", "objectness")
    }
    for image, ((width, height), names) in enumerate(zip(sizes, labels)):
        sure = 1 - (image + 0.5) / len(sizes)
        for label in names:
            for rank in range(candidates):
                shift = 0.08 * rank
                values = (image + 1, label, rank, "alternative" if rank else "object")
                values += (width * (0.1 + shift), height * (0.1 + shift), width * (0.6 + shift), height * (0.6 + shift))
                values += (1.0 - rank, sure / (rank + 1), 0.5)
                for name, value in zip(rows, values):
                    rows[name].append(value)
    images = {
        "image_id": list(range(1, len(sizes) + 1)),
        "file": files,
        "width": [width for width, _ in sizes],
        "height": [height for _, height in sizes],
        "labels": [list(names) for names in labels],
    }
    source = folder.with_name(folder.name + "-images")
    source.mkdir(parents=True, exist_ok=True)
    manifest = {"classes": sorted({name for names in labels for name in names}), "source": {"root": str(source)}}
    return RunFolder.create(folder, manifest, images, rows)


def paint_all(run: RunFolder) -> None:
    for image in run.images.to_pylist():
        paint(run.image_path(image["file"]), image["width"], image["height"], seed=image["image_id"])


class Client:
    """Raw requests to a server at ``url``, and a look at its log."""

    run: RunFolder
    url: str

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def request(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, known: bool = True
    ) -> tuple[int, dict[str, str], bytes]:
        """One raw request; ``headers`` replace the ones a good page would send."""
        sent = {"Host": f"127.0.0.1:{self.port}"}
        if known:
            sent["Cookie"] = f"bagwise_review_{self.port}={self.token}"
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent |= {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        sent |= headers or {}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None) -> Any:
        status, _, data = self.request(method, path, body)
        assert status == 200, data
        return json.loads(data)

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run.decisions_path.read_text().splitlines()]


class ServerInThread(Client):
    """The review server in this process: quick to start."""

    def __init__(self, run: RunFolder):
        self.run = run
        self._server = ReviewServer(run, port=0)
        self.url = self._server.url
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()

    def stop(self) -> None:
        self._server.stop()
        self._thread.join()


class ServerInProcess(Client):
    """`bagwise review` as a person starts it, which can be killed and started again on the same port."""

    def __init__(self, run: RunFolder):
        self.run = run
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        code = "from bagwise.cli import app; app()"
        command = [sys.executable, "-c", code, "review", str(self.run.path), "--port", str(self._port), "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        greeting = re.match(r"Review page: (http://127\.0\.0\.1:\d+/\?token=\S+)", self.process.stdout.readline())
        assert greeting, "the server did not start"
        self.url = greeting[1]

    def kill(self) -> None:
        """End it the hard way, as a crash would."""
        self.process.kill()
        self.process.wait()


def open_page(context: Any, server: Client) -> Any:
    """Open the review page and wait until the first image is on screen."""
    page = context.new_page()
    page.goto(server.url)
    wait_ready(page)
    return page


def wait_ready(page: Any) -> None:
    page.wait_for_selector("#stage[aria-busy=false][data-item]")
    page.wait_for_selector("#candidates button, #message:not([hidden])")


def shown_item(page: Any) -> int:
    return int(page.get_attribute("#stage", "data-item"))


def press(page: Any, *keys: str) -> None:
    """Press keys as a person does, who waits for the image."""
    for key in keys:
        page.keyboard.press(key)
        wait_ready(page)


def wait_saved(page: Any, server: Client, lines: int) -> list[dict[str, Any]]:
    """Wait until the log has so many lines; the page sends them in the background."""
    for _ in range(200):
        if len(server.log()) >= lines:
            break
        page.wait_for_timeout(25)
    assert len(server.log()) == lines, [(line["image_id"], line["action"], line["boxes"]) for line in server.log()]
    return server.log()


def place_of(page: Any, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    """Where on the screen a pixel of the image is."""
    canvas = page.locator("#canvas").bounding_box()
    return canvas["x"] + canvas["width"] * x / size[0], canvas["y"] + canvas["height"] * y / size[1]


def drag(page: Any, size: tuple[int, int], start: tuple[float, float], stop: tuple[float, float]) -> None:
    """Drag the mouse from one pixel of the image to another."""
    page.mouse.move(*place_of(page, *start, size))
    page.mouse.down()
    page.mouse.move(*place_of(page, (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2, size))
    page.mouse.move(*place_of(page, *stop, size))
    page.mouse.up()


def linked_run(folder: Path, count: int, **options: Any) -> RunFolder:
    """A run of many images that are all the same file."""
    run = write_run(folder, [(160, 120)] * count, **options)
    first, *others = (run.image_path(file) for file in run.images["file"].to_pylist())
    paint(first, 160, 120)
    for path in others:
        path.parent.mkdir(exist_ok=True)
        os.link(first, path)
    return run
