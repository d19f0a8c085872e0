"""Features of patches in HDF5 files, as programs that cut slides into patches write them, as bags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise._utils.atomic import replacing
from bagwise._utils.optional import require
from bagwise.bags import Bags

# Compression makes features a few times smaller, not a thousand times.
MOST_UNPACKED = 1000


def read_hdf5(
    files: str | Path | Sequence[str | Path],
    *,
    features: str = "features",
    coords: str | None = "coords",
    cache: str | Path | None = None,
) -> tuple[Bags, list[NDArray] | None]:
    """Read one bag from each HDF5 file: a slide as its patches.

    Rows go from the files straight into the array that the bags use. One file whose rows lie side by side and
    uncompressed is mapped into memory and not read at all; several can be, through ``cache``.

    Parameters
    ----------
    files : folder, or paths of .h5 files
    features : str, default="features"
        The data set with one row per patch, (m, d) or (1, m, d).
    coords : str or None, default="coords"
        The data set with the place of each patch, (m, 2).
    cache : path, optional
        A .npy file that is made of all rows and then mapped: for slides that do not fit into memory. One that is there
        already and has as many rows is used.

    Returns
    -------
    bags : Bags
        Named by the files' names without their ending.
    places : list of (m_i, 2) arrays, or None where ``coords`` is None

    Examples
    --------
    >>> from bagwise.datasets import read_hdf5
    >>> bags, places = read_hdf5("slides")  # doctest: +SKIP
    """
    h5py = require("h5py", extra="hdf5")
    paths = _paths(files)
    shapes, places = [], []
    for path in paths:
        with _open(h5py, path) as file:
            shapes.append(_shape(_dataset(file, features, path), path))
            if coords is not None:
                places.append(_places(file, coords, path, shapes[-1][0]))
    widths = {width for _, width in shapes}
    if len(widths) > 1:
        odd = next(i for i, shape in enumerate(shapes) if shape[1] != shapes[0][1])
        raise ValueError(
            f"{paths[odd]} has {shapes[odd][1]} features a row but {paths[0]} has {shapes[0][1]}: "
            "all files must have the same"
        )
    offsets = np.concatenate([[0], np.cumsum([rows for rows, _ in shapes])]).astype(np.int64)
    rows = _rows(h5py, paths, features, offsets, shapes[0][1], None if cache is None else Path(cache))
    bags = Bags.from_arrays(rows, offsets, ids=[path.stem for path in paths])
    return bags, places if coords is not None else None


def _paths(files: str | Path | Sequence[str | Path]) -> list[Path]:
    if isinstance(files, (str, Path)):
        folder = Path(files)
        found = sorted([*folder.glob("*.h5"), *folder.glob("*.hdf5")]) if folder.is_dir() else [folder]
    else:
        found = [Path(file) for file in files]
    if not found:
        raise ValueError(f"{files} holds no .h5 file: name a folder with one file per slide")
    return found


@contextmanager
def _open(h5py: Any, path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, TypeError) as error:  # h5py's ways to say that a file is damaged
        raise ValueError(f"{path} cannot be read as HDF5: {error}") from error


def _dataset(file: Any, name: str, path: Path) -> Any:
    import h5py

    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{path} has no data set {name!r}, only {sorted(file)}: name the right one")
    # What one file says must not decide which others are read.
    if found.file.filename != file.filename or found.external or found.is_virtual:
        raise ValueError(f"{path}: {name} lies in another file: copy it into this one")
    if found.size * found.dtype.itemsize > MOST_UNPACKED * path.stat().st_size:
        raise ValueError(f"{path}: {name} promises {found.shape}, far more than the file can hold")
    return found


def _shape(dataset: Any, path: Path) -> tuple[int, int]:
    shape = dataset.shape[1:] if len(dataset.shape) == 3 and dataset.shape[0] == 1 else dataset.shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{path}: {dataset.name} has the shape {dataset.shape}, but (patches, features) is needed")
    if dataset.dtype.kind not in "fiu":
        raise ValueError(f"{path}: {dataset.name} holds {dataset.dtype}, not numbers")
    return int(shape[0]), int(shape[1])


def _places(file: Any, name: str, path: Path, rows: int) -> NDArray:
    found = _dataset(file, name, path)
    if found.shape not in ((rows, 2), (1, rows, 2)) or found.dtype.kind not in "fiu":
        raise ValueError(f"{path}: {name} has the shape {found.shape}, but there are {rows} patches: (n, 2) is needed")
    return found[()].reshape(rows, 2)


def _rows(
    h5py: Any, paths: list[Path], features: str, offsets: NDArray[np.int64], width: int, cache: Path | None
) -> NDArray:
    if len(paths) == 1:
        mapped = _mapped(h5py, paths[0], features, (int(offsets[-1]), width))
        if mapped is not None:
            return mapped
    shape = (int(offsets[-1]), width)
    if cache is None:
        rows = np.empty(shape, np.float32)
        _fill(h5py, rows, paths, features, offsets)
        return rows
    if not cache.is_file() or np.load(cache, mmap_mode="r").shape != shape:
        with replacing(cache) as aside:
            whole = np.lib.format.open_memmap(aside, mode="w+", dtype=np.float32, shape=shape)
            _fill(h5py, whole, paths, features, offsets)
            whole.flush()
            del whole
    return np.load(cache, mmap_mode="r")


def _mapped(h5py: Any, path: Path, name: str, shape: tuple[int, int]) -> NDArray | None:
    """The rows as a map of the file, where they lie in it just as they would in memory."""
    with _open(h5py, path) as file:
        dataset = file[name]
        offset = dataset.id.get_offset()
        if dataset.chunks is not None or offset is None or dataset.dtype not in (np.float32, np.float64):
            return None
        return np.memmap(path, dtype=dataset.dtype, mode="r", offset=offset, shape=shape)


def _fill(h5py: Any, rows: NDArray, paths: list[Path], features: str, offsets: NDArray[np.int64]) -> None:
    for path, first, last in zip(paths, offsets, offsets[1:]):
        with _open(h5py, path) as file:
            dataset = file[features]
            source = np.s_[0] if dataset.ndim == 3 else np.s_[:]
            dataset.read_direct(rows, source, np.s_[int(first) : int(last)])
