"""Run by `test_another_system.py`: the plugin does what it says, so that the tests beside this one mean something."""

import mmap
import os

import pytest


def test_posix_is_gone(tmp_path):
    with pytest.raises(ImportError):
        import fcntl  # noqa: F401
    assert not hasattr(os, "fork")
    with pytest.raises(OSError, match="privilege"):
        (tmp_path / "link").symlink_to(tmp_path)


def test_open_and_mapped_files_stay(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 5000)
    (tmp_path / "b").write_bytes(b"y")
    with path.open("rb") as file:
        with pytest.raises(PermissionError):
            path.unlink()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with pytest.raises(PermissionError):
        os.replace(tmp_path / "b", path)
    with pytest.raises(PermissionError):
        path.rename(tmp_path / "c")
    mapped.close()
    os.replace(tmp_path / "b", path)
    assert path.read_bytes() == b"y"
