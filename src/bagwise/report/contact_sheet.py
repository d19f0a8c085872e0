"""A contact sheet: images in rows by class, with the boxes that were found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bagwise._utils.atomic import replacing
from bagwise._utils.optional import require
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.images import read_image
from bagwise.report.pictures import Answer, answers_by_class

CELL = (240, 180)  # pixels of one image
MARGIN = 8
FOUND, RIGHT, WRONG = "#ffb000", "#3ddc84", "#ff5a5f"


def write_contact_sheet(run: RunFolder, path: Path, truth: Any = None, **chosen: Any) -> Path:
    """Write a `contact_sheet` as JPEG or PNG."""
    sheet = contact_sheet(run, truth, **chosen)
    with replacing(path) as aside:
        sheet.save(aside, "PNG" if path.suffix == ".png" else "JPEG", quality=85)
    return path


def contact_sheet(run: RunFolder, truth: Any = None, per_class: int = 5, classes: Sequence[str] | None = None) -> Any:
    """Draw the most confident answers of every class, or of some, one row each.

    Parameters
    ----------
    truth : boxes per file, as `bagwise.discovery.evaluation.runs.truth_of` returns them, optional; green is
        then right and red wrong

    Returns
    -------
    PIL.Image.Image
    """
    drawing, images = require("PIL.ImageDraw", extra="vision"), require("PIL.Image", extra="vision")
    every = answers_by_class(run, truth, {})
    rows = {label: every[label] for label in classes or every if every[label]}
    if not rows:
        raise ValueError(f"{run.path} found nothing of these classes: there is no image to show")
    columns = min(per_class, max(len(answers) for answers in rows.values()))
    width, height = (side + MARGIN for side in CELL)
    sheet = images.new("RGB", (columns * width + MARGIN, len(rows) * (height + 16) + MARGIN), "white")
    draw = drawing.Draw(sheet)
    for row, (label, answers) in enumerate(rows.items()):
        top = MARGIN + row * (height + 16)
        draw.text((MARGIN, top), _title(label, answers), fill="black")
        for column, answer in enumerate(answers[:columns]):
            sheet.paste(_cell(run, answer, images, drawing), (MARGIN + column * width, top + 14))
    return sheet


def _title(label: str, answers: Sequence[Answer]) -> str:
    judged = [answer.right for answer in answers if answer.right is not None]
    score = f": {sum(judged)} of {len(judged)} right" if judged else ""
    return f"{label}{score}"


def _cell(run: RunFolder, answer: Answer, images: Any, drawing: Any) -> Any:
    picture = images.fromarray(read_image(run.image_path(answer.file)))
    scale = min(CELL[0] / picture.width, CELL[1] / picture.height)
    picture = picture.resize((round(picture.width * scale), round(picture.height * scale)))
    colour = FOUND if answer.right is None else RIGHT if answer.right else WRONG
    corners = [float(side) * scale for side in answer.box]
    draw = drawing.Draw(picture)
    draw.rectangle(corners, outline="black", width=5)
    draw.rectangle(corners, outline=colour, width=3)
    return picture
