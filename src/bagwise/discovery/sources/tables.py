"""Tables of labels: comma-separated text and JSON-lines."""

import csv
import io
import json
from pathlib import Path, PurePath
from typing import Any

from bagwise.discovery.sources.images import EXTENSIONS
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.discovery.sources.rows import Row, Rows, read_rows

DELIMITERS = ",\t;"
LINES_LOOKED_AT = 50
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
JSON_LINES = (".jsonl", ".ndjson")


def read_table(file: Path, root: Path) -> ImageSet:
    """Read a table of images and labels.

    Parameters
    ----------
    file : Path
        ``.jsonl``, or text with commas, tabs or semicolons between the cells.
    root : Path
        Where the images are; their names are looked up from here.
    """
    if file.suffix.lower() in JSON_LINES:
        return read_rows(json_rows(file), root, "jsonl")
    return read_rows(text_rows(file), root, "csv")


def text_rows(file: Path) -> Rows:
    """The rows of a table with commas, tabs or semicolons; a first row without an image's name is the heading."""
    text = _text(file)
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise ValueError(f"row {reader.line_num} of {file.name} cannot be read: {error}") from None
    if not rows:
        raise ValueError(f"{file} is empty")
    named = not any(map(_is_image, rows[0][1]))
    width = max(len(row) for _, row in rows)
    heading = [cell.strip() for cell in rows[0][1]] if named else []
    # Cells beyond the heading belong to its last column: "a.png,cat,dog" under "file,labels".
    heading += [f"{heading[-1] if heading else 'column'} {number}" for number in range(len(heading) + 1, width + 1)]
    columns = _distinct(heading)
    body = rows[1:] if named else rows
    return Rows(file.name, columns, named, [(number, dict(zip(columns, row))) for number, row in body])


def _delimiter(text: str) -> str:
    """What stands between the cells: what leaves most images alone in theirs, or else what is most frequent.

    Judged by the first lines, where "a.png,cat;dog" may have more semicolons than commas.
    """
    first = text.split("\n", LINES_LOOKED_AT)[:LINES_LOOKED_AT]

    def images(delimiter: str) -> int:
        return sum(any(_is_image(cell) for cell in line.split(delimiter)) for line in first)

    return max(DELIMITERS, key=lambda delimiter: (images(delimiter), first[0].count(delimiter)))


def _is_image(cell: str) -> bool:
    return PurePath(cell.strip().strip('"')).suffix.lower() in EXTENSIONS


def json_rows(file: Path) -> Rows:
    """The rows of a JSON-lines file: an object in each line."""
    rows: list[tuple[int, Row]] = []
    for number, line in enumerate(_text(file).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"row {number} of {file.name} is not JSON: {error}") from None
        if not isinstance(entry, dict):
            raise ValueError(f"row {number} of {file.name} is not an object with a file name and labels")
        rows.append((number, {key.strip(): _cell(value) for key, value in entry.items()}))
    if not rows:
        raise ValueError(f"{file} is empty")
    columns = list(dict.fromkeys(key for _, row in rows for key in row))
    if not columns:
        raise ValueError(f"{file} names no image")
    return Rows(file.name, columns, True, rows)


def _cell(value: Any) -> str | list[str]:
    """A JSON value as the cell of a table: text, or the texts of a list; what is neither says nothing."""
    if isinstance(value, list):
        return [text for text in map(_cell, value) if isinstance(text, str)]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    return ""


def _text(file: Path) -> str:
    if file.suffix.lower() in SPREADSHEETS:
        raise ValueError(f"{file} is a spreadsheet: save it as CSV in UTF-8")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text: save it as UTF-8") from None


def _distinct(names: list[str]) -> list[str]:
    """Column names, of which no two are the same: the number stands for a name that is missing or taken."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        found.append(name if name and name not in found else f"column {number}")
    return found
