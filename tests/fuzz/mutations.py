"""Small damage to a good file: what a careless or hostile hand, or a bad disk, would do."""

import random

TOKENS = [
    b"\x00", b"\xff\xff\xff\xff", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'"', b"'", b"<", b"&", b"\n", b",",
    b"9" * 30, b"[" * 2000, b"../../etc/passwd", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\xef\xbb\xbf", b"PK\x03\x04",
    b"true", b"0", b"\\u0000", b"cos\nsystem\n", b"__class__",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A copy with one to four changes."""
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
