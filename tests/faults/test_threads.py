"""Fits in parallel give the same bits as one after another, and no library starts more threads than it was given."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import Parallel, delayed
from tests.problems import concept_problem

from bagwise import RMISVC


def fitted(seed):
    bags, y = concept_problem(30, n_features=8, n_classes=3)
    return RMISVC(epochs=8, random_state=seed).fit(bags, y).coef_


def test_threads_and_processes_give_the_same_bits():
    alone = [fitted(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(fitted, range(6)))
    processes = Parallel(n_jobs=2)(delayed(fitted)(seed) for seed in range(6))
    for one, other, third in zip(alone, threads, processes):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def test_one_model_predicts_in_many_threads():
    bags, y = concept_problem(30)
    model = RMISVC(epochs=5, random_state=0).fit(bags, y)
    expected = model.decision_function(bags)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.decision_function(bags), range(40)):
            np.testing.assert_array_equal(found, expected)


COUNT = """
import os, sys
import numpy as np
from tests.problems import concept_problem
from bagwise import RMISVC
bags, y = concept_problem(30)
RMISVC(epochs=5).fit(bags, y)
before = len(os.listdir("/proc/self/task"))
for seed in range(3):
    RMISVC(epochs=5, random_state=seed, solver="lbfgs", max_iter=5).fit(bags, y).predict(bags)
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_a_fit_starts_no_threads():
    """The compiled steps are serial; only BLAS has threads, and those are there once and for all."""
    run = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, timeout=120, cwd=os.getcwd(),
                         env={**os.environ, "PYTHONPATH": "."})  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == 0


NETWORKS = """
import os, sys
from pathlib import Path
from tests.faults.small import make_photographs
from bagwise.discovery.run import pipeline
folder = Path(sys.argv[1])
settings = make_photographs(folder / "photographs", each=2)
import threading
most = 0
stop = threading.Event()
def watch():
    global most
    while not stop.wait(0.005):
        most = max(most, len(os.listdir("/proc/self/task")))
watcher = threading.Thread(target=watch)
import numpy, cv2, onnxruntime
base = len(os.listdir("/proc/self/task"))
watcher.start()
pipeline.discover(folder / "photographs", folder / "run", settings=settings, jobs=2)
stop.set()
watcher.join()
print(most - base - 1)
"""


def test_discovery_keeps_to_its_jobs(tmp_path):
    """Two jobs: two threads at work. Networks and OpenCV use the thread they are called from; a pool may overlap the
    one before it, and importing tables (pyarrow) brings at most a few that sleep."""
    import pytest

    for name in ("PIL", "cv2", "onnx", "onnxruntime"):
        pytest.importorskip(name)
    run = subprocess.run([sys.executable, "-c", NETWORKS, str(tmp_path)], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "PYTHONPATH": ".", "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) <= 8
