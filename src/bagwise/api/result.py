"""What was found: the boxes of a run, and what can be done with them."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bagwise._utils.words import counted
from bagwise.api import others
from bagwise.discovery.evaluation.kept import keep_evaluation
from bagwise.discovery.evaluation.runs import evaluate_run, truth_for, truth_of
from bagwise.discovery.run.export import Exported
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.summary import class_rows, summary
from bagwise.report import write_report
from bagwise.report.contact_sheet import contact_sheet
from bagwise.review.decisions import read_decisions
from bagwise.review.export import export_reviewed
from bagwise.review.reviewed import reviewed_run

if TYPE_CHECKING:
    import pandas as pd


class FoundBox(NamedTuple):
    """An object: its image, its class, its corners in pixels (the far ones excluded) and the confidence in it."""

    file: str
    label: str
    x1: float
    y1: float
    x2: float
    y2: float
    confidence: float


class Discovery:
    """What a run found. What a person decided on the review page takes the place of the model's word.

    Parameters
    ----------
    run : path or RunFolder
        The folder that `bagwise.discover` or ``bagwise discover`` wrote.
    room : object, optional
        Kept as long as this object: the temporary folder of the run.

    Attributes
    ----------
    run : RunFolder
        The tables and settings of the run as the model left them.
    """

    def __init__(self, run: str | os.PathLike[str] | RunFolder, room: Any = None) -> None:
        self.run = run if isinstance(run, RunFolder) else RunFolder(Path(run))
        self._room = room

    def __repr__(self) -> str:
        objects = counted(len(self.boxes), "object")
        images = counted(len(self.run.images), "image")
        classes = counted(len(self.classes), "class", "classes")
        return f"Discovery({str(self.path)!r}): {objects} of {classes} in {images}"

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.run.path

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return list(self._reviewed().classes)

    @property
    def boxes(self) -> list[FoundBox]:
        """The objects, image by image, the most confident of an image first."""
        files = self.run.images["file"].to_pylist()
        rows = _chosen(self._reviewed()).to_pylist()
        rows.sort(key=lambda row: (row["image_id"], -row["confidence"]))
        sides = ("x1", "y1", "x2", "y2", "confidence")
        return [FoundBox(files[row["image_id"] - 1], row["label"], *(row[name] for name in sides)) for row in rows]

    def to_pandas(self, *, min_confidence: float = 0.0, alternatives: bool = False) -> pd.DataFrame:
        """The boxes as a data frame with a row for each.

        Parameters
        ----------
        min_confidence : float, default=0
            Leave out boxes with less.
        alternatives : bool, default=False
            Also list the boxes that a reviewer may prefer; the column ``kind`` tells them from objects.

        Returns
        -------
        pandas.DataFrame
            Columns ``file``, ``label``, ``x1``, ``y1``, ``x2``, ``y2``, ``confidence``, ``width`` and ``height`` (of
            the image), ``kind``, ``rank``, ``score``.
        """
        table = _chosen(self._reviewed(), min_confidence, alternatives)
        images = self.run.images.select(["image_id", "file", "width", "height"])
        frame = others.needed("pandas").DataFrame(table.to_pydict())
        frame = frame.merge(images.to_pandas(), on="image_id", how="left")
        names = ["file", "label", "x1", "y1", "x2", "y2", "confidence", "width", "height", "kind", "rank", "score"]
        return frame[names]

    def to_supervision(self, *, min_confidence: float = 0.0, masks: bool = False) -> dict[str, Any]:
        """The objects as ``supervision.Detections``, by the path of the image.

        Class ids are places in `classes`; ``sv.DetectionDataset(found.classes, list(d), d)`` makes a data set of
        them.

        Parameters
        ----------
        min_confidence : float, default=0
            Leave out objects with less.
        masks : bool, default=False
            Also decode the masks, a byte per pixel and object; an object without one gets its box.
        """
        run = self._reviewed()
        return others.to_supervision(run, _chosen(run, min_confidence), masks)

    def to_fiftyone(self, name: str | None = None, *, field: str = "bagwise", min_confidence: float = 0.0) -> Any:
        """The images, their labels and the objects as a ``fiftyone.Dataset``.

        Parameters
        ----------
        name : str, optional
            Of the data set; by default FiftyOne makes one up.
        field : str, default="bagwise"
            The field that the objects get; the image-level labels are in ``labels``.
        min_confidence : float, default=0
            Leave out objects with less.
        """
        run = self._reviewed()
        return others.to_fiftyone(run, _chosen(run, min_confidence), name, field)

    def show(self, *, per_class: int = 5, classes: Sequence[str] | None = None) -> Any:
        """A contact sheet: the most confident answers of every class, or of some, a row each.

        Parameters
        ----------
        per_class : int, default=5
        classes : sequence of str, optional

        Returns
        -------
        PIL.Image.Image
            A notebook shows it; elsewhere call its ``show()`` or ``save(path)``.
        """
        return contact_sheet(self._reviewed(), per_class=per_class, classes=classes)

    def export(
        self,
        format: str,
        output: str | os.PathLike[str],
        *,
        min_confidence: float = 0.0,
        checked_only: bool = False,
        force: bool = False,
        background: bool = False,
    ) -> Exported:
        """Write the objects for other tools.

        Parameters
        ----------
        format : {"coco", "voc", "yolo", "yolo-seg", "labelstudio", "fiftyone"}
        output : path
            A folder that is absent or empty.
        min_confidence : float, default=0
            Leave out objects with less.
        checked_only : bool, default=False
            Leave out images that were not checked on the review page.
        force : bool, default=False
            Replace what is in the folder.
        background : bool, default=False
            For training, also write images in which models found nothing, as images that show none of the classes.

        Returns
        -------
        Exported
            Counts, and sentences that the user should know.
        """
        return export_reviewed(
            self.run,
            read_decisions(self.path),
            format,
            Path(output),
            checked_only=checked_only,
            min_confidence=min_confidence,
            force=force,
            background=background,
        )

    def report(self, output: str | os.PathLike[str] | None = None) -> Path:
        """Write a page about the run: one HTML file, by default ``report.html`` in the run folder."""
        return write_report(self.run, None if output is None else Path(output))

    def evaluate(
        self,
        truth: str | os.PathLike[str],
        *,
        split: str | None = None,
        protocol: str = "labels",
        lists: str | os.PathLike[str] | None = None,
        against: Sequence[Discovery | RunFolder] = (),
    ) -> dict[str, Any]:
        """Compare the objects with boxes that people drew; the figures are kept in the run folder for the report.

        Parameters
        ----------
        truth : path
            A VOC or COCO folder, or a COCO file, wherever it lies.
        split : str, optional
            Which part of a VOC or COCO folder.
        protocol : {"labels", "classes", "pascal06-all", "pascal07-all", "voc07-6x2"}, default="labels"
            Which images are asked.
        lists : path, optional
            For "voc07-6x2": the folder of image lists.
        against : sequence of Discovery
            Other runs on the same images, for the detection rates.

        Returns
        -------
        dict
            CorLoc with intervals, detection rates, and how far the confidence can be trusted.
        """
        source = truth_for(self.run, Path(truth), split)
        runs = [other.run if isinstance(other, Discovery) else other for other in against]
        where = None if lists is None else Path(lists)
        figures = evaluate_run(self.run, source, name=protocol, lists=where, against=runs)
        keep_evaluation(self.run, figures, truth_of(self.run, source))
        return figures

    def summary(self, *, min_confidence: float = 0.0) -> str:
        """What was found, in a few lines: a table of the classes, what was left out, how long it took."""
        return summary(self._reviewed(), min_confidence)

    def as_document(self, *, min_confidence: float = 0.0) -> dict[str, Any]:
        """Everything that was found, ready for JSON."""
        chosen = [box._asdict() for box in self.boxes if box.confidence >= min_confidence]
        return {
            "format": 1,
            "run": str(self.path),
            "root": str(self.run.source_root),
            "images": len(self.run.images),
            "classes": self.classes,
            "objects": chosen,
            "problems": self.run.manifest["problems"],
            "timings": self.run.manifest["timings"],
        }

    def _repr_html_(self) -> str:
        """For notebooks: the classes in a table, and a contact sheet."""
        heads, *rows = class_rows(self._reviewed())
        table = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        page = f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>"
        if not self.boxes:
            return page
        data = io.BytesIO()
        self.show().save(data, "JPEG", quality=80)
        return (
            f'{page}<img alt="contact sheet" src="data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}">'
        )

    def _reviewed(self) -> RunFolder:
        """The run with the decisions in place."""
        return reviewed_run(self.run, read_decisions(self.path))


def _chosen(run: RunFolder, min_confidence: float = 0.0, alternatives: bool = False) -> pa.Table:
    """The rows of the table of boxes that were asked for."""
    wanted = pc.greater_equal(run.boxes["confidence"], pa.scalar(min_confidence, pa.float32()))
    if not alternatives:
        wanted = pc.and_(wanted, pc.equal(run.boxes["kind"], "object"))
    return run.boxes.filter(wanted)
