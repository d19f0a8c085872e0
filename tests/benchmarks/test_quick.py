"""The quick comparison of speeds: its arithmetic and its words, on work that takes no time."""

import json
import time

import pytest
from benchmarks.quick import SLOWER, Figure, children, compare, fresh_python, ratio, run


def work(rounds):
    return lambda: sum(range(1000 * rounds))


FIGURES = [Figure("a long sum", "a short sum", lambda folder: (work(50), work(5)))]


def test_ratio_is_that_of_the_work():
    steps = []

    def clock():  # an hour passes with every call of the first, a minute with one of the second
        return 3600.0 * steps.count("ours") + 60.0 * steps.count("reference")

    found = ratio(lambda: steps.append("ours"), lambda: steps.append("reference"), turns=3, clock=clock)
    assert found == pytest.approx(60)
    assert steps.count("ours") == steps.count("reference") == 5, "once to warm up, once to see how long it takes"


def test_short_work_is_repeated():
    runs = []
    assert ratio(lambda: runs.append(sum(range(100))), work(1), turns=1) > 0
    assert len(runs) > 100


def test_what_got_slower_is_said_in_words():
    recorded = {"fit": 2.0, "open": 4.0, "read": 1.0, "gone": 1.0}
    slower, notes = compare({"fit": 3.0, "open": 4.0 * SLOWER * 0.999, "read": 0.5, "new": 7.0}, recorded)
    assert slower == ["fit: 50% slower than recorded (3, was 2)"]
    assert [line.split(":")[0] for line in notes] == ["read", "new", "gone"]
    assert notes[0] == "read: 100% faster than recorded (0.5, was 1); record it"
    assert compare(recorded, recorded) == ([], [])


def test_the_exit_code_tells_it_too(tmp_path, capsys):
    results = tmp_path / "quick.json"
    assert run(FIGURES, results, record=True) == 0
    document = json.loads(results.read_text())
    assert list(document["ratios"]) == ["a long sum"]
    for factor, code in ((0.01, 1), (100, 0)):
        ratios = {name: value * factor for name, value in document["ratios"].items()}
        results.write_text(json.dumps({**document, "ratios": ratios}))
        capsys.readouterr()
        assert run(FIGURES, results, record=False) == code
        said = capsys.readouterr().out
        assert f"{code} of 1 figures got slower by more than 20%" in said
        assert "a long sum:" in said
        assert ("slower than recorded" in said) == bool(code)


def test_time_of_other_processes_counts():
    before, own = children(), time.process_time()
    fresh_python("sum(range(10**7))")()
    assert children() - before > time.process_time() - own
