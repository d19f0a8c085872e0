"""Compiled part of `rle`: the characters of run lengths."""

import numpy as np

from bagwise._utils.compiled import loop

MOST_CHARACTERS = 13  # of a length: five bits of a number of 64 bits each


@loop
def characters(lengths):
    """The text of run lengths, int64 (n,), in ASCII, uint8 (m,)."""
    text = np.empty(MOST_CHARACTERS * len(lengths), np.uint8)
    size = 0
    for place in range(len(lengths)):
        value = lengths[place] - lengths[place - 2] if place > 2 else lengths[place]
        more = True
        while more:
            group, value = value & 0x1F, value >> 5
            more = value != (-1 if group & 0x10 else 0)
            text[size] = 48 + (group | 0x20 if more else group)
            size += 1
    return text[:size]
