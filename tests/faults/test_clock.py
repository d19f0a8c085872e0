"""A clock that is set back, or files from the future: nothing is stale, lost or in another order."""

import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

TEN_YEARS = 10 * 365 * 86_400


def into_the_future(folder):
    """As if everything had been written before the clock was set back by ten years."""
    later = time.time() + TEN_YEARS
    for path in folder.rglob("*"):
        os.utime(path, (later, later))


@pytest.fixture
def backwards(monkeypatch):
    """Every look at the clock shows an earlier time than the one before."""
    started, looks = time.time(), []

    def earlier():
        looks.append(None)
        return started - 3600.0 * len(looks)

    from bagwise._utils import progress

    # Of this module alone: other threads of this process keep their clock.
    monkeypatch.setattr(progress, "time", SimpleNamespace(time=earlier, monotonic=time.monotonic))


def test_discovery_resumes_what_the_future_began(tmp_path, monkeypatch):
    for name in ("PIL", "cv2", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.faults.small import make_photographs, results

    from bagwise.discovery.features import store
    from bagwise.discovery.run import pipeline

    monkeypatch.setattr(store, "IMAGES_PER_SHARD", 2)
    settings = make_photographs(tmp_path / "photographs", each=3)
    pipeline.discover(tmp_path / "photographs", tmp_path / "run", settings=settings, jobs=1)
    expected = results(tmp_path / "run")
    for left in ("boxes.parquet", "manifest.json", "models/ball.bagwise"):
        (tmp_path / "run" / left).unlink()
    into_the_future(tmp_path)
    shards = {path: path.stat().st_mtime for path in (tmp_path / "run").glob("store/shard-*/*")}
    pipeline.discover(tmp_path / "photographs", tmp_path / "run", settings=settings, jobs=1)
    assert results(tmp_path / "run") == expected
    assert {path: path.stat().st_mtime for path in shards} == shards, "nothing is made twice"


def test_decisions_keep_their_order(tmp_path, monkeypatch):
    from bagwise.review import log as module
    from bagwise.review.decisions import read_decisions

    times = iter(["2030-01-01T00:00:00.000+00:00", "2020-01-01T00:00:00.000+00:00", "1970-01-01T00:00:00.000+00:00"])
    monkeypatch.setattr(module, "_timestamp", lambda: next(times))
    log = module.DecisionLog(tmp_path / "decisions.jsonl")
    for version, action in enumerate(("accept", "reject", "reopen")):
        boxes = [(1.0, 1.0, 5.0, 6.0)] if action == "accept" else None
        log.decide(("a", "x"), 1, action, boxes=boxes, rejected=[], version=version, client="c", key=action)
    log.close()
    into_the_future(tmp_path)
    assert read_decisions(tmp_path)["a", "x"].version == 3
    again = module.DecisionLog(tmp_path / "decisions.jsonl")
    assert again.state(("a", "x")).status == "open"
    assert again.seq == 3
    again.close()


def test_a_thumbnail_of_the_future_is_not_shown_for_another_image(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    from bagwise.discovery.run.folder import RunFolder
    from bagwise.review.pictures import Pictures

    source = tmp_path / "images"
    source.mkdir()
    images = {"image_id": [1], "file": ["a.png"], "width": [8], "height": [8], "labels": [["x"]]}
    boxes = {name: [] for name in ("image_id", "rank", "x1", "y1", "x2", "y2", "score", "confidence", "objectness")}
    boxes |= {name: np.array([], dtype=str) for name in ("label", "kind")}
    run = RunFolder.create(tmp_path / "run", {"classes": ["x"], "source": {"root": str(source)}}, images, boxes)
    pictures = Pictures(run, tmp_path / "thumbnails")
    pil.new("RGB", (8, 8), (255, 0, 0)).save(source / "a.png")
    red = pictures.thumbnail(1)
    into_the_future(tmp_path / "thumbnails")
    assert pictures.thumbnail(1) == red
    into_the_future(tmp_path)
    pil.new("RGB", (8, 8), (0, 0, 255)).save(source / "a.png")  # now, which is before the thumbnail
    assert pictures.thumbnail(1) != red


def test_progress_does_not_mind(backwards, capsys):
    from bagwise._utils.progress import track

    assert list(track(range(5), description="work")) == list(range(5))


def test_nothing_measures_time_by_the_clock_on_the_wall():
    """Durations come from clocks that cannot be set: `time.time` tells when, never how long."""
    import bagwise

    root = os.path.dirname(bagwise.__file__)
    users = []
    for folder, _, files in os.walk(root):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    users += [name for line in file if "time.time()" in line]
    assert users == ["session.py"], "which tells the page when a refit ended"


def test_no_test_sets_the_clock_of_the_whole_process():
    """An event loop in another thread that sees it may sleep for as long as the machine has been up."""
    setting = re.compile(r"""setattr\(\s*((\w+\.)*time,|["'](\w+\.)*time\.)""")
    assert setting.search('monkeypatch.setattr(progress.time, "monotonic", clock)')
    tests = Path(__file__).parents[1]
    users = [path.name for path in tests.rglob("*.py") if setting.search(path.read_text(encoding="utf-8"))]
    assert users == [Path(__file__).name], "which shows what is meant"
