"""Every reader of files that may come from a stranger, as a function of bytes.

A reader may accept the bytes or raise ValueError or OSError (one sentence for the user). Anything else that comes out
of it is a bug: a crash, a hang, memory that grows out of proportion, or code that came with the file being run.
"""

import io
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import bagwise
from bagwise import RMISVC, Bags
from bagwise._utils.rle import decode_mask, encode_mask
from bagwise.benchmark.cross_validation import Repeat
from bagwise.benchmark.measure import plan, read_results
from bagwise.datasets.files import Problem, read_problem, write_problem
from bagwise.datasets.hdf5 import read_hdf5
from bagwise.discovery.evaluation.kept import keep_evaluation, kept_evaluation, kept_truth
from bagwise.discovery.features.index import Index
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.images import read_image
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics.truth import TruthBox
from bagwise.review.decisions import read_decisions
from bagwise.review.log import DecisionLog
from bagwise.tabular import read_table

_room = tempfile.TemporaryDirectory(prefix="bagwise-fuzz-")
ROOM = Path(_room.name)


def _put(name: str, data: bytes) -> Path:
    path = ROOM / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _bytes_of(write) -> bytes:
    path = ROOM / "seed"
    path.unlink(missing_ok=True)
    write(path)
    return path.read_bytes()


_BAGS = Bags([np.eye(3)[:2], np.eye(3)[1:], np.eye(3)[:1], np.eye(3)[2:]])


def model(data: bytes) -> None:
    loaded = bagwise.load(_put("m.bagwise", data))
    if isinstance(loaded, RMISVC):
        # A model that loads may still be nonsense; using it must not be worse than an error either.
        try:
            loaded.predict(_BAGS)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise ValueError(f"the model cannot be used: {error}") from error


def csv_labels(data: bytes) -> None:
    read_source(_photographs(), _put("labels.csv", data))


def json_lines(data: bytes) -> None:
    read_source(_photographs(), _put("labels.jsonl", data))


def flag_table(data: bytes) -> None:
    read_source(_photographs(), _put("flags.csv", data))


def image_folder(data: bytes) -> None:
    for name in ("a.png", "b.png"):
        _put(f"image-folder/train/{name}", PICTURE)
    read_source(_put("image-folder/train/metadata.csv", data).parents[1])


def fiftyone_labels(data: bytes) -> None:
    for name in ("a.png", "b.png"):
        _put(f"fiftyone/data/{name}", PICTURE)
    read_source(_put("fiftyone/labels.json", data).parent)


def heic_picture(data: bytes) -> None:
    read_image(_put("p.heic", data))


def coco(data: bytes) -> None:
    read_source(_photographs(), _put("coco.json", data))


def coco_without_boxes(data: bytes) -> None:
    read_source(_photographs(), _put("labels-only.json", data))


def voc_xml(data: bytes) -> None:
    _voc("a.xml", data)


def voc_text(data: bytes) -> None:
    _voc("a.txt", data)


def _voc(name: str, data: bytes) -> None:
    root = ROOM / name.replace(".", "-")
    _put(f"{root.name}/Annotations/{name}", data)
    _put(f"{root.name}/JPEGImages/a.png", PICTURE)
    read_source(root)


def table(data: bytes) -> None:
    path = _put("table.csv", data)
    Bags.from_frame(read_table(path), bag="bag", label="label")


def parquet_table(data: bytes) -> None:
    Bags.from_frame(read_table(_put("table.parquet", data)), bag="bag", label="label")


def data_set(data: bytes) -> None:
    read_problem(_put("fox.npz", data)).digest()


def picture(data: bytes) -> None:
    read_image(_put("p.png", data))


def store_index(data: bytes) -> None:
    _store({"index.parquet": data})


def store_indexes(data: bytes) -> None:
    """The file that keeps the indexes of all shards together."""
    _put("store/index.arrow", data)
    try:
        Index.read(ROOM / "store" / "index.arrow")
        _store({})
    finally:
        (ROOM / "store" / "index.arrow").unlink()


def store_features(data: bytes) -> None:
    _store({"features.npy": data})


def store_boxes(data: bytes) -> None:
    _store({"boxes.npy": data})


def store_manifest(data: bytes) -> None:
    FeatureStore(_put("store-m/manifest.json", data).parent)


def _store(changed: dict[str, bytes]) -> None:
    root = ROOM / "store"
    for name, data in {**_SHARD, **changed}.items():
        _put(f"store/shard-00000/{name}", data)
    _put("store/manifest.json", _STORE_MANIFEST)
    store = FeatureStore(root)
    if store.files:
        store.bags(store.files)
        store.boxes(store.files[0])


