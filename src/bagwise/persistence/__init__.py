"""Saving models without pickle: a zip of JSON and .npy files that can be loaded from a stranger.

A file can only name classes of bagwise and of scikit-learn (see `kinds`), and hold numbers, strings and arrays, so
loading one never runs code that came with it.

skops was tried for scikit-learn's parts and not taken: importing it imports all of scikit-learn, its files hold memory
addresses (the same model makes other bytes each time), and it trusts neither forests nor finished searches by itself.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import zipfile
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from bagwise._utils.atomic import replacing
from bagwise._utils.npy import read_member
from bagwise.persistence import kinds, trees
from bagwise.persistence.machines import check_machine

FORMAT = 2  # since 2, scalers say what they did, and calibrations where scores usually lie
MANIFEST = "model.json"
# What a file may unpack to: deflate shrinks zeros a thousandfold, real models never that much.
FREE_BYTES = 64 << 20
LARGEST_RATIO = 200


class ModelFileError(ValueError):
    """A model file is damaged, from another version, or not a model file."""


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : an estimator of bagwise, or one of scikit-learn around it
        A Pipeline, GridSearchCV or CalibratedClassifierCV is saved with all that is in it. What a file cannot hold
        safely is refused: functions of your own, and scikit-learn's compiled parts other than trees.
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
                    "fit and save the model again with this version, or discover a run's images into a new folder"
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


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._open: list[int] = []  # objects that are being written: one that holds itself would never end

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._store(np.asarray(value))}
        if isinstance(value, np.ma.MaskedArray):
            return {"masked": self.encode(np.asarray(value.data), where), "mask": self.encode(value.mask, where)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value.ravel())]
                return {"objects": items, "shape": list(value.shape)}
            return {"array": self._store(np.asarray(value))}
        if sparse.issparse(value):
            csr = sparse.csr_array(value)
            parts = [self._store(part) for part in (csr.data, csr.indices, csr.indptr)]
            return {"csr": parts, "shape": list(csr.shape)}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        if type(value) is dict:
            return {
                "dict": [
                    [self.encode(key, where), self.encode(item, f"{where}[{key!r}]")] for key, item in value.items()
                ]
            }
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=False), where)}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type) and kinds.scalar_type(value.__name__) is value:
            return {"scalar_type": value.__name__}
        if kinds.metric_name(value):
            return {"metric": kinds.metric_name(value)}
        if trees.is_tree(value):
            return {"tree": self.encode(trees.tree_parts(value), where)}
        name = kinds.name_of(type(value))
        if name is None or id(value) in self._open:
            raise TypeError(
                f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be saved safely: "
                "estimators of bagwise and most of scikit-learn can; use pickle for this one"
            )
        self._open.append(id(value))
        state = {k: self.encode(v, f"{where}.{k}") for k, v in state_of(value).items()}
        self._open.pop()
        return {"object": name, "state": state}

    def _store(self, array: np.ndarray) -> str:
        name = f"arrays/{len(self.arrays)}.npy"
        self.arrays[name] = array
        return name


class _Reader:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

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
            case {"masked": data, "mask": mask}:
                return np.ma.MaskedArray(self.decode(data), mask=self.decode(mask))
            case {"objects": list(items), "shape": list(shape)}:
                array = np.empty(len(items), dtype=object)
                array[:] = [self.decode(item) for item in items]
                return array.reshape([int(length) for length in shape])
            case {"random_state": state}:
                random_state = np.random.RandomState()
                random_state.set_state(self.decode(state))
                return random_state
            case {"dtype": str(text)}:
                dtype = np.dtype(text)
                if dtype.hasobject:
                    raise ModelFileError(f"the model file names the type {text!r}, which holds Python objects")
                return dtype
            case {"scalar_type": str(name)} if kinds.scalar_type(name):
                return kinds.scalar_type(name)
            case {"metric": str(name)} if kinds.metric(name):
                return kinds.metric(name)
            case {"tree": parts}:
                return trees.tree_of(self.decode(parts))
            case {"object": str(name), "state": dict(state)}:
                kind = kinds.named(name)
                if kind is None:
                    raise ModelFileError(f"the model file names the class {name!r}, which bagwise does not know")
                return _restore(kind, {str(key): self.decode(item) for key, item in state.items()})
        raise ModelFileError(f"the model file holds an unknown value with the keys {sorted(value)}")

    def _array(self, name: str) -> np.ndarray:
        try:
            return read_member(self._archive, name)
        except ValueError as error:
            raise ModelFileError(str(error)) from error


def state_of(value: Any) -> dict[str, Any]:
    """What makes up an object: the fields of a dataclass, the attributes of an estimator, the keys of a Bunch."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return dict(value)
    # scikit-learn's estimators say themselves what is to be kept, and remember their version.
    return dict(value.__getstate__() if type(value).__module__.startswith("sklearn.") else vars(value))


def _restore(kind: type, state: dict[str, Any]) -> Any:
    if is_dataclass(kind):
        return kind(**state)
    if issubclass(kind, dict):
        return kind(**state)
    if issubclass(kind, BaseEstimator) and not set(inspect.signature(kind).parameters) <= set(state):
        raise ModelFileError(f"the model file lacks parameters of {kind.__name__}")
    value: Any = object.__new__(kind)
    if issubclass(kind, BaseEstimator):
        value.__setstate__(state)
        check_machine(value)
    else:
        vars(value).update(state)
    return value


def _entry(name: str) -> zipfile.ZipInfo:
    """A zip entry with a fixed date, so that the same model makes the same bytes."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry
