"""Words for people: numbers with what they count."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: ``1 image``, ``1,200 images``, ``2 classes``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
