"""Reading a legacy torch weight file without torch and without trusting it.

The file is four pickles (magic number, protocol, system information, state dict), a pickled list of storage
keys, then for every storage an int64 count and the raw little-endian values. Pickle can run any code, so the
unpickler here knows four names and refuses every other.
"""

import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


class WeightFileError(ValueError):
    """The weight file is not what it should be; the message says which file and why."""


@dataclass(frozen=True)
class _Storage:
    """A block of values of the file, by its key; the values themselves come after the pickles."""

    key: str
    dtype: np.dtype
    count: int


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage: where it starts, its shape and its strides, all in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage: _Storage, offset: int, shape: Any, strides: Any, *_: Any) -> _Tensor:
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


class _StateDictUnpickler(pickle.Unpickler):
    """Loads dicts of tensors and nothing else."""

    allowed = {  # noqa: RUF012 - read only
        ("collections", "OrderedDict"): OrderedDict,
        ("torch", "FloatStorage"): np.dtype("<f4"),
        ("torch", "LongStorage"): np.dtype("<i8"),
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.allowed[module, name]
        except KeyError:
            raise WeightFileError(
                f"the weight file asks for {module}.{name}, which no plain state dict needs"
            ) from None

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _location, count = pid[:5]
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise WeightFileError(f"the weight file holds an unknown object of kind {kind!r}")
        return _Storage(str(key), dtype, int(count))


def read_torch_weights(path: str | Path) -> dict[str, np.ndarray]:
    """Read the state dict of a legacy torch file.

    Parameters
    ----------
    path : path
        The .pth file, in torch's format before version 1.6.

    Returns
    -------
    dict
        Name of each tensor to a C-contiguous array.

    Raises
    ------
    WeightFileError
        When the file is not of this format, is cut short, or would run code.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            magic, protocol, _system, state, keys = (_StateDictUnpickler(file).load() for _ in range(5))
        except WeightFileError as error:
            raise WeightFileError(f"{path}: {error}; get the file again from its publisher") from None
        except Exception as error:  # a damaged pickle raises almost anything
            raise WeightFileError(f"{path} is not a legacy torch weight file ({error}); install it again") from error
        if magic != MAGIC_NUMBER or protocol != PROTOCOL:
            raise WeightFileError(f"{path} is not a legacy torch weight file (wrong magic number); install it again")
        tensors = {name: value for name, value in state.items() if isinstance(value, _Tensor)}
        storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
        values = {key: _read_storage(file, storages.get(key), key, path) for key in keys}
    return {name: _view(tensor, values, name, path) for name, tensor in tensors.items()}


def _read_storage(file: BinaryIO, storage: _Storage | None, key: str, path: Path) -> np.ndarray:
    head = file.read(8)
    count = int.from_bytes(head, "little", signed=True)
    if storage is None or len(head) < 8 or count != storage.count:
        raise WeightFileError(f"{path} is damaged at storage {key}; install it again")
    values = np.frombuffer(file.read(count * storage.dtype.itemsize), dtype=np.uint8)
    if values.size != count * storage.dtype.itemsize:
        raise WeightFileError(f"{path} is cut short at storage {key}; install it again")
    return values.view(storage.dtype)


def _view(tensor: _Tensor, values: dict[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    """The tensor as an array; the strides come from the file, so they are checked before use."""
    flat = values.get(tensor.storage.key)
    last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides))
    if (
        flat is None
        or len(tensor.shape) != len(tensor.strides)
        or min((tensor.offset, *tensor.strides), default=0) < 0
        or min(tensor.shape, default=1) < 1
        or last >= flat.size
    ):
        raise WeightFileError(f"{path} is damaged at tensor {name}; install it again")
    strides = tuple(s * flat.itemsize for s in tensor.strides)
    view = np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.shape, strides, writeable=False)
    return np.ascontiguousarray(view)
