"""Masks as COCO's compressed run lengths: a short text, read by pycocotools and by every tool that reads COCO.

Pixels are counted column by column; lengths of runs of zeros and of ones take turns, zeros first. From the fourth on,
a length is written as its difference from the one two places before, in groups of five bits from the lowest up: a
sixth bit says that more groups follow, and 48 is added, which makes every group a printable character.
"""

import numpy as np

# More than any image has; a text from a stranger may say anything.
MOST_BITS = 40
MOST_PIXELS = 1 << 28


def encode_mask(mask: np.ndarray, left: int = 0, top: int = 0, size: tuple[int, int] | None = None) -> str:
    """The text of a mask.

    Parameters
    ----------
    mask : bool array (rows, columns)
    left, top : int, default=0
        Where it begins, if it is a part of a larger one that is zero elsewhere.
    size : (width, height), default=that of ``mask``
        Of the larger one.

    Returns
    -------
    str
        What pycocotools calls ``counts``; the size is not in it.

    Examples
    --------
    >>> encode_mask(np.array([[False, True], [False, True]]))
    '22'
    """
    # Compiled code is imported on first use.
    from bagwise._utils._rle_loops import characters, run_lengths

    rows, columns = mask.shape
    width, height = size or (columns, rows)
    lengths = run_lengths(np.ascontiguousarray(mask, dtype=bool), left, top, height, width)
    return characters(lengths).tobytes().decode("ascii")


def decode_mask(counts: str, height: int, width: int) -> np.ndarray:
    """The mask of a text.

    Parameters
    ----------
    counts : str
        As `encode_mask` writes it.
    height, width : int
        Of the image.

    Returns
    -------
    bool array (height, width)

    Raises
    ------
    ValueError
        When the text is none of a mask of this size.

    Examples
    --------
    >>> decode_mask("22", 2, 2)
    array([[False,  True],
           [False,  True]])
    """
    lengths: list[int] = []
    value = shift = 0
    for letter in counts:
        group = ord(letter) - 48
        if not 0 <= group < 64:
            raise ValueError(f"a mask holds the character {letter!r}, which no run-length code has")
        if shift > MOST_BITS:
            raise ValueError("a mask holds a length that no image has")
        value |= (group & 0x1F) << shift
        shift += 5
        if group & 0x20:
            continue
        if group & 0x10:
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    if height * width > MOST_PIXELS:
        raise ValueError(f"a mask of {width} x {height} pixels is larger than any image that is read")
    if shift or min(lengths, default=0) < 0 or sum(lengths) != height * width:
        raise ValueError(f"a mask of {sum(lengths)} pixels does not fit an image of {width} x {height}")
    ones = np.arange(len(lengths)) % 2 == 1
    return np.repeat(ones, lengths).reshape((height, width), order="F")
