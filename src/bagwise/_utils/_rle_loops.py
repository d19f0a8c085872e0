"""Compiled part of `rle`: run lengths of a mask, and their characters."""

import numpy as np

from bagwise._utils.compiled import loop

MOST_CHARACTERS = 13  # of a length: five bits of a number of 64 bits each


@loop
def run_lengths(pixels, left, top, height, width):
    """Lengths of runs of zeros and of ones, in turns, down the columns of a mask: int64 (n,).

    The mask has ``height`` x ``width`` pixels and is zero but for ``pixels``, bool (rows, columns), which begin at
    column ``left`` and row ``top``.
    """
    rows, columns = pixels.shape
    lengths = np.empty((rows + 1) * columns + 2, np.int64)
    count, one, begun = 0, False, 0
    for c in range(columns):
        start = (left + c) * height + top
        for r in range(rows):
            if pixels[r, c] != one:
                lengths[count] = start + r - begun
                count, one, begun = count + 1, not one, start + r
        if one and (rows < height or c == columns - 1):  # what follows below, or to the right, is zero
            lengths[count] = start + rows - begun
            count, one, begun = count + 1, False, start + rows
    if begun < height * width:
        lengths[count] = height * width - begun
        count += 1
    return lengths[:count].copy()


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
    return text[:size].copy()
