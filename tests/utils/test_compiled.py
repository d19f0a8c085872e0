"""The process that compiles a loop and those that read it from the cache give the same bits."""

import os
import subprocess
import sys

FITS = """
import hashlib
import sys
import numpy as np
from scipy import sparse
import bagwise
from bagwise.registry import classifiers

rng = np.random.default_rng(0)
offsets = np.arange(0, 241, 8)
X = rng.normal(size=(240, 11)).astype(np.float32)
y = np.arange(30) % 2
X[offsets[:-1][y == 1]] += 1.5
for kind in classifiers():
    if kind.__name__ in sys.argv[1].split(","):
        for instances in (X, sparse.csr_array(X)):
            bags = bagwise.Bags.from_arrays(instances, offsets)
            try:
                model = kind(random_state=0) if "random_state" in kind().get_params() else kind()
                scores = model.fit(bags, y).decision_function(bags)
            except (TypeError, ValueError) as error:
                scores = np.frombuffer(str(error).encode(), dtype=np.uint8)
            print(kind.__name__, hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest())
"""

WITH_LOOPS = (
    "RMISVC,MiSVC,MISVC,EMDD,DiverseDensity,APR,MILES,MIKernelSVC,MiGraphSVC,MIGraphSVC,PPMMKernelSVC,CitationKNN,"
    "MIForest,MILBoost"
)


def test_same_bits_compiled_and_cached(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FITS, WITH_LOOPS]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert first.count("\n") == 2 * len(WITH_LOOPS.split(","))
