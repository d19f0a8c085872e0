"""Plain lines of progress, where there is no terminal."""

from types import SimpleNamespace

import pytest

from bagwise._utils import progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""

    class Clock:
        now = 0.0

    # Of this module alone: an event loop of another thread (a server that other tests share) that looked at such a
    # clock once would sleep for as long as the machine has been up.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: Clock.now))
    return Clock


def test_a_terminal_without_rich_gets_plain_lines(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    for _ in progress.track(iter("ab"), description="files"):
        clock.now += 11
    assert capsys.readouterr().err.splitlines() == ["files: 1", "files: 2"]


def test_first_item_does_not_count_for_the_time_left(clock, capsys):
    for i, _ in enumerate(progress.track(range(5), description="boxes")):
        clock.now += 60 if i == 0 else 12
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "boxes: 1/5",
        "boxes: 2/5, about 36 s left",
        "boxes: 3/5, about 24 s left",
        "boxes: 4/5, about 12 s left",
        "boxes: 5/5, about 0 s left",
    ]


def test_lines_are_ten_seconds_apart_and_items_pass_through(clock, capsys):
    seen = []
    for item in progress.track(iter("abcdef"), description="files"):
        seen.append(item)
        clock.now += 4
    assert seen == list("abcdef")
    assert capsys.readouterr().err.splitlines() == ["files: 3", "files: 6"]
