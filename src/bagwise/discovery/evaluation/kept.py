"""What an evaluation leaves in the run folder, for the report: ``evaluation.json`` and ``truth.parquet``."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bagwise._utils.atomic import write_text
from bagwise.discovery.run.folder import CORNERS, RunFolder, as_table, read_parquet, write_parquet
from bagwise.metrics.truth import TruthBox

_sides = [(side, pa.float32()) for side in CORNERS]
TRUTH = pa.schema([("image_id", pa.int32()), ("label", pa.string()), *_sides, ("hard", pa.bool_())])


def keep_evaluation(
    run: RunFolder, evaluation: Mapping[str, Any], known: Mapping[str, Sequence[TruthBox]]
) -> tuple[Path, Path]:
    """Write the evaluation and the true boxes of the run's images."""
    figures, boxes = run.path / "evaluation.json", run.path / "truth.parquet"
    rows: dict[str, list[Any]] = {name: [] for name in TRUTH.names}
    for image, file in enumerate(run.images["file"].to_pylist(), start=1):
        for item in known.get(file, ()):
            values = (image, item.label, *item.box, bool(item.difficult or item.truncated))
            for name, value in zip(TRUTH.names, values, strict=True):
                rows[name].append(value)
    write_parquet(boxes, as_table(rows, TRUTH, "true boxes"))
    write_text(figures, json.dumps(evaluation, indent=1, ensure_ascii=False) + "\n")
    return figures, boxes


def kept_evaluation(run: RunFolder) -> dict[str, Any] | None:
    """The evaluation kept in the run folder, if there is one."""
    path = run.path / "evaluation.json"
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable as JSON ({error}): evaluate the run again") from error


def kept_truth(run: RunFolder) -> dict[str, list[TruthBox]] | None:
    """The true boxes kept in the run folder, per file, if there are any."""
    path = run.path / "truth.parquet"
    if not path.exists():
        return None
    files = run.images["file"].to_pylist()
    truth: dict[str, list[TruthBox]] = {}
    table = read_parquet(path, TRUTH)
    images = table["image_id"].to_numpy()
    if len(images) and not (images.min() >= 1 and images.max() <= len(files)):
        raise ValueError(f"{path} names images that the run does not have: evaluate the run again")
    for row in table.to_pylist():
        box = tuple(row[side] for side in CORNERS)
        truth.setdefault(files[row["image_id"] - 1], []).append(TruthBox(row["label"], box, difficult=row["hard"]))
    return truth
