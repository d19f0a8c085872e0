"""File names that every system accepts and keeps apart, and names from a file that stay inside a folder.

Windows reserves names and characters, macOS and Windows take ``Cat`` and ``cat`` for the same file and ``é`` in either
of its spellings, and no system takes more than 255 bytes. A run made on one of them is read on the others.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import PurePath, PurePosixPath
from unicodedata import normalize

ILLEGAL = r'\x00-\x1f\x7f/\\:*?"<>|'
# Devices of Windows, also with an extension.
RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
# Leaves room for an extension, for the name of a file aside, and for a deep folder under Windows' old limit of 260.
MOST_BYTES = 120


def is_reserved(name: str) -> bool:
    """Whether Windows takes the name for a device."""
    return RESERVED.fullmatch(name) is not None


def safe_name(label: str) -> str:
    """A file name for a label: itself where possible, percent-escapes where a file system would object."""
    if not label:
        raise ValueError("a class name is empty")
    escaped = re.sub(rf"[{ILLEGAL}%]|^\.|[. ]$", lambda match: f"%{ord(match[0]):02X}", label)
    if is_reserved(escaped):
        escaped = f"%{ord(escaped[0]):02X}{escaped[1:]}"
    return shortened(escaped)


def shortened(name: str) -> str:
    """The name, or of a long one the beginning and a mark that no other long name has."""
    if len(name.encode("utf-8", "surrogatepass")) <= MOST_BYTES:
        return name
    mark = _mark(name)
    kept = name.encode("utf-8", "surrogatepass")[: MOST_BYTES - len(mark)].decode("utf-8", "ignore")
    return kept + mark


def distinct_names(labels: Iterable[str]) -> dict[str, str]:
    """A file name for each label; two that differ only in case or in the spelling of an accent are told apart."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in sorted(set(labels)):
        name = safe_name(label)
        if same_file(name) in taken:
            name += _mark(label)
        taken.add(same_file(name))
        names[label] = name
    return names


def same_file(name: str) -> str:
    """What two names have in common that a file system may take for one."""
    return normalize("NFC", normalize("NFC", name).casefold())


def stays_inside(name: str, system: type[PurePath] = PurePath) -> bool:
    """Whether a relative name leads to something inside the folder it starts from, by the rules of this system."""
    for path in (PurePosixPath(name), system(name)):
        if path.drive or path.root or ".." in path.parts or not path.parts:
            return False
    return True


def _mark(text: str) -> str:
    return "~" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
