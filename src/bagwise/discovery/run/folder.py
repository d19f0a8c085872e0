"""The run folder: what a discovery run leaves behind, and what export, report and review read.

::

    RUN/manifest.json       settings, classes, timings, hashes, problems
    RUN/images.parquet      one row per image
    RUN/boxes.parquet       one row per box: the objects found, and the ranked alternatives; masks where there are
    RUN/boxes.json          the objects again, as COCO results
    RUN/snapshots.parquet   optional: the answers in the course of learning
    RUN/models/             one saved model per class
    RUN/store/              the feature store
    RUN/source.json         the folder of images that the store belongs to, and the seconds it took
    RUN/log.txt             what was printed
    RUN/decisions.jsonl     what a reviewer decided
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bagwise._utils.atomic import replacing, write_text
from bagwise._utils.names import distinct_names, stays_inside

FORMAT = 1

IMAGES = pa.schema(
    [
        ("image_id", pa.int32()),
        ("file", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("labels", pa.list_(pa.string())),
    ]
)
CORNERS = ("x1", "y1", "x2", "y2")
_corner_fields = [(name, pa.float32()) for name in CORNERS]
BOXES = pa.schema(
    [
        ("image_id", pa.int32()),
        ("label", pa.string()),
        ("rank", pa.int16()),
        ("kind", pa.string()),
        *_corner_fields,
        ("score", pa.float32()),
        ("confidence", pa.float32()),
        ("objectness", pa.float32()),
        ("mask", pa.string()),  # COCO's compressed run lengths at the image's size, see `_utils.rle`; empty: none
    ]
)
WHEN_ABSENT = {"mask": ""}  # runs of before there were masks, and whoever has none, leave the column out
SNAPSHOTS = pa.schema([("steps", pa.int32()), ("image_id", pa.int32()), ("label", pa.string()), *_corner_fields])
KINDS = ("object", "alternative")

# Of the manifest.
ENTRIES: dict[str, Any] = {
    "classes": list | tuple, "source": dict, "bagwise": str, "created": str, "settings": dict, "timings": dict,
    "hashes": dict, "problems": list,
}  # fmt: skip

Columns = Mapping[str, Any]


class RunFolder:
    """A finished discovery run on disk.

    Parameters
    ----------
    path : path
        The folder; it must hold a ``manifest.json`` of this format.

    Attributes
    ----------
    path : Path
    manifest : dict
        See the module's description; always holds ``classes``, ``source``, ``settings``, ``timings``,
        ``hashes`` and ``problems``.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.manifest: dict[str, Any] = _read_manifest(self.path / "manifest.json")

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @classmethod
    def create(
        cls,
        path: str | Path,
        manifest: Mapping[str, Any],
        images: pa.Table | Columns,
        boxes: pa.Table | Columns,
        snapshots: pa.Table | Columns | None = None,
    ) -> "RunFolder":
        """Write a run; the manifest goes last, so that an unfinished run is never taken for a run.

        Parameters
        ----------
        path : path
            The folder, made when absent; other files in it (store, models, log) are left alone.
        manifest : mapping
            ``classes`` and ``source`` (with ``root``) are needed; the rest is filled in when absent.
        images, boxes, snapshots : pyarrow.Table or mapping of columns
            As :data:`IMAGES`, :data:`BOXES`, :data:`SNAPSHOTS`; values are cast to those types.
        """
        folder = Path(path)
        filled = {
            "format": FORMAT,
            "bagwise": version("bagwise"),
            "created": _now(),
            "settings": {},
            "timings": {},
            "hashes": {},
            "problems": [],
            **manifest,
        }
        _check_manifest(filled, folder / "manifest.json")
        images = as_table(images, IMAGES, "images")
        boxes = as_table(boxes, BOXES, "boxes")
        _check_images(images)
        _check_boxes(boxes, images, filled["classes"])
        folder.mkdir(parents=True, exist_ok=True)
        write_parquet(folder / "images.parquet", images)
        _write_boxes(folder, boxes, filled["classes"])
        if snapshots is not None:
            write_parquet(folder / "snapshots.parquet", as_table(snapshots, SNAPSHOTS, "snapshots"))
        else:
            (folder / "snapshots.parquet").unlink(missing_ok=True)
        _write_manifest(folder, filled)
        return cls(folder)

    @property
    def classes(self) -> list[str]:
        """The class names; a COCO category id is a position in this list plus one."""
        return self.manifest["classes"]

    @cached_property
    def images(self) -> pa.Table:
        """One row per image, see :data:`IMAGES`."""
        return read_parquet(self.path / "images.parquet", IMAGES)

    @cached_property
    def boxes(self) -> pa.Table:
        """One row per box, see :data:`BOXES`."""
        return read_parquet(self.path / "boxes.parquet", BOXES)

    @cached_property
    def snapshots(self) -> pa.Table | None:
        """The answers in the course of learning, see :data:`SNAPSHOTS`, where the run kept them."""
        path = self.path / "snapshots.parquet"
        return read_parquet(path, SNAPSHOTS) if path.exists() else None

    @property
    def source_root(self) -> Path:
        """The folder the images' names start from; a relative one is taken from the run folder."""
        return self.path / self.manifest["source"]["root"]

    @property
    def store_path(self) -> Path:
        """The feature store."""
        return self.path / "store"

    @property
    def decisions_path(self) -> Path:
        """What the reviewer decided, one JSON object per line."""
        return self.path / "decisions.jsonl"

    def model_path(self, label: str) -> Path:
        """Where the model of a class is kept; any label makes a valid, distinct file name."""
        return model_paths(self.path, self.classes)[label]

    def image_path(self, file: str) -> Path:
        """The image on this disk, of a name as ``images.parquet`` has it.

        Raises ValueError for a name that would leave the source folder.
        """
        if not stays_inside(file):
            raise ValueError(f"the image name {file!r} leaves the source folder; names in a run are relative to it")
        return self.source_root / file

    def corners(self, table: pa.Table | None = None) -> np.ndarray:
        """Boxes of a table (default: all of ``boxes``) as one float32 array of shape (n, 4)."""
        return corners(self.boxes if table is None else table)

    def rewrite_manifest(self, entries: Mapping[str, Any]) -> None:
        """Replace some entries of the manifest."""
        manifest = {**self.manifest, **entries}
        _check_manifest(manifest, self.path / "manifest.json")
        _write_manifest(self.path, manifest)
        self.manifest = manifest

    def rewrite_boxes(self, boxes: pa.Table | Columns) -> None:
        """Replace the boxes (after a refit, say), and the COCO results with them."""
        table = as_table(boxes, BOXES, "boxes")
        _check_boxes(table, self.images, self.classes)
        _write_boxes(self.path, table, self.classes)
        self.boxes = table


