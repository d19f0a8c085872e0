"""A long text kept compressed in pieces, of which only those that changed are compressed anew.

What a window loads first is megabytes of text that differ by a few rows from what the last window loaded. The pieces
are raw deflate, each ended at a whole byte, so that laid end to end they are one stream (RFC 1951); with a header and
a checksum, which follows from those of the pieces, that is the ``deflate`` that every browser reads (RFC 1950).
"""

import zlib
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

LEVEL = 1  # a quarter of the default's time, a fifth more bytes
HEADER, END = b"\x78\x01", b"\x03\x00"
BASE = 65521  # of the checksum Adler-32


class Piece(NamedTuple):
    """Part of a text: compressed, and what its checksum follows from."""

    data: bytes
    length: int
    checksum: int


def compressed(text: str) -> Piece:
    """A part of the text."""
    data = text.encode()
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return Piece(stream.compress(data) + stream.flush(zlib.Z_FULL_FLUSH), len(data), zlib.adler32(data))


def end_to_end(pieces: Iterable[Piece]) -> bytes:
    """The whole text, compressed; `zlib.decompress` gives it back."""
    pieces = list(pieces)
    checksum = reduce(_joined, pieces, 1)
    return b"".join([HEADER, *(piece.data for piece in pieces), END, checksum.to_bytes(4, "big")])


def _joined(before: int, piece: Piece) -> int:
    """The checksum of a text and a piece after it (`adler32_combine` of zlib, which Python leaves out)."""
    low, high = before & 0xFFFF, before >> 16
    low_of_piece, high_of_piece = piece.checksum & 0xFFFF, piece.checksum >> 16
    sum_of_bytes = (low + low_of_piece - 1) % BASE
    sum_of_sums = (high + high_of_piece + piece.length * (low - 1)) % BASE
    return sum_of_sums << 16 | sum_of_bytes
