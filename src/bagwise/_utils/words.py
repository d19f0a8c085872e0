"""Words for people: numbers with what they count, names without what nobody sees."""

import re

# Control characters, which move a terminal's cursor, and marks that turn the direction of writing of all that follows.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with hidden marks as ⟨U+202E⟩."""
    return HIDDEN.sub(lambda mark: f"⟨U+{ord(mark[0]):04X}⟩", text)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: ``1 image``, ``1,200 images``, ``2 classes``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def confidence_in_words(confidence: float) -> str:
    """A confidence as every page shows it: ``97%``, but never ``100%`` or ``0%``, since no model is that sure.

    >>> confidence_in_words(0.974), confidence_in_words(0.9999), confidence_in_words(0.0001)
    ('97%', '>99%', '<1%')
    """
    if confidence > 0.99:
        return ">99%"
    return "<1%" if confidence < 0.01 else f"{confidence:.0%}"
