"""NumPy files that may come from a stranger: what they promise is believed as far as they have bytes for it."""

import os
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy


def open_array(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a ``.npy`` file, which stays in the file; ValueError when it is damaged.

    NumPy's reader of headers fails in more ways than it names (TokenError and IndexError among them).
    """
    try:
        return npy.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """All arrays of a ``.npz`` file by name; ValueError when it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): read_member(archive, name) for name in archive.namelist()}
    except (OSError, ValueError):
        raise
    except Exception as error:  # whatever a damaged file may provoke in zipfile and zlib
        raise ValueError(f"{type(error).__name__}: {error}") from error


def read_member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array of an archive, read only when it is as long as its header says."""
    info = archive.getinfo(name)
    with archive.open(info) as file:
        shape, dtype = _header(file, name)
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are not loaded")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > info.file_size:
        raise ValueError(f"{name} is shorter than its header says")
    with archive.open(info) as file:
        return npy.read_array(file, allow_pickle=False)


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], Any]:
    try:
        read: Any = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
        return shape, dtype
    except Exception as error:  # see `open_array`
        raise ValueError(f"the header of {name} is damaged: {error}") from error
