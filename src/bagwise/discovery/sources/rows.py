"""Which columns of a table name the image and its labels, and what the cells say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from bagwise.discovery.sources.images import EXTENSIONS
from bagwise.discovery.sources.imageset import ImageSet, Labelling

FILE_COLUMN = re.compile(r"(image|img|photo|picture)?[ _-]?(file|filename|file[ _-]name|path|filepath|name)|image|img")
LABEL_COLUMN = re.compile(r"(label|class|category|categorie|tag|target)(e?s|[ _-]?name)?[ _-]?\d*")
COUNT_COLUMN = re.compile(r"id|index|no\.?|number|nr\.?|#|row|column 1|unnamed: 0")
SEPARATORS = re.compile(r"[;|,\n]")
YES = frozenset({"1", "1.0", "true", "yes", "y", "x"})
NO = frozenset({"0", "0.0", "false", "no", "n"})
ABSENT = "-1"  # in tables that say 1 or -1

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """A table of labels.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    columns : list of str
        Names of the columns, or their numbers from 1 where the table has no heading.
    named : bool
        Whether there is a heading.
    rows : list of (int, mapping)
        The number of each row in the file, and its cells by column: text, or a list of texts.
    """

    name: str
    columns: list[str]
    named: bool
    rows: list[tuple[int, Row]]

    def texts(self, column: str) -> list[tuple[int, str]]:
        """The cells of a column that hold one text, with their rows; empty ones are left out."""
        cells = ((number, row.get(column)) for number, row in self.rows)
        return [(number, cell.strip()) for number, cell in cells if isinstance(cell, str) and cell.strip()]


def read_rows(table: Rows, root: Any, kind: str) -> ImageSet:
    """The images and labels of a table."""
    file = file_column(table)
    others = [name for name in table.columns if name != file]
    words = _label_columns(table, others)
    flags = [] if words else _flag_columns(table, others)
    if not words and not flags:
        words = _columns_of_words(table, others)
    found = Labelling(root)
    for number, row in table.rows:
        name, where = row.get(file), f"row {number} of {table.name}"
        if not isinstance(name, str):
            name = ""
        if flags:
            says = {column: _flag(row.get(column)) for column in flags}
            shown = [column for column, says_so in says.items() if says_so]
            found.add(name, shown, where, [column for column, says_so in says.items() if says_so is None])
        else:
            found.add(name, _words(row, words), where)
    return found.image_set(kind)


def file_column(table: Rows) -> str:
    """The column that names images: by what its cells look like, or else by its name, or else the first."""
    shares = {
        name: _share(table, name, lambda text: PurePath(text).suffix.lower() in EXTENSIONS) for name in table.columns
    }
    best = max(table.columns, key=lambda name: shares[name])
    if shares[best] > 0.5:
        return best
    by_name = [name for name in table.columns if table.named and FILE_COLUMN.fullmatch(name.strip().casefold())]
    return by_name[0] if by_name else best if shares[best] else table.columns[0]


def _label_columns(table: Rows, columns: Sequence[str]) -> list[str]:
    """Columns that are called label, labels, class, label 2 and the like."""
    return [name for name in columns if table.named and LABEL_COLUMN.fullmatch(name.strip().casefold())]


def _flag_columns(table: Rows, columns: Sequence[str]) -> list[str]:
    """Columns that are classes, and say by 1 or 0 whether an image shows them."""
    if not table.named:
        return []
    found = []
    for name in columns:
        cells = table.texts(name)
        if _is_count(name, [text for _, text in cells]):
            continue
        values = {text.casefold() for _, text in cells}
        allowed = YES | ({ABSENT} if values <= YES | {ABSENT} else NO)
        if not cells or _share(table, name, lambda text: text.casefold() in YES | NO | {ABSENT}) < 0.5:
            continue
        strange = next(((row, text) for row, text in cells if text.casefold() not in allowed), None)
        if strange is not None:
            row, text = strange
            raise ValueError(f"row {row} of {table.name}: the column {name!r} says {text!r}, where 0 or 1 is expected")
        found.append(name)
    return found


def _is_count(name: str, texts: Sequence[str]) -> bool:
    """Whether a column numbers the rows, as an index that was written along does."""
    distinct = len(texts) > 1 and all(text.isdecimal() for text in texts) and len(set(texts)) == len(texts)
    return distinct and (len(texts) > 2 or COUNT_COLUMN.fullmatch(name.strip().casefold()) is not None)


def _columns_of_words(table: Rows, columns: Sequence[str]) -> list[str]:
    """All columns that hold words; numbers such as ids and sizes are no labels."""
    words = [name for name in columns if _share(table, name, _is_number) < 1]
    if words:
        return words
    said = f"its columns are {', '.join(table.columns)}" if table.named else "it has no heading"
    raise ValueError(
        f"{table.name} has no column of labels ({said}): name one 'label', or one for each class with 0 or 1 in it"
    )


def _share(table: Rows, column: str, is_so: Any) -> float:
    """Share of the filled cells of which something is true; 0 for none that holds text."""
    lists = any(isinstance(row.get(column), list) for _, row in table.rows)
    cells = table.texts(column)
    return 0.0 if lists or not cells else sum(map(bool, (is_so(text) for _, text in cells))) / len(cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _flag(cell: Any) -> bool | None:
    """Whether the class is shown; None where the cell is empty, which says nothing."""
    text = cell.strip().casefold() if isinstance(cell, str) else ""
    return None if not text else text in YES


def _words(row: Row, columns: Sequence[str]) -> list[str] | None:
    """The labels of a row; None when every cell is empty, which says nothing, as an empty list does."""
    found: list[str] = []
    said = False
    for name in columns:
        cell = row.get(name)
        if isinstance(cell, list):
            found += cell
            said = True
        elif isinstance(cell, str) and cell.strip():
            found += split_cell(cell)
            said = True
    return found if said else None


def split_cell(cell: str) -> list[str]:
    """The labels in a cell: one, or several between commas, semicolons or bars, as a list in brackets if you like."""
    text = cell.strip()
    if text[:1] == "[" and text[-1:] == "]":
        text = text[1:-1]
    return [part.strip().strip("'\"").strip() for part in SEPARATORS.split(text)]
