"""The report's pictures: which ones, small, inside the page, with their boxes drawn over them."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bagwise._utils.optional import require
from bagwise._utils.rle import decode_mask
from bagwise.discovery.run.folder import RunFolder, corners
from bagwise.discovery.sources.images import ImageError, read_image
from bagwise.metrics.corloc import boxes_of, iou
from bagwise.metrics.truth import TruthBox
from bagwise.report.text import escape

LONG_SIDE = 320  # pixels; about 15 KB as JPEG
QUALITY = 72
BUDGET = 240  # gallery pictures in all, so that the page stays below some 10 MB for any run
MOST_PER_ROW = 6
MASK_COLOUR = (255, 140, 0)  # that of the found box which it belongs to


@dataclass(frozen=True)
class Answer:
    """An image and what was found in it for one class."""

    file: str
    width: int
    height: int
    label: str
    box: np.ndarray
    confidence: float
    right: bool | None
    mask: str = ""


def answers_by_class(
    run: RunFolder, truth: Mapping[str, Sequence[TruthBox]] | None, classes: Mapping[str, str]
) -> dict[str, list[Answer]]:
    """Every class's answers, the most confident first.

    ``classes`` names the true class of a label where it is another ("car" for "car Left").
    """
    images = run.images.to_pylist()
    boxes = corners(run.boxes)
    columns = (run.boxes[name].to_pylist() for name in ("image_id", "label", "rank", "confidence", "mask"))
    found: dict[str, list[Answer]] = {label: [] for label in run.classes}
    for row, (number, label, rank, confidence, mask) in enumerate(zip(*columns, strict=True)):
        if rank:
            continue
        image = images[number - 1]
        right = None
        objects = boxes_of((truth or {}).get(image["file"], ()), classes.get(label, label))
        if len(objects):
            right = bool((iou(boxes[row], objects) > 0.5).any())
        size = image["width"], image["height"]
        found[label].append(Answer(image["file"], *size, label, boxes[row], confidence, right, mask))
    for answers in found.values():
        answers.sort(key=lambda answer: (-answer.confidence, answer.file))
    return found


def rows_of_gallery(answers: Sequence[Answer], per_row: int) -> dict[str, list[Answer]]:
    """The most confident answers, the least confident ones, and between them those nearest one half; none twice.

    The headings speak of confidence, not of quality: the least confident answer of an easy class is often right.
    """
    most = list(answers[:per_row])
    rest = list(answers[per_row:])
    least = rest[::-1][:per_row]
    middle = rest[: len(rest) - len(least)]
    between = sorted(middle, key=lambda answer: abs(answer.confidence - 0.5))[:per_row]
    return {"Most confident": most, "In between": between, "Least confident": least}


def per_row(classes: int) -> int:
    """How many pictures a row may have for this many classes; 0 when not every class can have a gallery."""
    return min(MOST_PER_ROW, BUDGET // (3 * max(classes, 1)))


def thumbnail(run: RunFolder, file: str, long_side: int = LONG_SIDE) -> str | None:
    """The image as a data URL of a small JPEG, or None when it cannot be read any more."""
    pil = require("PIL.Image", extra="vision")
    try:
        image = pil.fromarray(read_image(run.image_path(file)))
    except ImageError:
        return None
    image.thumbnail((long_side, long_side))
    data = io.BytesIO()
    image.save(data, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def mask_picture(mask: str, size: tuple[int, int], long_side: int = LONG_SIDE) -> str:
    """A mask of an image of this (width, height) as a data URL of a small PNG, clear around it."""
    pil = require("PIL.Image", extra="vision")
    width, height = size
    image = pil.fromarray(decode_mask(mask, height, width).astype(np.uint8), "P")
    image.putpalette([0, 0, 0, *MASK_COLOUR])
    image.thumbnail((long_side, long_side), pil.Resampling.NEAREST)
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True, transparency=0, bits=1)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def picture(
    source: str | None,
    size: tuple[int, int],
    boxes: Sequence[tuple[str, Sequence[float]]],
    *,
    alt: str,
    caption: str,
    state: str = "",
    mask: str = "",
) -> str:
    """A figure: the image, a mask and boxes over it as (css class, corners), and a caption (HTML)."""
    width, height = size
    if source is None:
        inner = f'<div class="missing" role="img" aria-label="{escape(alt)}">image not found</div>'
    else:
        # Each box twice: a dark line under the coloured one, so that it shows on any image.
        pairs = [(kind, _place(box)) for css, box in boxes for kind in ("under", css)]
        shapes = "".join(f'<rect class="{kind}" {place}/>' for kind, place in pairs)
        overlay = f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">{shapes}</svg>'
        ratio = f'width="{width}" height="{height}"'
        tint = f'<img class="mask" src="{mask_picture(mask, size)}" alt="">' if mask else ""
        inner = f'<img src="{source}" {ratio} alt="{escape(alt)}" decoding="async">{tint}{overlay}'
    return f'<figure class="{state}"><div class="frame">{inner}</div><figcaption>{caption}</figcaption></figure>'


def _place(box: Sequence[float]) -> str:
    x1, y1, x2, y2 = (float(value) for value in box)
    return f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}"'
