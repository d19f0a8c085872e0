"""Boxes in the formats that other tools read: COCO, PASCAL VOC, YOLO and Label Studio."""

import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa

from bagwise.discovery.export.coco import write_coco
from bagwise.discovery.export.collect import Exported, collect, trainable
from bagwise.discovery.export.labelstudio import write_label_studio
from bagwise.discovery.export.voc import write_voc
from bagwise.discovery.export.yolo import write_yolo
from bagwise.discovery.runfolder import RunFolder

FORMATS: dict[str, Callable[..., list[str]]] = {
    "coco": write_coco,
    "voc": write_voc,
    "yolo": write_yolo,
    "labelstudio": write_label_studio,
}
FOR_TRAINING = ("voc", "yolo")  # with images and split, ready for a detector

__all__ = ["FORMATS", "Exported", "export_run"]


def export_run(
    run: RunFolder,
    format: str,
    out: str | Path,
    *,
    boxes: pa.Table | None = None,
    files: Collection[str] | None = None,
    min_confidence: float = 0.0,
) -> Exported:
    """Write the objects of a run to a new folder.

    Parameters
    ----------
    run : RunFolder
    format : {"coco", "voc", "yolo", "labelstudio"}
    out : path
        A folder that is absent or empty; it appears only when everything is written.
    boxes : pyarrow.Table, optional
        The boxes to write instead of the run's own, such as the reviewed ones; the same columns.
    files : collection of str, optional
        The images to write; by default all of the run.
    min_confidence : float
        Leave out objects with less. VOC and YOLO keep no scores, so this is the place to choose.

    Returns
    -------
    Exported
        Counts, and what the user should know: sentences to print.
    """
    if format not in FORMATS:
        raise ValueError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")
    target = Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not an empty folder; choose another, so that nothing is mixed up")
    images = collect(run, run.boxes if boxes is None else boxes, min_confidence)
    if files is not None:
        images = [image for image in images if image.file in files]
    images, notes = trainable(images) if format in FOR_TRAINING else (images, [])
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".writing-", dir=target.parent))
    try:
        notes += FORMATS[format](run, images, aside, target)
        if target.exists():
            target.rmdir()
        aside.chmod(0o755)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Exported(target, len(images), sum(len(image.names) for image in images), notes)
