"""Learning from files: the same steps as in memory, in an order that suits a disk, at a bounded memory."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.problems import concept_problem

from bagwise import RMISVC, Bags
from bagwise._utils import mapped
from bagwise.rmi import outofcore
from bagwise.rmi.objective import Loss
from bagwise.rmi.problem import Iterate, Problem
from bagwise.rmi.sgd import sgd


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of forty rows and runs of eight, so that a little file has many."""
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 40 * 5 * 8)
    monkeypatch.setattr(outofcore, "RUN_BYTES", 8 * 5 * 8)


@pytest.fixture
def on_disk(tmp_path):
    """The same bags in memory and in a file, with a prior, and three classes."""
    bags, y = concept_problem(60, n_classes=3)
    np.save(tmp_path / "instances.npy", bags.instances)
    prior = np.random.RandomState(0).randn(bags.n_instances)
    instances = np.load(tmp_path / "instances.npy", mmap_mode="r")
    in_file = Bags.from_arrays(instances, bags.offsets, prior=prior)
    return Bags.from_arrays(bags.instances, bags.offsets, prior=prior), in_file, y


def test_a_file_is_not_copied(on_disk, small_blocks):
    _, in_file, _ = on_disk
    assert mapped.is_large_map(in_file.instances)
    assert np.shares_memory(in_file[3:9].instances, in_file.instances)
    assert not mapped.is_large_map(np.array(in_file.instances))


def test_forgotten_pages_come_back(on_disk):
    in_memory, in_file, _ = on_disk
    mapped.forget(in_file.instances[10:20])
    np.testing.assert_array_equal(in_file.instances, in_memory.instances)


def test_changes_of_a_private_map_are_not_forgotten(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5000, 4)))
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[:] = 7
    mapped.forget(private)
    assert (private == 7).all()


def test_blocks_cover_everything_once(on_disk, small_blocks):
    in_memory, in_file, _ = on_disk
    parts = list(mapped.bag_blocks(in_file))
    assert len(parts) > 4
    assert [part.start for part, _ in parts[1:]] == [part.stop for part, _ in parts[:-1]]
    np.testing.assert_array_equal(np.concatenate([b.instances for _, b in parts]), in_memory.instances)
    assert max(block.n_instances for _, block in parts) <= 40


def test_a_bag_larger_than_a_block_is_a_block():
    ranges = list(mapped.bag_ranges(np.array([0, 3, 103, 105, 106]), 10))
    assert [(r.start, r.stop) for r in ranges] == [(0, 1), (1, 2), (2, 4)]


def test_steps_are_those_in_memory(on_disk, small_blocks):
    """In whatever order: neighbours, repetitions, and bags from both ends of the file in one piece."""
    in_memory, in_file, y = on_disk
    targets = y[:, None] == np.arange(3)
    order = np.random.RandomState(0).randint(60, size=150)
    runs = []
    for bags in (in_memory, in_file):
        problem = Problem(bags, targets, np.ones(targets.shape), Loss(0.01, 2.0, 0.7), True)
        runs.append(sgd(problem, Iterate.zero(3, 5), iter([order]), average_from=50, radius=problem.radius("safe")))
    for one, other in zip(*runs):
        np.testing.assert_array_equal(one.coef, other.coef)
        np.testing.assert_array_equal(one.intercept, other.intercept)
        assert one.steps == other.steps == 150


def test_order_visits_every_bag_once_a_pass_and_mixes_the_file(on_disk, small_blocks):
    _, in_file, _ = on_disk
    first, second, third = outofcore.orders_by_runs(in_file, 150, np.random.RandomState(0))
    assert sorted(first) == sorted(second) == list(range(60))
    assert len(third) == 30
    assert not np.array_equal(first, second)
    pieces = outofcore.pieces(in_file, first)
    assert len(pieces) > 3
    for piece in pieces[:-1]:  # each from more than one place in the file, and not in the file's order
        assert (np.diff(np.sort(piece)) > 1).any()
        assert (np.diff(piece) < 0).any()


def test_one_block_is_the_order_in_memory(on_disk):
    """A file that fits into a block gives the bits that memory gives."""
    in_memory, in_file, y = on_disk
    one, other = (RMISVC(random_state=0, epochs=5).fit(bags, y) for bags in (in_memory, in_file))
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"lam": 0.01},
        {"lam": 0.01, "sampling": "blocks"},
        {"lam": 0.01, "sampling": "uniform"},
        {"lam": 0.01, "pooling": "normalized", "calibrate": True},
        {"lam": 0.01, "scaling": "unit", "average": False},
    ],
    ids=str,
)
def test_a_fit_from_a_file_is_the_fit_in_memory(on_disk, small_blocks, parameters):
    in_memory, in_file, y = on_disk
    one, other = (RMISVC(random_state=0, epochs=20, **parameters).fit(bags, y) for bags in (in_memory, in_file))
    assert (one.lam_, one.scaling_, one.pooling_) == (other.lam_, other.scaling_, other.pooling_)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_allclose(other.decision_function(in_file), one.decision_function(in_memory), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.instance_scores(in_file), other.instance_scores(in_memory), rtol=1e-9)


def test_lbfgs_from_a_file_is_as_good(on_disk, small_blocks):
    in_memory, in_file, y = on_disk
    one, other = (RMISVC(0.01, solver="lbfgs", epochs=5, random_state=0).fit(bags, y) for bags in (in_memory, in_file))
    np.testing.assert_allclose(other.decision_function(in_file), one.decision_function(in_memory), rtol=0.01, atol=0.01)


def test_tracked_objective_sums_over_blocks(on_disk, monkeypatch):
    in_memory, in_file, y = on_disk
    model = RMISVC(random_state=0, epochs=3, track_objective=True, sampling="uniform")
    whole = model.fit(in_memory, y).objective_
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 40 * 5 * 8)
    np.testing.assert_allclose(model.fit(in_file, y).objective_, whole, rtol=1e-6)


FIT_AND_MEASURE = """
import json, os, resource, sys
import numpy as np
import bagwise
from bagwise import Bags, RMISVC
from bagwise._utils import mapped

def resident(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what)) << 10

mapped.BLOCK_BYTES = 4 << 20
with open(sys.argv[1], "rb") as file:   # read in one go, so that the system caches it in pages as large as it has
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    while file.read(16 << 20):
        pass
x = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(x)) % 2
RMISVC(epochs=1).fit(np.array(x[:40]), y[:40]).predict(np.array(x[:40]))   # imports and compilers have their own memory
before = resident("VmRSS")
# What is allocated, as against mapped, may grow by 100 MB; the file has 256.
resource.setrlimit(resource.RLIMIT_DATA, (resident("VmData") + (100 << 20),) * 2)
open("/proc/self/clear_refs", "w").write("5")   # forget the peak so far
model = RMISVC(epochs=2, random_state=0).fit(Bags(x), y)
score = float((model.predict(Bags(x)) == y).mean())
print(json.dumps({"peak": resident("VmHWM") - before, "file": x.nbytes, "score": score}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's own account of memory")
def test_memory_stays_bounded(tmp_path):
    rng = np.random.RandomState(0)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(10_000, 50, 128))
    for i in range(0, 10_000, 1000):
        x[i : i + 1000] = rng.standard_normal((1000, 50, 128)).astype(np.float32)
    x[1::2, 0, 0] += 12
    x.flush()
    del x
    run = subprocess.run(
        [sys.executable, "-c", FIT_AND_MEASURE, str(tmp_path / "x.npy")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["file"] == 256_000_000
    assert found["peak"] < 100 << 20
    assert found["score"] > 0.9