def reduction(data: bytes) -> None:
    Reduction.load(_put("reduction.npz", data))


def run_manifest(data: bytes) -> None:
    _run({"manifest.json": data})


def run_settings(data: bytes) -> None:
    Settings.from_dict(_run({"manifest.json": data}).manifest["settings"])


def run_boxes(data: bytes) -> None:
    _run({"boxes.parquet": data})


def _run(changed: dict[str, bytes]) -> RunFolder:
    for name, data in {**_RUN, **changed}.items():
        _put(f"run/{name}", data)
    run = RunFolder(ROOM / "run")
    for part in ("classes", "images", "boxes", "source_root"):
        getattr(run, part)
    return run


def run_evaluation(data: bytes) -> None:
    _put("run/evaluation.json", data)
    try:
        kept_evaluation(_run({}))
    finally:
        (ROOM / "run" / "evaluation.json").unlink()


def run_truth(data: bytes) -> None:
    _put("run/truth.parquet", data)
    try:
        kept_truth(_run({}))
    finally:
        (ROOM / "run" / "truth.parquet").unlink()


def decisions(data: bytes) -> None:
    read_decisions(_put("review/decisions.jsonl", data).parent)


def results(data: bytes) -> None:
    read_results(_put("results.jsonl", data))


def _photographs() -> Path:
    folder = ROOM / "photographs"
    if not folder.exists():
        for name in ("a.png", "b.png"):
            _put(f"photographs/{name}", PICTURE)
    return folder


def _png() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(48 * 40 * 3, dtype=np.uint8).reshape(48, 40, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def _heic() -> bytes:
    buffer = io.BytesIO()
    register_heif_opener()
    Image.fromarray(np.arange(48 * 40 * 3, dtype=np.uint8).reshape(48, 40, 3)).save(buffer, "HEIF")
    return buffer.getvalue()


def _npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _shard() -> dict[str, bytes]:
    with FeatureStore(ROOM / "seed-store", {}) as store:
        boxes = np.array([[0, 0, 4, 4], [1, 1, 5, 6]], np.float32)
        store.write("a.png", (40, 48), boxes, np.ones(2, np.float32), np.eye(2, 3, dtype=np.float32))
    return {path.name: path.read_bytes() for path in (ROOM / "seed-store" / "shard-00000").iterdir()}


def _settings() -> bytes:
    manifest = json.loads(_RUN["manifest.json"])
    return json.dumps({**manifest, "settings": Settings().as_dict()}).encode()


def _evaluation() -> dict[str, bytes]:
    """What an evaluation leaves in the folder of a run."""
    mean = {"value": 1.0, "low": 0.2, "high": 1.0}
    group = {"rate": 1.0, "right": 1, "images": 1, **mean}
    corloc = {name: {"mean": mean, "groups": {"x": group}} for name in ("per-class", "any-class")}
    figures = {
        "protocol": {"classes": {"x": "x"}},
        "corloc": corloc,
        "detection_rate": {"counts": [1, 2], "methods": {"RMI-SVM": [1.0, None]}},
        "confidence": {
            "calibration": {"confidence": [0.5], "correct": [1.0], "count": [1], "error": 0.5, "brier": 0.25},
            "average_precision": None,
            "share_right": 1.0,
        },
    }
    known = {"a.png": [TruthBox("x", (1.0, 1.0, 5.0, 6.0))]}
    return {path.name: path.read_bytes() for path in keep_evaluation(RunFolder(ROOM / "seed-run"), figures, known)}


def _saved_run() -> dict[str, bytes]:
    images = {"image_id": [1], "file": ["a.png"], "width": [40], "height": [48], "labels": [["x"]]}
    boxes = {"image_id": [1], "label": ["x"], "rank": [0], "kind": ["object"]}
    boxes |= {name: [1.0] for name in ("x1", "y1", "score", "confidence", "objectness")} | {"x2": [5.0], "y2": [6.0]}
    manifest = {"source": {"root": str(ROOM), "kind": "folders"}, "settings": {}, "classes": ["x"]}
    RunFolder.create(ROOM / "seed-run", manifest, images, boxes)
    return {path.name: path.read_bytes() for path in (ROOM / "seed-run").iterdir() if path.is_file()}


def run_mask(data: bytes) -> None:
    decode_mask(data.decode("latin-1"), 40, 60)


def slide(data: bytes) -> None:
    bags, _ = read_hdf5([_put("a.h5", data), _put("b.h5", data)])
    assert len(bags) == 2


def _slide(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=np.ones((6, 4), np.float32), chunks=(2, 4), compression="gzip")
        file.create_dataset("coords", data=np.ones((6, 2), np.int64))


def _mask() -> str:
    rows, columns = np.mgrid[:40, :60]
    return encode_mask((rows - 20) ** 2 + (columns - 30) ** 2 < 200)


def _coco_document(**box: Any) -> bytes:
    document = {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, **box}],
    }
    return json.dumps(document).encode()


