"""Which images are asked for which class: the evaluation sets of the literature.

A protocol is a set of groups. A group is a class, or a class seen from one side ("car Left"); it has the
class whose objects count as truth and the images that are to be answered. A model is learned per group, so a run's
labels are the group names: `write_labels` writes them for ``bagwise discover --labels``.

============  ======================================================================================================
name          images
============  ======================================================================================================
labels        every image under each of its labels, where the truth has an object of that class
classes       per class, images with an object of it that is neither difficult nor truncated (Pascal 2007, 20 classes)
pascal06-all  the same per class and viewpoint (Left, Right, Frontal, Rear) with more than five such images: 33 groups
pascal07-all  as pascal06-all, of VOC2007
voc07-6x2     six classes seen from the left and the right, from lists of images, one file per group
============  ======================================================================================================
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bagwise._utils.atomic import write_text
from bagwise.metrics.corloc import Truth

VIEWS = ("Left", "Right", "Frontal", "Rear")
MORE_THAN = 5
NAMES = ("labels", "classes", "pascal06-all", "pascal07-all", "voc07-6x2")


@dataclass(frozen=True)
class Protocol:
    """The groups to be answered.

    Attributes
    ----------
    name : str
    groups : dict of str to (class, files)
    """

    name: str
    groups: dict[str, tuple[str, tuple[str, ...]]]

    @property
    def pairs(self) -> int:
        """How many (image, group) pairs there are."""
        return sum(len(files) for _, files in self.groups.values())

    @property
    def images(self) -> int:
        """How many different images there are."""
        return len({file for _, files in self.groups.values() for file in files})

    def __str__(self) -> str:
        return f"{self.name}: {len(self.groups)} groups, {self.images} images, {self.pairs} image-group pairs"


def protocol(
    name: str,
    truth: Truth,
    *,
    labels: Iterable[tuple[str, Sequence[str]]] = (),
    lists: str | Path | None = None,
) -> Protocol:
    """Make a protocol by its name.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    truth : mapping of file to objects
    labels : iterable of (file, labels)
        For "labels": the images and the labels they carry.
    lists : path, optional
        For "voc07-6x2": the folder of lists.
    """
    if name == "labels":
        return as_labelled(labels, truth)
    if name == "classes":
        return whole_classes(truth)
    if name in ("pascal06-all", "pascal07-all"):
        return class_views(name, truth)
    if name == "voc07-6x2":
        if lists is None:
            raise ValueError("the protocol voc07-6x2 needs the folder of its image lists (CLASS_VIEW.txt)")
        return from_lists(name, lists, truth)
    raise ValueError(f"there is no protocol {name!r}; choose one of {', '.join(NAMES)}")


def as_labelled(labels: Iterable[tuple[str, Sequence[str]]], truth: Truth) -> Protocol:
    """Every image under each of its labels; pairs without a true object of the class drop out."""
    groups: dict[str, list[str]] = {}
    for file, names in labels:
        for name in names:
            members = groups.setdefault(name, [])
            if any(item.label == name for item in truth.get(file, ())):
                members.append(file)
    return _protocol("labels", {name: (name, files) for name, files in groups.items() if files})


def whole_classes(truth: Truth) -> Protocol:
    """Per class, the images with at least one object of it that is neither difficult nor truncated."""
    groups: dict[str, list[str]] = {}
    for file, objects in truth.items():
        for label in {item.label for item in objects if not (item.difficult or item.truncated)}:
            groups.setdefault(label, []).append(file)
    return _protocol("classes", {label: (label, files) for label, files in groups.items()})


def class_views(name: str, truth: Truth, more_than: int = MORE_THAN) -> Protocol:
    """Per class and viewpoint, the images with such an object that is neither difficult nor truncated."""
    groups: dict[tuple[str, str], list[str]] = {}
    for file, objects in truth.items():
        clear = [item for item in objects if not (item.difficult or item.truncated)]
        for label, view in {(item.label, item.pose) for item in clear if item.pose in VIEWS}:
            groups.setdefault((label, view), []).append(file)
    if not groups:
        raise ValueError(f"the protocol {name} needs viewpoints, and these annotations name none (Left, Right, ...)")
    kept = {f"{label} {view}": (label, files) for (label, view), files in groups.items() if len(files) > more_than}
    if not kept:
        most = max(len(files) for files in groups.values())
        raise ValueError(
            f"the protocol {name} takes classes seen from one side in over {more_than} images; here the most is {most}"
        )
    return _protocol(name, kept)


def from_lists(name: str, folder: str | Path, truth: Truth) -> Protocol:
    """Groups from text files CLASS_VIEW.txt (or CLASS.txt), one image per line, by its file or its stem."""
    paths = sorted(Path(folder).glob("*.txt"))
    if not paths:
        raise ValueError(f"the folder {folder} holds no image lists (*.txt)")
    by_stem: dict[str, list[str]] = {}
    for file in truth:
        by_stem.setdefault(PurePosixPath(file).stem, []).append(file)
    classes = {item.label for objects in truth.values() for item in objects}
    groups: dict[str, tuple[str, Sequence[str]]] = {}
    for path in paths:
        stem, _, view = path.stem.rpartition("_")
        label, view = (stem, view) if stem in classes else (path.stem, "")
        if label not in classes:
            raise ValueError(f"{path} names the class {label!r}, of which the truth has no object")
        files = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            entry = line.split()[0]
            found = [entry] if entry in truth else by_stem.get(PurePosixPath(entry).stem, [])
            if len(found) != 1:
                what = "is not in the truth" if not found else "fits several images of the truth"
                raise ValueError(f"{path}, line {number}: the image {entry!r} {what}")
            files.append(found[0])
        groups[f"{label} {view.capitalize()}".strip()] = (label, files)
    return _protocol(name, groups)


def write_labels(chosen: Protocol, path: str | Path) -> None:
    """Write the (file, group) rows of a labels.csv, with which a run answers this protocol."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", "label"])
    rows.writerows(sorted((file, name) for name, (_, files) in chosen.groups.items() for file in files))
    write_text(path, text.getvalue())


def _protocol(name: str, groups: Mapping[str, tuple[str, Sequence[str]]]) -> Protocol:
    if not groups:
        raise ValueError(f"the protocol {name} finds no image with an object of a labelled class in the truth")
    return Protocol(name, {key: (groups[key][0], tuple(sorted(set(groups[key][1])))) for key in sorted(groups)})
