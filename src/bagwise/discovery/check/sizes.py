"""Classes with too few images to learn much from: said before a run by the check, and again beside what it found."""

from collections.abc import Iterator, Mapping

from bagwise._utils.words import counted

TOO_FEW = 5  # images of a class: below, nothing can be learned
FEW = 20  # below, expect little


def class_sizes(counts: Mapping[str, int], total: int) -> Iterator[tuple[str, str, list[str]]]:
    """What the numbers of images say of what can be learned.

    Parameters
    ----------
    counts : mapping of str to int
        Images of each class.
    total : int
        Images in all.

    Yields
    ------
    severity : {"wrong", "doubtful"}
    sentence : str
    details : list of str
        The classes that it is about.
    """
    told = {label: f"{label}: {counted(count, 'image')}" for label, count in counts.items()}
    without = [told[label] for label, count in counts.items() if count == total > 0]
    if without:
        classes = counted(len(without), "class", "classes")
        sentence = f"every image carries the label of {classes}, which leaves nothing to tell the label from"
        yield "wrong", f"{sentence}; add images without it (other classes, or a folder called none)", without
    tiny = [told[label] for label, count in counts.items() if count < TOO_FEW]
    small = [told[label] for label, count in counts.items() if TOO_FEW <= count < FEW]
    if tiny:
        sentence = f"too few images to learn from (fewer than {TOO_FEW}) in {counted(len(tiny), 'class', 'classes')}"
        yield "wrong", sentence, tiny
    if small:
        sentence = f"few images (fewer than {FEW}) in {counted(len(small), 'class', 'classes')}: expect little"
        yield "doubtful", sentence, small