def _data_set_file(path: Path) -> None:
    named = path.with_suffix(".npz")
    write_problem(Problem(np.eye(4), np.array([0, 0, 1, 1]), np.array([1, 0])), named)
    named.replace(path)


def _decision_log(path: Path) -> None:
    log = DecisionLog(path)
    known = {"rejected": [], "client": "c"}
    log.decide(("a.png", "x"), 1, "accept", boxes=[(1, 1, 5, 6)], version=0, key="k", **known)
    log.decide(("a.png", "x"), 1, "absent", boxes=[(1, 1, 5, 6)], version=1, key="l", to="y", **known)
    log.close()


def _result_line(path: Path) -> None:
    entry = {"task": asdict(plan(["RMI-SVM"], ["musk1"], "paper", 1)[0]), "result": asdict(Repeat([1.0], [0.1], [{}]))}
    path.write_text(json.dumps(entry) + "\n")


PICTURE = _png()
_SHARD = _shard()
_STORE_MANIFEST = (ROOM / "seed-store" / "manifest.json").read_bytes()
_RUN = _saved_run()
_EVALUATION = _evaluation()
_XML = b"""<annotation><filename>a.png</filename><object><name>cat</name><pose>Left</pose><truncated>0</truncated>
<difficult>0</difficult><bndbox><xmin>3</xmin><ymin>4</ymin><xmax>20</xmax><ymax>30</ymax></bndbox></object></annotation>"""
_TEXT = b'Bounding box for object 1 "PAScatLeft" (Xmin, Ymin) - (Xmax, Ymax) : (3, 4) - (20, 30)\n'

_TABLE = pa.table({"bag": [1, 1, 2], "label": [0, 0, 1], "x": [1.0, 2.0, 3.0]})

# Each target with a file that is right, or nearly so, to begin from.
TARGETS = {
    model: _bytes_of(lambda path: bagwise.save(RMISVC(epochs=1).fit(_BAGS, [0, 1, 0, 1]), path)),
    csv_labels: b"file,labels\na.png,cat;dog\nb.png,dog\n",
    json_lines: b'{"file": "a.png", "labels": ["cat", "dog"]}\n{"file": "b.png", "label": "none"}\n',
    flag_table: b"file,cat,dog\na.png,1,0\nb.png,1,1\n",
    image_folder: b"file_name,label,text\na.png,cat,one\nb.png,dog,two\n",
    fiftyone_labels: b'{"classes": ["cat", "dog"], "labels": {"a": 0, "b": [0, 1]}}',
    coco: _coco_document(bbox=[1, 2, 10, 12], iscrowd=0),
    coco_without_boxes: _coco_document(),
    voc_xml: _XML,
    voc_text: _TEXT,
    table: b"bag,label,x,y\n1,0,1.5,2\n1,0,3,4\n2,1,5,6\n",
    parquet_table: _bytes_of(lambda path: pq.write_table(_TABLE, path)),
    data_set: _bytes_of(_data_set_file),
    picture: PICTURE,
    store_index: _SHARD["index.parquet"],
    store_indexes: _bytes_of(FeatureStore(ROOM / "seed-store").index.write),
    store_features: _SHARD["features.npy"],
    store_boxes: _SHARD["boxes.npy"],
    store_manifest: _STORE_MANIFEST,
    reduction: _bytes_of(lambda p: Reduction(*(np.ones((2, 2), np.float32) for _ in range(4))).save(p)),
    run_manifest: _RUN["manifest.json"],
    run_settings: _settings(),
    run_boxes: _RUN["boxes.parquet"],
    run_evaluation: _EVALUATION["evaluation.json"],
    run_truth: _EVALUATION["truth.parquet"],
    decisions: _bytes_of(_decision_log),
    results: _bytes_of(_result_line),
    run_mask: _mask().encode(),
}  # fmt: skip


try:
    from pillow_heif import register_heif_opener
except ModuleNotFoundError:
    pass  # the extra heic is not installed: nothing reads such files
else:
    TARGETS[heic_picture] = _heic()


try:
    import h5py
except ModuleNotFoundError:
    pass  # the extra hdf5 is not installed
else:
    TARGETS[slide] = _bytes_of(_slide)


def survive(target, data: bytes) -> bool:
    """Feed bytes to a reader; say whether it took them. What it may not do comes out as an exception."""
    try:
        target(data)
    except (ValueError, OSError):
        return False
    return True
