"""Text compressed in pieces is one stream that everybody's zlib reads."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bagwise.review.compressed import compressed, end_to_end


@given(st.lists(st.text(max_size=50), max_size=8))
def test_pieces_end_to_end_are_the_whole(texts):
    assert zlib.decompress(end_to_end(map(compressed, texts))).decode() == "".join(texts)


def test_long_pieces_whose_checksums_wrap_around():
    texts = ["\x7f" * 200_000, "größer, ", "", "\x7f" * 70_000]
    assert zlib.decompress(end_to_end(map(compressed, texts))).decode() == "".join(texts)


def test_a_wrong_piece_is_noticed():
    """Browsers check the sum: it has to be that of the whole."""
    good = compressed("one")
    with pytest.raises(zlib.error, match="incorrect data check"):
        zlib.decompress(end_to_end([good, good._replace(checksum=1)]))
