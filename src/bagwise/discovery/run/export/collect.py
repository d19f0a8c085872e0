"""What all export formats start from: images with their objects, and names that no two images share."""

import csv
import io
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bagwise._utils.atomic import write_text
from bagwise._utils.names import ILLEGAL, is_reserved, same_file, shortened
from bagwise._utils.optional import require
from bagwise._utils.words import counted
from bagwise.discovery.run.export.polygons import polygons_of
from bagwise.discovery.run.folder import RunFolder, corners
from bagwise.discovery.sources.images import HEIC, read_image

VALIDATION_SHARE = 0.2
EXIF_ORIENTATION = 0x0112


@dataclass(frozen=True)
class ExportImage:
    """An image and the objects to be written for it; boxes of shape (n, 4) inside the image, best first."""

    image_id: int
    file: str
    width: int
    height: int
    labels: tuple[str, ...]
    names: tuple[str, ...]
    boxes: np.ndarray
    confidence: np.ndarray
    masks: tuple[str, ...] = ()

    def polygons(self) -> list[list[np.ndarray]]:
        """For each object the outlines of its mask, in pixels; none where it has no mask."""
        masks = self.masks or ("",) * len(self.names)
        return [polygons_of(mask, self.width, self.height) for mask in masks]

    @property
    def lacks_a_box(self) -> bool:
        """Whether one of its labels has none: a detector would learn that this object is background."""
        return not set(self.labels) <= set(self.names)


@dataclass(frozen=True)
class Exported:
    """What was written, and what the user should know about it."""

    path: Path
    images: int
    boxes: int
    notes: list[str]

    def told(self) -> str:
        """Counts, place and notes, a line each."""
        what = f"{counted(self.boxes, 'box', 'boxes')} in {counted(self.images, 'image')}"
        return "\n".join([f"{what} written to {self.path}", *self.notes])


def collect(run: RunFolder, boxes: pa.Table, min_confidence: float) -> list[ExportImage]:
    """All images of the run, each with its objects (no alternatives) of at least the confidence."""
    chosen = boxes.filter(
        pc.and_(pc.equal(boxes["kind"], "object"), pc.greater_equal(boxes["confidence"], min_confidence))
    )
    ids = chosen["image_id"].to_numpy()
    order = np.lexsort([-chosen["confidence"].to_numpy(), ids])
    starts = np.searchsorted(ids[order], np.arange(1, len(run.images) + 2))
    box, names, confidence = corners(chosen), chosen["label"].to_pylist(), chosen["confidence"].to_numpy()
    masks = chosen["mask"].to_pylist()
    images = []
    for row in run.images.to_pylist():
        members = order[starts[row["image_id"] - 1] : starts[row["image_id"]]]
        inside = np.clip(box[members], 0, [row["width"], row["height"], row["width"], row["height"]])
        kept = (inside[:, 2] - inside[:, 0] > 0) & (inside[:, 3] - inside[:, 1] > 0)
        images.append(
            ExportImage(
                row["image_id"],
                row["file"],
                row["width"],
                row["height"],
                tuple(row["labels"]),
                tuple(names[member] for member in members[kept]),
                inside[kept].astype(np.float64),
                confidence[members[kept]].astype(np.float64),
                tuple(masks[member] for member in members[kept]),
            )
        )
    return images


def looked_at(images: Iterable[ExportImage], *, background: bool) -> tuple[list[ExportImage], list[str]]:
    """The images of which it is known what they show, and a note on the others.

    Parameters
    ----------
    images : iterable of ExportImage
    background : bool
        Whether an image without labels shows none of the classes, and stays. It does where people gave the labels;
        where models did, that nothing was found does not say that nothing is there.
    """
    images = list(images)
    known = [image for image in images if background or image.labels]
    if len(known) == len(images):
        return known, []
    without = counted(len(images) - len(known), "image")
    return known, [
        f"{without} left out in which nothing was found: that does not mean that nothing is there "
        "(--background keeps them)"
    ]


def trainable(images: Iterable[ExportImage], *, background: bool) -> tuple[list[ExportImage], list[str]]:
    """The images a detector may be trained on, and notes on the others; ``background`` as for `looked_at`."""
    known, notes = looked_at(images, background=background)
    kept = [image for image in known if not image.lacks_a_box]
    if not kept:
        raise ValueError("no image has an object to write: lower --min-confidence, or accept some boxes first")
    left = len(known) - len(kept)
    if left:
        notes.append(
            f"{counted(left, 'image')} with a label but no box for it left out: training would take it for background"
        )
    return kept, notes


def flat_names(files: Sequence[str]) -> dict[str, str]:
    """One file name per image, without folders, whose stem no other has (whatever the letters' case).

    ``cat/my a.jpg`` becomes ``cat__my_a.jpg``; a second image that would be called so, ``cat__my_a-2.jpg``.
    """
    taken: set[str] = set()
    names = {}
    for file in files:
        path = PurePosixPath(file)
        # Blanks part the columns of VOC's lists; the others are illegal in XML or in the names of some system.
        stem = shortened(re.sub(rf"[\s{ILLEGAL}]", "_", "__".join([*path.parts[:-1], path.stem])))
        stem = f"_{stem}" if is_reserved(stem) else stem
        unique, number = stem, 1
        while same_file(unique) in taken:
            number += 1
            unique = f"{stem}-{number}"
        taken.add(same_file(unique))
        names[file] = unique + (".jpg" if path.suffix.lower() in HEIC else path.suffix)
    return names


def split(images: Sequence[ExportImage]) -> dict[str, list[ExportImage]]:
    """Training and validation images: of every class a fifth for validation, always the same ones.

    The choice hangs on the file names alone, so it does not change when boxes do.
    """
    groups: dict[tuple[str, ...], list[ExportImage]] = {}
    for image in images:
        groups.setdefault(image.labels[:1], []).append(image)
    validation: set[int] = set()
    for members in groups.values():
        count = max(round(VALIDATION_SHARE * len(members)), int(len(members) > 1))
        shuffled = sorted(members, key=lambda image: sha256(image.file.encode()).digest())
        validation.update(image.image_id for image in shuffled[:count])
    return {
        "train": [image for image in images if image.image_id not in validation],
        "val": [image for image in images if image.image_id in validation],
    }


def copy_images(run: RunFolder, images: Iterable[ExportImage], names: dict[str, str], folder: Path) -> None:
    """Copy the image files under their new names, upright, and HEIC files as JPEG.

    Boxes belong to the upright picture, and not every reader heeds the mark that says how to turn it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for image in images:
        source, target = run.image_path(image.file), folder / names[image.file]
        if not _turned_upright(source, target):
            shutil.copyfile(source, target)


def _turned_upright(source: Path, target: Path) -> bool:
    """Write the image without its EXIF orientation, if it has one that matters, or in a form that others read."""
    pil, ops = (require(f"PIL.{name}", extra="vision") for name in ("Image", "ImageOps"))
    if source.suffix.lower() in HEIC:
        pil.fromarray(read_image(source)).save(target, "JPEG", quality=95)
        return True
    with pil.open(source) as picture:
        if picture.getexif().get(EXIF_ORIENTATION, 1) == 1:
            return False
        ops.exif_transpose(picture).save(target, picture.format, quality=95)
    return True


def write_names(path: Path, names: dict[str, str]) -> None:
    """Which exported file came from which original."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", "original"])
    rows.writerows((new, old) for old, new in names.items())
    write_text(path, text.getvalue())
