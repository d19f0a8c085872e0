"""A feature store at a URL: its index here, its arrays fetched when they are first needed."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from bagwise._utils.atomic import new_folder, replacing, write_text
from bagwise._utils.optional import require
from bagwise.discovery.features.store import FORMAT, SHARD, TOGETHER, FeatureStore

SMALL_FILES = ("manifest.json", "reduction.npz", TOGETHER)
# What file systems call the version of a file, best first.
VERSIONS = ("ETag", "etag", "generation", "LastModified", "last_modified", "mtime", "created")


def is_url(store: str | Path) -> bool:
    """Whether a store is a URL (s3://bucket/run), as against a path."""
    return "://" in str(store)


def place_of(store: str | Path) -> str:
    """Where every worker finds the store: a URL as it is, a path in full.

    A file:// URL is the path that it stands for, because files can be put in place whole there.
    """
    path = str(store).removeprefix("file://").removeprefix("local://")
    return path if is_url(path) else str(Path(path).resolve())


def file_system(store: str) -> tuple[Any, str]:
    """The fsspec file system of a store, and the store's path in it."""
    fsspec = require("fsspec", extra="cluster")
    try:
        system, path = fsspec.core.url_to_fs(str(store))
    except (ImportError, ValueError) as error:
        raise ValueError(f"{store} cannot be opened: {error}") from error
    system.invalidate_cache()
    return system, path.rstrip("/")


class RemoteStore(FeatureStore):
    """A store whose files lie at a URL.

    Parameters
    ----------
    url : any fsspec URL
    mirror : folder on this machine for the index and for arrays that were asked for; it stays
    settings : as for `FeatureStore`; a store that is not there yet is made
    """

    def __init__(self, url: str, mirror: str | Path, settings: Mapping[str, Any] | None = None) -> None:
        self._system, self._root = file_system(url)
        self._url, self._mirror = url, Path(mirror)
        if settings is not None and not self._system.exists(f"{self._root}/manifest.json"):
            local = self._mirror / "manifest.json"
            write_text(local, json.dumps({"format": FORMAT, "settings": dict(settings)}, indent=2) + "\n")
            self._system.put_file(str(local), f"{self._root}/manifest.json")
        for name in SMALL_FILES:
            if self._system.exists(f"{self._root}/{name}"):
                self._fetch(name)
        super().__init__(self._mirror, settings)

    @classmethod
    def for_now(cls, url: str, scratch: str | Path | None = None) -> Self:
        """Open a store with a mirror that goes when the store does, or when the process ends.

        Parameters
        ----------
        url : any fsspec URL
        scratch : folder for the mirror; by default that of all temporary files
        """
        mirror = tempfile.mkdtemp(prefix="bagwise-store-", dir=scratch)
        try:
            store = cls(url, mirror)
        except BaseException:
            shutil.rmtree(mirror, ignore_errors=True)
            raise
        weakref.finalize(store, shutil.rmtree, mirror, ignore_errors=True)
        return store

    def _fetch(self, name: str) -> None:
        with replacing(self._mirror / name) as aside:
            self._system.get_file(f"{self._root}/{name}", str(aside))

    def _shards_there(self) -> dict[str, str]:
        found = self._system.glob(f"{self._root}/shard-*/index.parquet", detail=True)
        stamps = {path.split("/")[-2]: _stamp(told) for path, told in found.items()}
        return {name: stamps[name] for name in sorted(stamps) if SHARD.fullmatch(name)}

    def _shard_index(self, shard: str) -> pa.Table:
        self._fetch(f"{shard}/index.parquet")
        return super()._shard_index(shard)

    def consolidate(self) -> bool:
        """As a store on this machine does; the file goes to the URL."""
        written = super().consolidate()
        if written:
            publish_file(self._mirror / TOGETHER, self._url, TOGETHER)
        return written

    def _array(self, shard: str, name: str) -> np.ndarray:
        if not (self._mirror / shard / f"{name}.npy").is_file():
            self._fetch(f"{shard}/{name}.npy")
        return super()._array(shard, name)


def _stamp(told: Mapping[str, Any]) -> str:
    """What changes when a file does, from what its file system tells of it; empty when it tells nothing."""
    version = next((str(told[name]) for name in VERSIONS if told.get(name)), "")
    return f"{version} {told.get('size')}" if version else ""


def publish_shard(shard: Path, store: str, name: str) -> None:
    """Copy a finished shard to the store, whole or not at all."""
    if is_url(store):
        system, root = file_system(store)
        # A shard counts from the moment its index is there, so that goes last.
        for file in sorted(shard.iterdir(), key=lambda path: path.name == "index.parquet"):
            system.put_file(str(file), f"{root}/{name}/{file.name}")
        return
    target = Path(store) / name
    try:
        with new_folder(target) as aside:
            shutil.copytree(shard, aside, dirs_exist_ok=True)
    except OSError:
        if not (target / "index.parquet").is_file():
            raise
        # Another worker, taken for dead, was faster: its shard is the same.


def publish_file(file: Path, store: str, name: str) -> None:
    """Copy a file to the store, whole or not at all."""
    if is_url(store):
        system, root = file_system(store)
        system.put_file(str(file), f"{root}/{name}")
        return
    with replacing(Path(store) / name) as aside:
        shutil.copyfile(file, aside)


def fetch_file(store: str, name: str, target: Path) -> None:
    """Copy a file of the store to this machine."""
    system, root = file_system(store)
    system.get_file(f"{root}/{name}", str(target))
