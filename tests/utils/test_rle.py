"""Masks as text, against pycocotools."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bagwise._utils.rle import decode_mask, encode_mask

coco = pytest.importorskip("pycocotools.mask", reason="the comparison needs pycocotools")


def masks():
    rng = np.random.default_rng(0)
    yield np.zeros((3, 5), bool)
    yield np.ones((3, 5), bool)
    yield np.ones((1, 1), bool)
    for height, width in [(1, 40), (40, 1), (7, 9), (480, 640)]:
        yield rng.random((height, width)) < 0.5
        y, x = np.mgrid[:height, :width]
        yield (y - height / 2) ** 2 / height**2 + (x - width / 3) ** 2 / width**2 < 0.1
    long = np.zeros((2000, 3000), bool)
    long[10:-10, 1500:] = True
    yield long


@pytest.mark.parametrize("mask", list(masks()), ids=lambda mask: f"{mask.shape} {mask.sum()}")
def test_texts_are_those_of_pycocotools(mask):
    text = encode_mask(mask)
    assert text == coco.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode()
    np.testing.assert_array_equal(decode_mask(text, *mask.shape), mask)
    theirs = coco.decode({"size": list(mask.shape), "counts": text.encode()})
    np.testing.assert_array_equal(theirs.astype(bool), mask)


@given(st.data())
def test_the_text_of_a_part_is_that_of_the_whole(data):
    height, width, left, top = (data.draw(st.integers(low, 6)) for low in (1, 1, 0, 0))
    left, top = min(left, width - 1), min(top, height - 1)
    rows, columns = data.draw(st.integers(1, height - top)), data.draw(st.integers(1, width - left))
    part = np.array(data.draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns)))
    part = part.reshape(rows, columns)
    whole = np.zeros((height, width), bool)
    whole[top : top + rows, left : left + columns] = part
    assert encode_mask(part, left, top, (width, height)) == encode_mask(whole)
    np.testing.assert_array_equal(decode_mask(encode_mask(whole), height, width), whole)


@pytest.mark.parametrize(
    ("text", "why"), [("22", "does not fit"), ("2\n", "character"), ("2P", "does not fit"), ("", "fit")]
)
def test_a_text_that_is_no_mask_of_this_size_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        decode_mask(text, 3, 5)


def test_texts_from_a_stranger_cost_little():
    """A length of a million groups, and an image of more pixels than memory holds."""
    with pytest.raises(ValueError, match="length that no image has"):
        decode_mask("o" * 1_000_000, 4, 4)
    with pytest.raises(ValueError, match="larger than any image"):
        decode_mask("0", 1 << 31, 1 << 31)