def model_paths(folder: Path, classes: Iterable[str]) -> dict[str, Path]:
    """Where the models of a run's classes are kept."""
    return {label: folder / "models" / f"{name}.bagwise" for label, name in distinct_names(classes).items()}


def corners(table: pa.Table) -> np.ndarray:
    """The columns x1, y1, x2, y2 of a table as one float32 array of shape (n, 4)."""
    return np.column_stack([table[name].to_numpy() for name in CORNERS]).astype(np.float32, copy=False)


def as_table(columns: pa.Table | Columns, schema: pa.Schema, what: str) -> pa.Table:
    """Bring columns to a schema: its order and its types, nothing missing, nothing null."""
    given = set(columns.column_names if isinstance(columns, pa.Table) else columns)
    for name in WHEN_ABSENT:
        if name in schema.names and name not in given and given:
            columns = _with_default(columns, name)
            given.add(name)
    missing = [name for name in schema.names if name not in given]
    if missing:
        raise ValueError(f"the table of {what} lacks the column(s) {', '.join(missing)}")
    try:
        if isinstance(columns, pa.Table):
            table = columns.select(schema.names).cast(schema)
        else:
            table = pa.table({name: pa.array(columns[name]).cast(schema.field(name).type) for name in schema.names})
    except pa.ArrowException as error:
        raise ValueError(f"the table of {what} holds other kinds of values than it should: {error}") from error
    for name in schema.names:
        if table[name].null_count:
            raise ValueError(f"the table of {what} has {table[name].null_count} empty value(s) in column {name!r}")
    return table.cast(schema)


