"""Boxes in the formats that other tools read: COCO, PASCAL VOC, YOLO, Label Studio and FiftyOne."""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa

from bagwise._utils.atomic import new_folder
from bagwise.discovery.run.export.coco import write_coco
from bagwise.discovery.run.export.collect import Exported, collect, looked_at, trainable
from bagwise.discovery.run.export.fiftyone import write_fiftyone
from bagwise.discovery.run.export.labelstudio import write_label_studio
from bagwise.discovery.run.export.voc import write_voc
from bagwise.discovery.run.export.yolo import write_yolo, write_yolo_seg
from bagwise.discovery.run.folder import RunFolder

FORMATS: dict[str, Callable[..., list[str]]] = {
    "coco": write_coco,
    "voc": write_voc,
    "yolo": write_yolo,
    "yolo-seg": write_yolo_seg,
    "labelstudio": write_label_studio,
    "fiftyone": write_fiftyone,
}
FOR_TRAINING = ("voc", "yolo", "yolo-seg")  # with images and split, ready for a detector

__all__ = ["FORMATS", "Exported", "export_run"]


def export_run(
    run: RunFolder,
    format: str,
    out: str | Path,
    *,
    boxes: pa.Table | None = None,
    files: Collection[str] | None = None,
    min_confidence: float = 0.0,
    force: bool = False,
    background: bool = False,
) -> Exported:
    """Write the objects of a run to a new folder.

    Parameters
    ----------
    run : RunFolder
    format : {"coco", "voc", "yolo", "yolo-seg", "labelstudio", "fiftyone"}
    out : path
        A folder that is absent or empty; it appears only when everything is written.
    boxes : pyarrow.Table, optional
        The boxes to write instead of the run's own, such as the reviewed ones; the same columns.
    files : collection of str, optional
        The images to write; by default all of the run.
    min_confidence : float
        Leave out objects with less. VOC and YOLO keep no scores, so this is the place to choose.
    force : bool
        Replace a folder that is not empty.
    background : bool
        For training and COCO, also write images in which models found nothing, as images that show none of the
        classes.
        Where people gave the labels, images without are background in any case.

    Returns
    -------
    Exported
        Counts, and what the user should know: sentences to print.
    """
    if format not in FORMATS:
        raise ValueError(f"there is no format {format!r}; choose one of {', '.join(FORMATS)}")
    target = Path(out)
    _check_target(run, target, force)
    images = collect(run, run.boxes if boxes is None else boxes, min_confidence)
    if files is not None:
        images = [image for image in images if image.file in files]
    notes: list[str] = []
    background = background or not run.manifest.get("labels_found", False)
    if format in FOR_TRAINING:
        images, notes = trainable(images, background=background)
    elif format == "coco":  # its readers take an image without annotations for background too
        images, notes = looked_at(images, background=background)
    with new_folder(target) as aside:
        notes += FORMATS[format](run, images, aside, target)
        former = aside.with_name(f"{aside.name}-former")
        if target.exists():
            target.rename(former)  # whole, so that neither is ever seen in part
    shutil.rmtree(former, ignore_errors=True)
    return Exported(target, len(images), sum(len(image.names) for image in images), notes)


def _check_target(run: RunFolder, target: Path, force: bool) -> None:
    """Whether the export may be written there."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not force:
        raise ValueError(
            f"{target} exists and is not an empty folder; choose another, so that nothing is mixed up, "
            "or replace it with --force"
        )
    if not target.is_dir():
        raise ValueError(f"{target} is a file; choose a folder")
    for precious in (run.path, run.source_root):
        if precious.resolve().is_relative_to(target.resolve()):
            raise ValueError(f"{target} holds {precious}: it is not replaced; choose another folder")
