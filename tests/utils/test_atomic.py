"""Files and folders appear whole or not at all, flushed before they are renamed, with the rights of any other file."""

import os
import stat
from pathlib import Path

import pytest

from bagwise._utils import atomic
from bagwise._utils.atomic import new_folder, replacing, write_text


@pytest.fixture
def calls(monkeypatch):
    """What was flushed and renamed, in order: ("flush", name) and ("rename", name)."""
    seen = []
    flush, rename = os.fsync, os.replace

    def fsync(handle):
        seen.append(("flush", Path(os.readlink(f"/proc/self/fd/{handle}")).name))
        flush(handle)

    def replace(source, target):
        seen.append(("rename", Path(source).name))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return seen


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to name what is flushed")


@needs_proc
def test_a_file_is_on_disk_before_its_name_and_the_name_before_the_writer_goes_on(tmp_path, calls):
    with replacing(tmp_path / "a.txt") as aside:
        aside.write_text("all of it")
    assert calls == [("flush", aside.name), ("rename", aside.name), ("flush", tmp_path.name)]


@needs_proc
def test_every_file_of_a_folder_is_on_disk_before_the_folder_has_its_name(tmp_path, calls):
    with new_folder(tmp_path / "folder") as aside:
        (aside / "inner").mkdir()
        (aside / "inner" / "b").write_text("b")
        (aside / "a").write_text("a")
    *before, renamed, last = calls
    assert sorted(before[:-1]) == [("flush", "a"), ("flush", "b"), ("flush", "inner")]
    assert before[-1] == ("flush", aside.name)
    assert renamed == ("rename", aside.name)
    assert last == ("flush", tmp_path.name)


@needs_proc
def test_shards_are_on_disk_before_they_count(tmp_path, calls):
    import numpy as np

    from bagwise.discovery.features.store import ARRAYS, FeatureStore

    with FeatureStore(tmp_path / "store", {"a": 1}) as store:
        store.write("x.png", (9, 9), np.ones((2, 4)), np.ones(2), np.ones((2, 3)))
    renamed = [place for place, (what, _) in enumerate(calls) if what == "rename"]
    flushed = {name for what, name in calls[renamed[-2] : renamed[-1]] if what == "flush"}
    assert {"index.parquet", *(f"{name}.npy" for name in ARRAYS)} <= flushed


def test_a_block_that_fails_leaves_nothing_and_changes_nothing(tmp_path):
    (tmp_path / "a").write_text("former")
    for context in (replacing(tmp_path / "a"), new_folder(tmp_path / "b")):
        with pytest.raises(RuntimeError), context:
            raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "former"


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_rights_follow_the_umask(tmp_path, mask):
    former = os.umask(mask)
    try:
        write_text(tmp_path / "a", "a")
        with new_folder(tmp_path / "b"):
            pass
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o777 & ~mask


def test_the_umask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    """Asking for it means setting it, for all threads: a file that another one makes just then would be open to all."""

    def refuse(mask):
        raise AssertionError("the umask was set")

    monkeypatch.setattr(os, "umask", refuse)
    write_text(tmp_path / "a", "a")
    with new_folder(tmp_path / "b"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_links_are_not_followed_and_read_only_files_do_no_harm(tmp_path):
    (tmp_path / "original").write_text("not ours")
    (tmp_path / "original").chmod(0o400)
    with new_folder(tmp_path / "out") as aside:
        (aside / "link").symlink_to(tmp_path / "original")
        (aside / "gone").symlink_to(tmp_path / "nowhere")
        os.link(tmp_path / "original", aside / "hard")
    assert (tmp_path / "out" / "link").read_text() == "not ours"


def test_windows_waits_for_whoever_reads_the_file(tmp_path, monkeypatch):
    """A virus scanner that holds the former file lets go after a moment; one that does not is an error."""
    rename, refusals = os.replace, [PermissionError(13, "in use")] * 2

    def replace(source, target):
        if refusals:
            raise refusals.pop()
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(atomic, "PATIENCE", (0.001, 0.001, 0.001))
    write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    refusals += [PermissionError(13, "in use")] * 4
    with pytest.raises(PermissionError):
        write_text(tmp_path / "a", "newer")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "new"
