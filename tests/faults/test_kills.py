"""Kill -9 at random and at chosen moments: what was finished stays, nothing is half-written, going on gives the same.

BAGWISE_KILLS sets the number of random kills of each kind (8 by default).
"""

import json
import os
import shutil
import sys
import time

import numpy as np
import pytest
from tests.faults.harness import in_child, kills_at_every_change, random_kills
from tests.problems import concept_problem

import bagwise
from bagwise import RMISVC
from bagwise.benchmark import measure as benchmark
from bagwise.benchmark import methods

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
KILLS = int(os.environ.get("BAGWISE_KILLS", "8"))


@pytest.fixture(scope="module")
def warm():
    """Compile in this process, so that children need not."""
    bags, y = concept_problem(40)
    RMISVC(epochs=2, random_state=0).fit(bags, y)
    return bags, y


def duration(work):
    started = time.monotonic()
    assert in_child(work) == 0
    return time.monotonic() - started


def test_fit_and_save(warm, tmp_path):
    bags, y = warm
    path = tmp_path / "model.bagwise"

    def work():
        bagwise.save(RMISVC(epochs=20, random_state=0).fit(bags, y), path)

    seconds = duration(work)
    expected = path.read_bytes()
    path.write_bytes(b"the former file")
    seen = set()
    for kill in range(KILLS):
        random_kills(work, 1, 1.2 * seconds, seed=kill)
        seen.add(path.read_bytes())
    assert seen <= {expected, b"the former file"}
    path.write_bytes(b"the former file")
    assert kills_at_every_change(work) >= 4
    assert path.read_bytes() == expected


def bench_tasks():
    return benchmark.plan(["RMI-SVM"], ["musk1"], "default", 3)


def without_times(done):
    return {task: (repeat.accuracy, repeat.selected) for task, repeat in done.items()}


@pytest.fixture
def quick_bench(monkeypatch):
    """A repeat takes milliseconds: the first 20 bags in two folds."""
    from bagwise.benchmark.cross_validation import cross_validate_once
    from bagwise.datasets import load_musk1

    bags, y = load_musk1()
    bags, y = bags[30:60], y[30:60]
    monkeypatch.setattr(methods, "load_set", lambda name, protocol: (bags, y, None))
    monkeypatch.setattr(
        benchmark, "cross_validate_once", lambda model, bags, y, repeat, **rest: cross_validate_once(
            RMISVC(epochs=3), bags, y, repeat, 2
        )
    )  # fmt: skip


def test_bench(warm, quick_bench, tmp_path):
    tasks = bench_tasks()
    expected = without_times(benchmark.run(tasks, tmp_path / "whole" / "results.jsonl", n_jobs=1))
    results = tmp_path / "run" / "results.jsonl"

    def work():
        benchmark.run(tasks, results, n_jobs=1)

    seconds = duration(work)
    for kill in range(KILLS):
        results.unlink(missing_ok=True)
        random_kills(work, 3, 0.8 * seconds, seed=kill)
        finished = benchmark.read_results(results)
        assert without_times(benchmark.run(tasks, results, n_jobs=1)) == expected
        assert {
            task: repeat for task, repeat in benchmark.read_results(results).items() if task in finished
        } == finished
    lines = [json.loads(line) for line in results.read_text().splitlines() if line]
    assert len(lines) == len(tasks)


def test_bench_line_cut_short(warm, quick_bench, tmp_path):
    """A machine that lost power may keep half a line."""
    tasks, results = bench_tasks(), tmp_path / "results.jsonl"
    expected = without_times(benchmark.run(tasks, results, n_jobs=1))
    whole = results.read_bytes()
    for cut in range(1, len(whole), max(1, len(whole) // 25)):
        results.write_bytes(whole[:cut])
        assert without_times(benchmark.run(tasks, results, n_jobs=1)) == expected


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    for name in ("PIL", "cv2", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    from tests.faults.small import make_photographs

    root = tmp_path_factory.mktemp("pictures") / "photographs"
    return root, make_photographs(root, each=3)


def test_discover(warm, photographs, tmp_path, monkeypatch):
    """Networks are opened in the children: their threads would not survive a fork."""
    from tests.faults.small import results

    from bagwise.discovery.features import store
    from bagwise.discovery.run import pipeline

    monkeypatch.setattr(store, "IMAGES_PER_SHARD", 1)
    monkeypatch.setattr(store, "SHARDS_APART", 2)  # so that their indexes are kept together, too
    folder = tmp_path / "run"

    def work():
        pipeline.discover(photographs[0], folder, settings=photographs[1], jobs=1)

    seconds = duration(work)
    expected = results(folder)
    for kill in range(max(2, KILLS // 3)):
        shutil.rmtree(folder)
        random_kills(work, 3, seconds, seed=kill)
        assert in_child(work) == 0
        assert results(folder) == expected
        assert not list(folder.rglob(".writing-*"))
    shutil.rmtree(folder)
    for at in range(1, 60, max(1, 60 // KILLS)):
        in_child(work, kill_at_change=at)
    assert in_child(work) == 0
    assert results(folder) == expected
    assert len(store.FeatureStore(folder / "store")) == 6
    assert (folder / "store" / store.TOGETHER).is_file()


def test_review(tmp_path):
    """Every decision that was acknowledged is there after a kill; a torn last line is dropped."""
    from bagwise.review.decisions import read_decisions
    from bagwise.review.log import DecisionLog

    told = tmp_path / "told"

    def work():
        log = DecisionLog(tmp_path / "decisions.jsonl")
        already = len(log.states())
        with told.open("a") as acknowledged:
            for number in range(already, already + 200):
                pair = (f"{number}.png", "x")
                log.decide(
                    pair, number, "accept", boxes=[(1, 1, 5, 6)], rejected=[], version=0, client="c", key=f"k{number}"
                )
                acknowledged.write(f"{number}\n")
                acknowledged.flush()

    for kill in range(KILLS):
        random_kills(work, 1, 0.4, seed=kill)
        lines = told.read_text().splitlines() if told.exists() else []
        kept = {int(file[:-4]) for file, _ in read_decisions(tmp_path)}
        assert {int(line) for line in lines} <= kept
        assert kept == set(range(len(kept)))


@pytest.mark.skipif(sys.platform == "win32", reason="locks differ")
def test_two_runs_in_one_folder(tmp_path):
    from bagwise._utils.lock import sole_use

    with sole_use(tmp_path / "run"):
        assert in_child(lambda: _expect_refusal(tmp_path / "run")) == 0
    with sole_use(tmp_path / "run"):
        pass


def _expect_refusal(folder):
    from bagwise._utils.lock import sole_use

    with pytest.raises(ValueError, match=r"in use by another bagwise \(process \d+\)"), sole_use(folder):
        pass


def test_a_lock_does_not_outlive_its_process(tmp_path):
    from bagwise._utils.lock import sole_use

    def hold():
        with sole_use(tmp_path):
            (tmp_path / ".writing-abc").write_text("half")
            time.sleep(60)

    in_child(hold, kill_after=0.5)
    with sole_use(tmp_path):
        assert not (tmp_path / ".writing-abc").exists()


def test_random_state_survives_in_the_file(warm, tmp_path):
    """The model that is loaded after any of this predicts as the one that was saved."""
    bags, y = warm
    model = RMISVC(epochs=5, random_state=3).fit(bags, y)
    bagwise.save(model, tmp_path / "m")
    np.testing.assert_array_equal(bagwise.load(tmp_path / "m").decision_function(bags), model.decision_function(bags))
