"""Disks that are full, read-only or not what they seem: a clear sentence, and nothing that was there is lost."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from tests.faults.harness import in_child
from tests.problems import concept_problem

import bagwise
from bagwise import RMISVC
from bagwise.lock import sole_use

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def model():
    bags, y = concept_problem(20)
    return RMISVC(epochs=2, random_state=0).fit(bags, y)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kilobytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def remount(place, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def left_aside(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".writing-")]


def test_file_size_limit(model, tmp_path):
    path = tmp_path / "model.bagwise"
    path.write_bytes(b"the former file")

    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        with pytest.raises(OSError, match="too large"):
            bagwise.save(model, path)

    assert in_child(work) == 0
    assert path.read_bytes() == b"the former file"
    assert left_aside(tmp_path) == []


def test_full_disk(model, small_disk):
    path = small_disk / "model.bagwise"
    bagwise.save(model, path)
    good = path.read_bytes()
    room = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(room.f_bavail * room.f_bsize))
    model.coef_ = np.random.RandomState(0).randn(1, 20_000)
    with pytest.raises(OSError, match="No space"):
        bagwise.save(model, path)
    assert path.read_bytes() == good
    assert left_aside(small_disk) == []


def test_full_disk_in_mid_discovery(tmp_path, small_disk):
    """The run stops with one sentence; with room made, the same command goes on to the same result."""
    for name in ("PIL", "cv2", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.faults.small import make_photographs, results

    from bagwise.discovery import pipeline

    settings = make_photographs(tmp_path / "photographs", each=3)
    pipeline.discover(tmp_path / "photographs", tmp_path / "whole", settings=settings, jobs=1)
    (small_disk / "ballast").write_bytes(bytes(40_000))
    with pytest.raises(OSError, match="No space"):
        pipeline.discover(tmp_path / "photographs", small_disk / "run", settings=settings, jobs=1)
    remount(small_disk, "size=4m")
    pipeline.discover(tmp_path / "photographs", small_disk / "run", settings=settings, jobs=1)
    assert results(small_disk / "run") == results(tmp_path / "whole")


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "bagwise", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = "".join(f"{i},{i % 2},{i % 2 * 3 + 0.1 * i},1\n" for i in range(8))
    path.write_text("bag,label,x,y\n" + rows)
    return path


def test_command_line_says_it_in_one_line(table, small_disk, tmp_path):
    fit = ("fit", table, "--bag", "bag", "--label", "label", "-o")
    remount(small_disk, "ro")
    (tmp_path / "file").write_text("in the way")
    for output, sentence in ((small_disk / "m", "Read-only file system"), (tmp_path / "file" / "m", "file")):
        run = command(*fit, output)
        assert run.returncode == 2, run.stderr
        assert sentence in run.stderr
        assert run.stderr.count("\n") == 1
    remount(small_disk, "rw")


def test_read_only_run_folder(small_disk):
    remount(small_disk, "ro")
    with pytest.raises(OSError, match="Read-only"), sole_use(small_disk / "run"):
        pass
    remount(small_disk, "rw")
