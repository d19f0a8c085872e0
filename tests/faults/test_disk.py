"""Disks that are full, read-only or not what they seem: a clear sentence, and nothing that was there is lost."""

import os
import resource
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from tests.faults.harness import in_child
from tests.problems import concept_problem

import bagwise
from bagwise import RMISVC
from bagwise._utils.lock import sole_use

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

    from bagwise.discovery.run import pipeline

    settings = make_photographs(tmp_path / "photographs", each=3)
    pipeline.discover(tmp_path / "photographs", tmp_path / "whole", settings=settings, jobs=1)
    (small_disk / "ballast").write_bytes(bytes(40_000))
    with pytest.raises(OSError, match="No space"):
        pipeline.discover(tmp_path / "photographs", small_disk / "run", settings=settings, jobs=1)
    remount(small_disk, "size=4m")
    pipeline.discover(tmp_path / "photographs", small_disk / "run", settings=settings, jobs=1)
    assert results(small_disk / "run") == results(tmp_path / "whole")


def leave_room(place, pages):
    """Fill the disk but for so many pages."""
    (place / "ballast").unlink(missing_ok=True)
    room = os.statvfs(place)
    (place / "ballast").write_bytes(bytes((room.f_bavail - pages) * room.f_bsize))


def test_disk_that_fills_up_at_every_stage(tmp_path, small_disk):
    """With room for ever more pages the run gets ever further; whatever was finished is kept, and with room made the
    same command ends with the same bytes."""
    for name in ("PIL", "cv2", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.faults.small import make_photographs, results

    from bagwise.discovery.run import pipeline

    settings = make_photographs(tmp_path / "photographs", each=2)
    run = partial(pipeline.discover, tmp_path / "photographs", settings=settings, jobs=1)
    run(tmp_path / "whole")
    expected = results(tmp_path / "whole")
    remount(small_disk, "size=1m")
    refusals, reached = 0, set()
    for pages in range(1, 200):
        leave_room(small_disk, pages)
        try:
            run(small_disk / "run")
        except OSError as error:
            assert "no space left" in str(error).lower()  # noqa: PT017
        else:
            break
        refusals += 1
        reached |= {path.name for path in (small_disk / "run").rglob("*") if path.is_file()}
        assert left_aside(small_disk / "run") == []
        (small_disk / "ballast").unlink()
        run(small_disk / "run")
        assert results(small_disk / "run") == expected
        shutil.rmtree(small_disk / "run")
    assert refusals > 10
    assert {"features.npy", "boxes.parquet", "ball.bagwise"} <= reached, "it was stopped late as well as early"
    assert results(small_disk / "run") == expected


def test_full_disk_under_review(small_disk):
    """Every decision until then is kept, the next is refused with a sentence, and with room made it is taken."""
    from bagwise.review.decisions import read_decisions
    from bagwise.review.log import DecisionLog

    log = DecisionLog(small_disk / "decisions.jsonl")
    leave_room(small_disk, 1)

    def decide(number):
        box = [(1.0, 1.0, 5.0, 6.0)]
        pair = (f"{number}.png", "x")
        log.decide(pair, number, "accept", boxes=box, rejected=[], version=0, client="c", key=str(number))

    taken = 0
    room = os.statvfs(small_disk)
    while log.path.stat().st_size + 300 < room.f_bavail * room.f_bsize:
        decide(taken)
        taken += 1
    assert taken > 5

    def decide_on():
        nonlocal taken
        while True:
            decide(taken)
            taken += 1

    with pytest.raises(OSError, match=r"No space|is full"):
        decide_on()
    assert len(read_decisions(small_disk)) == taken
    (small_disk / "ballast").unlink()
    decide(taken)
    log.close()
    assert len(read_decisions(small_disk)) == taken + 1


def test_full_disk_under_export(tmp_path, small_disk):
    from tests.discovery.runs import make_run

    from bagwise.discovery.run.export import export_run

    run, _ = make_run(tmp_path / "run")
    (small_disk / "labels").mkdir()
    leave_room(small_disk, 1)
    with pytest.raises(OSError, match="No space"):
        export_run(run, "yolo", small_disk / "labels" / "out")
    assert list((small_disk / "labels").iterdir()) == []
    (small_disk / "ballast").unlink()


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
