"""Damage to a good file: what a careless or hostile hand, or a bad disk, would do.

Half of it changes bytes. The other half opens the file first and changes what is inside (a value of a JSON document, a
column of a table, a member of an archive, the header of an array), since changed bytes alone seldom get past a
checksum or a parser.
"""

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TOKENS = [
    b"\x00", b"\xff\xff\xff\xff", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'"', b"'", b"<", b"&", b"\n", b",",
    b"9" * 30, b"[" * 2000, b"../../etc/passwd", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\xef\xbb\xbf", b"PK\x03\x04",
    b"true", b"0", b"\\u0000", b"cos\nsystem\n", b"__class__",
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(2**70), 0.5, float("nan"), float("inf"), "", "x", "1", "\u202e<b>",
    "../../x", "\x00", "\ud800", [], [1], [[1, 2], [3]], {}, {"x": 1}, "9" * 400,
]  # fmt: skip
KINDS = [pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.bool_(), pa.null()]
HEADERS = [
    b"'<f8'", b"'|O'", b"'<U4'", b"'>i2'", b"'|b1'", b"'<c16'", b"[('a', '<f4')]", b"(0,)", b"(2, 3)",
    b"(9999999, 9999)", b"(-1, 2)", b"()", b"True",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A copy with some changes, to its bytes or to what is inside."""
    for begins, change in INSIDE.items():
        if data.startswith(begins) and rng.random() < 0.5:
            try:
                return change(data, rng)
            except Exception:  # what was damaged before cannot be opened, for whatever reason: its bytes then
                continue
    return bytes_changed(data, rng)


def bytes_changed(data: bytes, rng: random.Random) -> bytes:
    """One to four changes of bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(changed))
        kind = rng.randrange(6)
        if kind == 0 and changed:
            changed[at % len(changed)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at:]
        elif kind == 2:
            del changed[at : at + rng.randint(1, 16)]
        elif kind == 3:
            changed[at:at] = rng.choice(TOKENS)
        elif kind == 4:
            token = rng.choice(TOKENS)
            changed[at : at + len(token)] = token
        else:
            start = rng.randint(0, len(changed))
            changed[at:at] = changed[start : start + rng.randint(1, 64)]
    return bytes(changed)


def json_changed(data: bytes, rng: random.Random) -> bytes:
    """One or two values of a JSON document, or of the lines of one, taken away or replaced by odd ones."""
    text = data.decode()
    try:
        document, lines = json.loads(text), None
    except ValueError:
        lines = text.splitlines()
        at = rng.randrange(len(lines))
        document = json.loads(lines[at])
    for _ in range(rng.randint(1, 2)):
        document = _value_changed(document, rng)
    if lines is None:
        return json.dumps(document).encode()
    lines[at] = json.dumps(document)
    return "\n".join(lines).encode() + b"\n"


def _value_changed(value: Any, rng: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice(ODD)
    keys: Any = list(value) if isinstance(value, dict) else range(len(value))
    key = rng.choice(keys)
    kind = rng.randrange(8)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, dict):
        value[rng.choice(["x", "", "__class__", key + "2"])] = value[key]
    elif kind == 1:
        value.append(value[key])
    else:
        value[key] = _value_changed(value[key], rng)
    return value


def archive_changed(data: bytes, rng: random.Random) -> bytes:
    """A member of a zip file damaged, taken away, renamed or doubled; all checksums fit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = rng.randrange(len(members))
    name, content = members[at]
    kind = rng.randrange(10)
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at] = rng.choice([name + "x", "../" + name, rng.choice(members)[0]]), content
    elif kind == 2:
        members.append((name, content))
    else:
        members[at] = name, damaged(content, rng)
    whole = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(whole, "w") as archive:  # it warns of double names
        for name, content in members:
            archive.writestr(name, content)
    return whole.getvalue()


def array_changed(data: bytes, rng: random.Random) -> bytes:
    """A NumPy file with another type, shape or order in its header."""
    length = int.from_bytes(data[8:10], "little")
    header = data[10 : 10 + length]
    part = rng.choice([b"'descr': ", b"'shape': ", b"'fortran_order': "])
    start = header.index(part) + len(part)
    end = header.index(b")" if part == b"'shape': " else b",", start) + (part == b"'shape': ")
    header = header[:start] + rng.choice(HEADERS) + header[end:]
    return data[:8] + len(header).to_bytes(2, "little") + header + data[10 + length :]


def table_changed(table: pa.Table, rng: random.Random) -> pa.Table:
    """A column taken away, renamed, of another type, or with an odd or missing value; or rows taken away or doubled."""
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    kind = rng.randrange(6)
    if kind == 0:
        return table.remove_column(at)
    if kind == 1:
        return table.append_column(rng.choice([name, name + "2"]), column)
    if kind == 2:
        return pa.concat_tables([table, table]) if rng.random() < 0.5 else table.slice(0, rng.randrange(len(table) + 1))
    if kind == 3:
        return table.set_column(at, name, column.cast(rng.choice(KINDS), safe=False))
    values = column.to_pylist()
    values[rng.randrange(len(values))] = None if kind == 4 else rng.choice(ODD)
    return table.set_column(at, name, pa.array(values, column.type if rng.random() < 0.8 else None))


def parquet_changed(data: bytes, rng: random.Random) -> bytes:
    """A Parquet file with a changed table."""
    whole = io.BytesIO()
    pq.write_table(table_changed(pq.read_table(io.BytesIO(data)), rng), whole)
    return whole.getvalue()


def arrow_changed(data: bytes, rng: random.Random) -> bytes:
    """An Arrow file with a changed table, or with changed notes beside it."""
    table = pa.ipc.open_file(data).read_all()
    notes = dict(table.schema.metadata or {})
    if notes and rng.random() < 0.3:
        key = rng.choice(sorted(notes))
        notes[key] = damaged(notes[key], rng)
    else:
        table = table_changed(table, rng)
    whole = io.BytesIO()
    table = table.replace_schema_metadata(notes)
    with pa.ipc.new_file(whole, table.schema) as file:
        file.write_table(table)
    return whole.getvalue()


# By how a file of the kind begins.
INSIDE: dict[bytes, Callable[[bytes, random.Random], bytes]] = {
    b"PK": archive_changed,
    b"\x93NUMPY": array_changed,
    b"PAR1": parquet_changed,
    b"ARROW1": arrow_changed,
    b"{": json_changed,
    b"[": json_changed,
}
