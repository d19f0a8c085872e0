"""The core of the tests with what Windows and macOS lack taken away: nothing counts on POSIX."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="open files are looked up in /proc")
ROOT = Path(__file__).parents[2]
CORE = [
    "tests/test_bags.py",
    "tests/test_persistence.py",
    "tests/utils/test_lock.py",
    "tests/utils/test_names.py",
    "tests/discovery/run/test_runfolder.py",
    "tests/discovery/features/test_store.py",
    "tests/discovery/run/test_export.py",
    "tests/review/test_decisions.py",
    "tests/review/test_refit.py",
    "tests/review/test_items.py",
    "tests/faults/another_system_itself.py",
]


def test_the_core_without_posix():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.faults.another_system", "-p", "no:cacheprovider"]
    run = subprocess.run([*command, "-m", "not slow and not browser", *CORE], cwd=ROOT, capture_output=True, text=True,
                         env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600)  # fmt: skip
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) > 150
