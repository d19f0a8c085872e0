"""The review page under a small load, killed in the middle: `benchmarks/review_load.py` in a few seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the review page needs bagwise[review]")
pytest.importorskip("PIL", reason="the review page needs bagwise[vision]")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "review_load.py"


def test_no_decision_is_lost_or_doubled(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = ["--images", "300", "--tabs", "5", "--rate", "1500", "--minutes", "0.1"]
    command = [sys.executable, str(SCRIPT), *small, "-o", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["log"]["acknowledged and lost"] == found["log"]["written twice"] == found["log"]["out of order"] == 0
    assert found["log"]["lines"] > 20
    assert found["killed"]["decisions sent again"] > 0
    assert found["memory MB"]["most"] < 1000


def test_a_log_that_lost_or_doubled_something_is_noticed(tmp_path):
    from benchmarks.review_load import check_log

    lines = [{"key": "a", "version": 1, "file": "x", "seq": 1}, {"key": "b", "version": 2, "file": "x", "seq": 2}]

    def check(*kept):
        path = tmp_path / "decisions.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        found = check_log(path, {"a", "b"})
        return found["acknowledged and lost"], found["written twice"], found["out of order"]

    assert check(*lines) == (0, 0, 0)
    assert check(lines[0])[0] == 1
    assert check(*lines, lines[1])[1] == 1
    assert check(*reversed(lines))[2] > 0
