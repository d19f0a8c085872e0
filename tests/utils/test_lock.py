"""One process at a time, by one kind of lock; `tests/faults/test_kills.py` ends its holders by force."""

import ast
from pathlib import Path

import pytest

import bagwise
from bagwise._utils.lock import InUseError, hold, sole_use

SOURCES = sorted(Path(bagwise.__file__).parent.rglob("*.py"))


def test_a_second_holder_is_refused_and_told_who_has_it(tmp_path):
    lock = hold(tmp_path / ".lock")
    with pytest.raises(InUseError, match=r"process \d+"):
        hold(tmp_path / ".lock")
    lock.release()
    hold(tmp_path / ".lock").release()


def test_a_lock_can_be_released_by_another_thread(tmp_path):
    """A review server is made in one thread and closed in another."""
    import threading

    lock = hold(tmp_path / ".lock")
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    again = hold(tmp_path / ".lock")
    assert again.is_locked
    again.release()


def test_a_holder_that_cannot_be_read_is_unknown(tmp_path):
    lock = hold(tmp_path / ".lock")
    (tmp_path / ".lock-holder").unlink()
    with pytest.raises(InUseError, match="process unknown"):
        hold(tmp_path / ".lock")
    lock.release()


def test_what_was_left_aside_is_swept_unless_the_folder_is_shared(tmp_path):
    left = tmp_path / "store" / ".writing-abc"
    left.mkdir(parents=True)
    with sole_use(tmp_path, sweep=False):
        assert left.exists()
    with sole_use(tmp_path):
        assert not left.exists()


def test_a_folder_that_is_released_after_an_error_can_be_used_again(tmp_path):
    with pytest.raises(RuntimeError), sole_use(tmp_path):
        raise RuntimeError
    with sole_use(tmp_path):
        pass


def test_nothing_locks_or_changes_the_umask_by_itself():
    """POSIX's own locks are nowhere: filelock has one for every system."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"fcntl", "msvcrt"} & set(names), path
            assert not (isinstance(node, ast.Attribute) and node.attr == "umask"), path