def _with_default(columns: pa.Table | Columns, name: str) -> pa.Table | Columns:
    """The columns and another one, of one value."""
    if isinstance(columns, pa.Table):
        return columns.append_column(name, pa.array([WHEN_ABSENT[name]] * len(columns), pa.string()))
    return {**columns, name: [WHEN_ABSENT[name]] * len(next(iter(columns.values())))}


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table atomically."""
    with replacing(path) as aside:
        pq.write_table(table, aside, compression="zstd")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is not a run folder: it has no {path.name} (an unfinished run?)") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not readable as JSON: {error}") from error
    _check_manifest(manifest, path)
    return manifest


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_text(folder / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def _check_manifest(manifest: Any, path: Path) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise ValueError(f"{path} is of format {found}; this version of bagwise reads format {FORMAT}")
    for key, kind in ENTRIES.items():
        if key not in manifest:
            raise ValueError(f"{path} lacks the entry {key!r}")
        if not isinstance(manifest[key], kind):
            raise ValueError(f"{path} is damaged: the entry {key!r} is {manifest[key]!r:.50}")
    if "root" not in manifest["source"]:
        raise ValueError(f"{path} does not say where the images are: 'source' lacks the entry 'root'")
    if not isinstance(manifest["source"]["root"], str):
        raise ValueError(f"{path} is damaged: the folder of the images is {manifest['source']['root']!r:.50}")
    for problem in manifest["problems"]:
        if not isinstance(problem, dict) or not {"file", "reason"} <= problem.keys():
            raise ValueError(f"{path} is damaged: a problem is {problem!r:.50}")
    classes = manifest["classes"]
    if not all(isinstance(name, str) for name in classes):
        raise ValueError(f"{path} is damaged: the name of a class is not a text")
    if len(set(classes)) != len(classes):
        raise ValueError(f"{path} names a class twice")


def _check_images(images: pa.Table) -> None:
    ids = images["image_id"].to_numpy()
    if not np.array_equal(ids, np.arange(1, len(ids) + 1)):
        raise ValueError("image ids must count from 1 in the order of the table of images")
    if pc.count_distinct(images["file"]).as_py() != len(images):
        counts = images["file"].value_counts()
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0].as_py()
        raise ValueError(f"the table of images names {twice!r} twice")


def _check_boxes(boxes: pa.Table, images: pa.Table, classes: list[str]) -> None:
    ids = boxes["image_id"].to_numpy()
    if len(ids) and (ids.min() < 1 or ids.max() > len(images)):
        raise ValueError(f"the table of boxes names image {ids.max()}, but there are {len(images)} images")
    for column, allowed in (("label", classes), ("kind", list(KINDS))):
        strangers = set(boxes[column].unique().to_pylist()) - set(allowed)
        if strangers:
            raise ValueError(f"the table of boxes has the unknown {column} {sorted(strangers)[0]!r}")
    box = corners(boxes)
    bad = ~(np.isfinite(box).all(axis=1) & (box[:, 2] > box[:, 0]) & (box[:, 3] > box[:, 1]))
    confidence = boxes["confidence"].to_numpy()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"row {row} of the table of boxes (image {ids[row]}) is no box: {box[row].tolist()}")
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("the table of boxes has a confidence outside 0 to 1")


def _write_boxes(folder: Path, boxes: pa.Table, classes: list[str]) -> None:
    write_parquet(folder / "boxes.parquet", boxes)
    write_text(folder / "boxes.json", json.dumps(coco_results(boxes, classes)))


def coco_results(boxes: pa.Table, classes: list[str]) -> list[dict[str, Any]]:
    """The objects (not the alternatives) as a COCO results list; the score is the confidence."""
    objects = boxes.filter(pc.equal(boxes["kind"], "object"))
    category = {label: number for number, label in enumerate(classes, start=1)}
    x1, y1, x2, y2 = corners(objects).astype(float).round(2).T
    rows = zip(
        objects["image_id"].to_pylist(),
        objects["label"].to_pylist(),
        np.column_stack([x1, y1, x2 - x1, y2 - y1]).round(2).tolist(),
        objects["confidence"].to_pylist(),
        strict=True,
    )
    return [
        {"image_id": image, "category_id": category[label], "bbox": box, "score": round(score, 6)}
        for image, label, box, score in rows
    ]


def read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a table and hold it against what it should be."""
    if not path.exists():
        raise ValueError(f"the run folder {path.parent} lacks {path.name}: run `bagwise discover` again")
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(f"{path} is not readable as Parquet: {error}") from error
    return as_table(table, schema, path.stem)
