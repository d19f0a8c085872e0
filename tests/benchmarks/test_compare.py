"""The comparison with other packages: its problems, its limits, what it says of failures, its tables."""

import argparse
import subprocess
import sys

import numpy as np
import pytest
from benchmarks.scaling import exponent, sizes_of

from benchmarks import compare

LIMITS = argparse.Namespace(time_limit=30, memory_limit=8000)
PEER = """
import sys, numpy as np
sys.path.insert(0, {folder!r})
import measuring

def fit(tables, y):
    return lambda bags: [int(bag[:, 0].max() > 4) for bag in bags]

def raises(tables, y):
    raise RuntimeError("no such solver")

def eats(tables, y):
    return np.ones((1 << 40,)).sum()

def hangs(tables, y):
    while True:
        sum(range(10**6))

measuring.main({{"fit": fit, "raises": raises, "eats": eats, "hangs": hangs}}, lambda: "1.2")
"""


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.npz"
    compare.make_problem("40x5x6", path)
    return path


@pytest.fixture
def peer(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text(PEER.format(folder=str(compare.PEERS_FOLDER)))
    return compare.Peer(str(script), {"fit": "SIL"})


def test_problem_has_the_size_and_the_witnesses(problem):
    arrays = np.load(problem)
    assert arrays["train"].shape == (40, 5, 6)
    assert arrays["test"].shape == (compare.TEST_BAGS, 5, 6)
    highest = arrays["train"][..., 0].max(axis=1)
    assert highest[arrays["train_y"] == 1].mean() > highest[arrays["train_y"] == 0].mean() + 3


def test_a_fit_is_measured(peer, problem):
    found = compare.run(sys.executable, peer, "fit", problem, LIMITS)
    assert found["version"] == "1.2"
    assert found["accuracy"] > 0.9
    assert 0 <= found["seconds"] < 1
    assert found["added_mb"] >= 0


def test_failures_are_told_by_how_they_fail(peer, problem):
    raised = compare.run(sys.executable, peer, "raises", problem, LIMITS)
    assert raised == {"fails": "RuntimeError: no such solver"}
    assert compare.run(sys.executable, peer, "eats", problem, LIMITS)["fails"].startswith("out of memory")
    soon = argparse.Namespace(time_limit=-58, memory_limit=8000)  # two seconds in all
    assert compare.run(sys.executable, peer, "hangs", problem, soon)["fails"].startswith("over")


def test_what_pip_cannot_install_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(compare.venv, "create", lambda folder, with_pip: None)
    monkeypatch.setattr(
        compare.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, "", "ERROR: no such version\n")
    )
    with pytest.raises(RuntimeError, match="no such version"):
        compare.install(compare.PEERS["mil"], tmp_path)


def test_tables_tell_how_many_times_faster():
    ours = {"peer": "bagwise", "method": "MISVC", "family": "MI-SVM", "size": "9x9x9", "version": "0"}
    figures = {"seconds": 0.5, "added_mb": 10.0, "accuracy": 0.98}
    other = {"peer": "plain", "method": "loop", "family": "MI-SVM", "size": "9x9x9", "version": "1"}
    broken = {"peer": "mil", "method": "MILES", "family": "MILES", "size": "9x9x9", "fails": "ImportError: tensorflow"}
    text = compare.tables([{**ours, **figures}, {**other, **figures, "seconds": 2.0}, broken])
    assert "**4.0** (0.50 s; 2.00 s)" in text
    assert "0.50 s · 10 MB · 98 %" in text
    assert "- mil, MILES, 9x9x9: ImportError: tensorflow" in text


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_exponent_is_that_of_the_growth(power):
    points = [{"value": 2**k, "seconds": 0.01 * (2**k) ** power, "megabytes": 1.0} for k in range(6)]
    assert exponent(points, "seconds") == pytest.approx(power)
    assert exponent(points[:1], "seconds") is None


def test_one_number_grows_at_a_time():
    bags = [size for _, size in sizes_of("bags", 2)]
    assert [size[0] for size in bags] == [200, 400, 800]
    assert {size[1:] for size in bags} == {(10, 50, 0)}
    assert [size[3] for _, size in sizes_of("nonzeros", 1)] == [10, 20]
