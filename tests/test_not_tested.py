"""The end of a run says what was not tested."""

import os
import subprocess
import sys
from pathlib import Path

from tests.not_tested import not_tested

ROOT = Path(__file__).parents[1]


def test_reasons_are_grouped_by_what_is_missing():
    lines = not_tested(
        [
            "Skipped: the browser tests need playwright",
            "Skipped: Chromium is not installed (Debian: apt-get install chromium)",
            "Skipped: could not import 'torch': No module named 'torch'",
            "Skipped: BAGWISE_DATA has no VOC2007",
            "Skipped: mounting a small disk needs root",
            "Skipped: there is a card here",
        ]
    )
    assert lines[0].startswith("2 tests without Chromium: apt-get install chromium")
    assert lines[1].startswith("1 test without PyTorch: pip install torch --index-url")
    assert "BAGWISE_DATA" in lines[2]
    assert lines[3] == "1 test mounting a small disk needs root"
    assert len(lines) == 4


def test_the_end_of_a_run_says_so(tmp_path):
    """On a machine without Chromium: a PATH that holds none."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/report/test_report_in_browser.py"]
    done = subprocess.run(command, cwd=ROOT, env=_environment(tmp_path), capture_output=True, text=True)
    assert "not tested here" in done.stdout, done.stdout + done.stderr
    assert "tests without Chromium: apt-get install chromium" in done.stdout


def _environment(empty: Path) -> dict[str, str]:
    return {**os.environ, "PATH": str(empty)}
