"""Saving models without pickle: a zip of JSON and .npy files that can be loaded from a stranger.

A file can only name classes that are registered here or defined by bagwise, and hold numbers, strings and arrays, so
loading one never runs code that came with it.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse
from sklearn.base import BaseEstimator

from bagwise.atomic import replacing

FORMAT = 1
MANIFEST = "model.json"
# What a file may unpack to: deflate shrinks zeros a thousandfold, real models never that much.
FREE_BYTES = 64 << 20
LARGEST_RATIO = 200


class ModelFileError(ValueError):
    """A model file is damaged, from another version, or not a model file."""


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted bagwise model to one file, whole or not at all.

    Parameters
    ----------
    model : a bagwise estimator
    path : where to write; an existing file is replaced once the new one is complete
    """
    writer = _Writer()
    document = {"format": FORMAT, "model": writer.encode(model, "model")}
    with replacing(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(MANIFEST), json.dumps(document, indent=1))
        for name, array in writer.arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(_entry(name), buffer.getvalue())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Raises
    ------
    ModelFileError
        When the file is not a model, is damaged, or was written by a newer version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bombs(archive, os.path.getsize(path))
            document = json.loads(archive.read(MANIFEST))
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                found = document.get("format") if isinstance(document, dict) else None
                raise ModelFileError(
                    f"{path} has model format {found!r}, but this version of bagwise reads {FORMAT}: "
                    "save the model again with this version"
                )
            return _Reader(archive).decode(document["model"])
    except ModelFileError:
        raise
    except (OSError, MemoryError):
        raise
    except Exception as error:  # whatever a hostile file may provoke in zipfile, json or numpy
        raise ModelFileError(f"{path} is not a bagwise model or is damaged ({error}): save it again") from error


def _refuse_bombs(archive: zipfile.ZipFile, size: int) -> None:
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > FREE_BYTES + LARGEST_RATIO * size:
        raise ModelFileError(f"the file unpacks to {unpacked} bytes from {size}, which no model does: it was not read")


def _registry() -> dict[str, type]:
    """Classes a file may name. Imported late: a model file is read long after everything is defined."""
    from bagwise.all_estimators import storable_types

    return {kind.__name__: kind for kind in storable_types()}


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._types = _registry()

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._store(np.asarray(value), where)}
        if isinstance(value, np.ndarray):
            return {"array": self._store(value, where)}
        if sparse.issparse(value):
            csr = sparse.csr_array(value)
            parts = [self._store(part, where) for part in (csr.data, csr.indices, csr.indptr)]
            return {"csr": parts, "shape": list(csr.shape)}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        if isinstance(value, dict):
            return {
                "dict": [
                    [self.encode(key, where), self.encode(item, f"{where}[{key!r}]")] for key, item in value.items()
                ]
            }
        name = type(value).__name__
        if self._types.get(name) is type(value):
            return {"object": name, "state": {k: self.encode(v, f"{where}.{k}") for k, v in state_of(value).items()}}
        raise TypeError(
            f"{where} is a {type(value).__module__}.{name}, which cannot be saved safely: "
            "models made of bagwise's own parts can; use pickle for this one"
        )

    def _store(self, array: np.ndarray, where: str) -> str:
        if array.dtype.kind == "O":
            array = self._text(array, where)
        name = f"arrays/{len(self.arrays)}.npy"
        self.arrays[name] = array
        return name

    @staticmethod
    def _text(array: np.ndarray, where: str) -> np.ndarray:
        if not all(isinstance(item, str) for item in array.flat):
            raise TypeError(f"{where} is an array of Python objects, which cannot be saved safely; use pickle")
        return array.astype(str)


class _Reader:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._types = _registry()

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ModelFileError("the model file holds a bare list where a value should be")
            return value
        match value:
            case {"float": str(text)}:
                return {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}[text]
            case {"scalar": str(name)}:
                return self._array(name)[()]
            case {"array": str(name)}:
                return self._array(name)
            case {"csr": [data, indices, indptr], "shape": [int(rows), int(columns)]}:
                csr = sparse.csr_array(
                    (self._array(data), self._array(indices), self._array(indptr)), shape=(rows, columns)
                )
                csr.check_format(full_check=True)
                return csr
            case {"list": list(items)}:
                return [self.decode(item) for item in items]
            case {"tuple": list(items)}:
                return tuple(self.decode(item) for item in items)
            case {"dict": list(pairs)}:
                return {self.decode(key): self.decode(item) for key, item in pairs}
            case {"object": str(name), "state": dict(state)}:
                if name not in self._types:
                    raise ModelFileError(f"the model file names the class {name!r}, which bagwise does not know")
                return _restore(self._types[name], {str(key): self.decode(item) for key, item in state.items()})
        raise ModelFileError(f"the model file holds an unknown value with the keys {sorted(value)}")

    def _array(self, name: str) -> np.ndarray:
        info = self._archive.getinfo(name)
        with self._archive.open(info) as file:
            # The header could promise terabytes: believe it only as far as the file has bytes for it.
            version = npy.read_magic(file)
            reader: Callable = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = reader(file)
            if dtype.hasobject:
                raise ModelFileError(f"{name} holds Python objects, which are not loaded")
            if int(np.prod(shape, dtype=object)) * dtype.itemsize > info.file_size:
                raise ModelFileError(f"{name} is shorter than its header says")
        with self._archive.open(info) as file:
            return np.load(io.BytesIO(file.read()), allow_pickle=False)


def state_of(value: Any) -> dict[str, Any]:
    """What makes up an object: the fields of a dataclass, the attributes of an estimator."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(vars(value))


def _restore(kind: type, state: dict[str, Any]) -> Any:
    if is_dataclass(kind):
        return kind(**state)
    if not set(kind().get_params(deep=False)) <= set(state):
        raise ModelFileError(f"the model file lacks parameters of {kind.__name__}")
    value: Any = object.__new__(kind)
    vars(value).update(state)
    return value


def _entry(name: str) -> zipfile.ZipInfo:
    """A zip entry with a fixed date, so that the same model makes the same bytes."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry
