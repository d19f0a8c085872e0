"""Images that are nearly the same: a copy, a resized or recompressed one, the next frame of a series."""

import numpy as np

from bagwise._utils.optional import require

SIDE = 16  # pixels of the small grey picture that is compared
BITS_APART = 6  # of 64, for two pictures to be compared at all
GREY_APART = 6.0  # mean difference of 255 grey levels, below which they are the same
BANDS = BITS_APART + 1
WINDOW = 500  # a row is compared with no more than this many others of its band


def fingerprint(image: np.ndarray) -> tuple[np.uint64, np.ndarray]:
    """An image's outline in 64 bits, and a small grey picture of it.

    Parameters
    ----------
    image : uint8 array (height, width, 3)

    Returns
    -------
    bits : uint64
        Whether each of 8 x 8 places is darker than the one to its right.
    small : uint8 array (16, 16)
    """
    pil = require("PIL.Image", extra="vision")
    grey = pil.fromarray(image).convert("L")
    steps = np.asarray(grey.resize((9, 8), pil.Resampling.BOX), dtype=np.int16)
    darker = (steps[:, :-1] < steps[:, 1:]).ravel()
    bits = np.packbits(darker).view(np.uint64)[0]
    return bits, np.asarray(grey.resize((SIDE, SIDE), pil.Resampling.BOX))


def near_duplicates(bits: np.ndarray, small: np.ndarray) -> list[list[int]]:
    """Groups of images that are nearly the same, larger groups first.

    Parameters
    ----------
    bits : uint64 array (n,)
    small : uint8 array (n, 16, 16)

    Returns
    -------
    list of lists of rows, each of at least two, ascending
    """
    if len(bits) < 2:
        return []
    # First those with the very same bits, each against its neighbour in grey: thousands of blank scans take no time.
    order = np.lexsort([small.mean(axis=(1, 2)), bits])
    before, after = order[:-1], order[1:]
    same = (bits[before] == bits[after]) & (_grey_apart(small[before], small[after]) <= GREY_APART)
    exact = _components(len(bits), before[same], after[same])
    # Then one of each against those whose bits are near.
    _, one = np.unique(exact, return_index=True)
    first, second = _near_pairs(bits[one], small[one])
    group = _components(len(one), first, second)[exact]
    order = np.argsort(group, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(group))[:-1])
    return sorted((sorted(rows.tolist()) for rows in groups if len(rows) > 1), key=lambda rows: (-len(rows), rows))


def _near_pairs(bits: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows whose bits and grey levels are near.

    Two patterns that differ in at most six of 64 bits agree wholly in at least one of seven bands: only rows that
    share a band are compared, so the work does not grow with the square of their number.
    """
    firsts, seconds = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for band in np.array_split(np.unpackbits(bits[:, None].view(np.uint8), axis=1), BANDS, axis=1):
        _, member = np.unique(np.packbits(band, axis=1), axis=0, return_inverse=True)
        order = np.argsort(member.ravel(), kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(member.ravel()[order])) + 1):
            for place, row in enumerate(rows[:-1]):
                others = rows[place + 1 : place + 1 + WINDOW]
                others = others[_bits_apart(bits[others], bits[row]) <= BITS_APART]
                others = others[_grey_apart(small[others], small[row]) <= GREY_APART]
                firsts.append(np.full(len(others), row))
                seconds.append(others)
    return np.concatenate(firsts), np.concatenate(seconds)


def _components(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The number of the group of each of n rows, when the pairs hang together; groups in the order of their rows."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return connected_components(links, directed=False)[1]


def _grey_apart(many: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mean difference of grey level of small pictures (n, 16, 16): (n,)."""
    return np.abs(many.astype(np.int16) - others).mean(axis=(1, 2))


def _bits_apart(many: np.ndarray, one: np.uint64) -> np.ndarray:
    """In how many bits each of many (n,) differs from one: (n,)."""
    return np.unpackbits((many ^ one)[:, None].view(np.uint8), axis=1).sum(axis=1)
