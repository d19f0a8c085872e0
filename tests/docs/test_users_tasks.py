"""What the pages promise to be a few commands, done with the very commands of the pages."""

import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from tests.docs.pages import ROOT, blocks

pytest.importorskip("cv2", reason="this page needs the extra vision")
pytest.importorskip("onnxruntime", reason="this page needs the extra vision")
pytest.importorskip("starlette", reason="this page needs the extra review")
import numpy as np
from PIL import Image


@pytest.fixture
def photos(tmp_path):
    """Images of two kinds of squares named by a one-hot table, and a folder of images that show neither."""
    rng = np.random.default_rng(0)
    rows = ["id,image,fish,windmill"]
    (tmp_path / "photos" / "none").mkdir(parents=True)
    for number in range(12):
        image = np.full((64, 96, 3), 128, np.uint8) + rng.integers(0, 9, (64, 96, 3), dtype=np.uint8)
        fish, windmill = number % 3 == 0, number % 3 == 1
        x, y = rng.integers(5, 50), rng.integers(5, 25)
        if fish or windmill:
            image[y : y + 30, x : x + 35] = (200, 20, 20) if fish else (20, 20, 200)
            rows.append(f"{number},img_{number:03d}.png,{int(fish)},{int(windmill)}")
        place = tmp_path / "photos" if fish or windmill else tmp_path / "photos" / "none"
        Image.fromarray(image).save(place / f"img_{number:03d}.png")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    return tmp_path


def bagwise(folder, words):
    """Run a command; a page that it serves is asked for once, before Ctrl-C."""
    command = [sys.executable, "-m", "bagwise", *words]
    environment = {**os.environ, "BROWSER": "true"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = ""
        for line in process.stdout:
            told += line
            if line.startswith("Review page: "):
                _visit(line.split()[-1])
                process.send_signal(signal.SIGINT)
    return process.returncode, told


def _visit(url):
    for _ in range(200):
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                assert b"bagwise review" in answer.read()
                return
        except ConnectionError:
            time.sleep(0.1)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")


def test_from_a_one_hot_table_and_negatives_to_outlines_in_five_commands(photos):
    (block,) = [each for each in blocks(ROOT / "docs" / "howto" / "labels.md") if "yolo-seg" in each.text]
    commands = list(block.commands())
    assert [words[0] for words in commands] == ["check", "discover", "review", "report", "export"]
    check, *others = commands
    code, told = bagwise(photos, check)
    assert code == 1, "four images of a class are few"
    assert "12 images, 2 classes, 4 images of none of them" in told
    for words in others:
        code, told = bagwise(photos, words)
        assert code == 0, shlex.join(words)
    assert (photos / "run" / "report.html").is_file()
    lines = {file.stem: file.read_text().split() for file in (photos / "dataset" / "labels").rglob("*.txt")}
    assert len(lines) == 12
    assert sum(not words for words in lines.values()) == 4, "images of nothing are background"
    assert all(len(words) >= 7 for words in lines.values() if words), "a class and three corners at least"
