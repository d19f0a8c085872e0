"""A set of labelled images, whatever form it came in."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import numpy as np

from bagwise._utils.names import same_file, stays_inside
from bagwise._utils.words import counted
from bagwise.discovery.sources.columns import LabelSets, Names
from bagwise.discovery.sources.images import EXTENSIONS
from bagwise.metrics.truth import TruthBox

# Labels that say that an image shows none of the classes.
NONE_OF_THESE = ("background", "negative", "negatives", "no label", "none", "none of these")


@dataclass(frozen=True)
class Problem:
    """Something that was left out, by name, and why, in one sentence."""

    file: str
    reason: str


@dataclass(init=False)
class ImageSet:
    """Images and the labels they carry as a whole.

    Attributes
    ----------
    root : Path
    files : Names
        Posix paths relative to the root, each once, sorted; read them as a list.
    labels : LabelSets
        For each file a tuple of the classes shown in it. An image that is known to show none of them has an empty
        tuple: it is a negative example of every class, and no box is looked for in it.
    classes : list of str
        Every label, sorted.
    truth : dict or None
        Boxes per file where the source has them; used to evaluate, never to learn.
    problems : list of Problem
    kind : str
        "folders", "csv", "jsonl", "voc", "coco", "fiftyone", "python" or "images" (no labels).
    unsure : LabelSets
        For each file a tuple of the classes that may be shown: only marked difficult, or a crowd. Such an image is
        neither a positive nor a negative example of the class.
    """

    root: Path
    files: Names
    labels: LabelSets
    truth: dict[str, list[TruthBox]] | None
    problems: list[Problem]
    kind: str
    unsure: LabelSets
    classes: list[str]

    def __init__(
        self,
        root: Path,
        files: Sequence[str],
        labels: Iterable[Iterable[str]],
        truth: dict[str, list[TruthBox]] | None = None,
        problems: list[Problem] | None = None,
        kind: str = "folders",
        unsure: Iterable[Iterable[str]] | None = None,
    ) -> None:
        self.root, self.truth, self.kind = root, truth, kind
        self.problems = [] if problems is None else problems
        self.labels = LabelSets.of(labels)
        self.unsure = LabelSets.of(unsure) if unsure else LabelSets.none(len(files))
        try:
            self.files = Names.of(files)
        except UnicodeEncodeError:
            self._leave_out_what_is_no_text(files)
        order = self.files.order()
        if order is not None:
            self.files = self.files.take(order)
            self.labels, self.unsure = self.labels.take(order), self.unsure.take(order)
        self.classes = self.labels.used

    def _leave_out_what_is_no_text(self, files: Sequence[str]) -> None:
        """Tables hold text, and names of files on old disks may be none."""
        rows = [row for row, file in enumerate(files) if _is_text(file)]
        reason = "its name is no text in UTF-8: give it another"
        left_out = [file.encode("utf-8", "replace").decode() for file in files if not _is_text(file)]
        self.problems = [*self.problems, *(Problem(file, reason) for file in left_out)]
        self.files = Names.of([files[row] for row in rows])
        self.labels, self.unsure = self.labels.take(rows), self.unsure.take(rows)

    def __len__(self) -> int:
        return len(self.files)

    def take(self, rows: np.ndarray) -> "ImageSet":
        """Some of the images with their labels, by place; without their truth and problems."""
        return ImageSet(
            self.root, self.files.take(rows), self.labels.take(rows), kind=self.kind, unsure=self.unsure.take(rows)
        )

    @property
    def negatives(self) -> list[str]:
        """The images that show none of the classes."""
        return list(self.files.take(np.flatnonzero((self.labels.sizes == 0) & (self.unsure.sizes == 0))))

    def told(self) -> str:
        """What there is, in a few words."""
        text = f"{counted(len(self), 'image')}, {counted(len(self.classes), 'class', 'classes')}"
        return f"{text}, {counted(len(self.negatives), 'image')} of none of them" if self.negatives else text

    def with_negatives(self, names: Collection[str] | None = None) -> "ImageSet":
        """The set without the labels that mean "none of these": images that carry only such a label are negatives.

        Parameters
        ----------
        names : collection of str, optional
            Labels with that meaning; case, blanks, hyphens and underscores do not matter.
            By default those of :data:`NONE_OF_THESE`.

        Raises
        ------
        ValueError
            When a name was given that no image carries.
        """
        none = {plain_label(name) for name in (NONE_OF_THESE if names is None else names) if name.strip()}
        missing = none - {plain_label(label) for label in self.classes}
        if names is not None and missing:
            known = ", ".join(self.classes) or "none"
            raise ValueError(f"no image is labelled {sorted(missing)[0]!r}; the labels are: {known}")
        dropped = [label for label in {*self.labels.names, *self.unsure.names} if plain_label(label) in none]
        labels, problems = self.labels.without(dropped), list(self.problems)
        for row in np.flatnonzero((labels.sizes > 0) & (labels.sizes < self.labels.sizes)).tolist():
            kept = ", ".join(labels[row])
            said = " and ".join(repr(label) for label in self.labels[row] if label in dropped)
            problems.append(Problem(self.files[row], f"is labelled {said} beside {kept}: taken as {kept}"))
        unsure = self.unsure.without(dropped)
        truth = self.truth and {
            file: [box for box in boxes if plain_label(box.label) not in none] for file, boxes in self.truth.items()
        }
        return ImageSet(self.root, self.files, labels, truth, problems, self.kind, unsure)

    @classmethod
    def from_truth(
        cls,
        root: Path,
        truth: dict[str, list[TruthBox]],
        problems: list[Problem],
        kind: str,
        boxless: dict[str, set[str]] | None = None,
    ) -> "ImageSet":
        """The set whose image-level labels are the classes of its boxes, and those of annotations without one."""
        named = boxless or {}
        labels = [
            tuple(sorted({b.label for b in boxes if not b.difficult} | named.get(file, set())))
            for file, boxes in truth.items()
        ]
        unsure = [
            tuple(sorted({b.label for b in boxes if b.difficult} - set(sure)))
            for boxes, sure in zip(truth.values(), labels)
        ]
        known = truth if any(truth.values()) or not named else None
        return cls(root, list(truth), labels, known, problems, kind, unsure)


def clean_label(text: str) -> str:
    """A label without surrounding or repeated blanks, in composed Unicode, so that equal labels are equal."""
    return re.sub(r"\s+", " ", normalize("NFC", text)).strip()


def image_files(folder: Path) -> Iterator[Path]:
    """Every image under the folder by its extension, sorted; hidden files and folders are left out."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.suffix.lower() in EXTENSIONS and path.is_file():
            yield path


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def plain_label(label: str) -> str:
    """A label as it is compared with those that mean "none of these"."""
    return re.sub(r"[\s_-]+", " ", label).strip().casefold()


class Labelling:
    """Collects the labels of images that are named one by one; what cannot be used is noted by name.

    Parameters
    ----------
    root : Path
        Where the names start from.

    Attributes
    ----------
    problems : list of Problem
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self._finder = FileFinder(root)
        self._labels: dict[str, set[str]] = {}
        self._unsure: dict[str, set[str]] = {}

    def add(self, name: str, labels: Iterable[str] | None, where: str, unsure: Iterable[str] = ()) -> None:
        """Note the labels of an image; a name that occurs again adds to them.

        Parameters
        ----------
        name : str
        labels : iterable of str or None
            Empty when the image shows none of the classes, None when nobody said.
        where : str
            Where this is said, such as ``row 3 of labels.csv``.
        unsure : iterable of str
            Classes that the image may show.
        """
        try:
            file = self._finder.find(name)
        except ValueError as error:
            self.problems.append(Problem(name or where, f"{error} ({where})"))
            return
        found = {clean_label(label) for label in labels or ()} - {""}
        unsure = {clean_label(label) for label in unsure} - {""}
        if labels is None and not unsure:
            reason = f"{where} gives it no label; if it shows none of the classes, write 'none'"
            self.problems.append(Problem(file, reason))
            return
        self._labels.setdefault(file, set()).update(found)
        self._unsure.setdefault(file, set()).update(unsure)

    def image_set(self, kind: str) -> ImageSet:
        """All of it."""
        labels = [tuple(sorted(names)) for names in self._labels.values()]
        unsure = [tuple(sorted(self._unsure[file] - names)) for file, names in self._labels.items()]
        return ImageSet(self.root, list(self._labels), labels, None, self.problems, kind, unsure)


class FileFinder:
    """Finds the files that a table names: by path from the root, or by bare name where only one file has it.

    A name may lack its extension.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._by_name: dict[str, list[str]] = {}
        self._listed: dict[str, str] | None = None

    def find(self, name: str) -> str:
        """Path relative to the root, posix.

        Raises
        ------
        ValueError
            When no file or more than one file can be meant; one sentence.
        """
        name = name.strip().replace("\\", "/")
        if Path(name).is_absolute():
            try:
                name = Path(name).relative_to(self.root.resolve()).as_posix()
            except ValueError:
                raise ValueError(f"lies outside {self.root}") from None
        if name and not stays_inside(name):
            raise ValueError(f"lies outside {self.root}")
        for form in ("NFC", "NFD"):  # file systems differ in how they write accents
            candidate = normalize(form, name)
            if _is_file(self.root / candidate) and candidate:
                return self._as_listed(Path(candidate).as_posix())
        matches = self._names().get(normalize("NFC", name), [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise ValueError(f"names {len(matches)} files ({', '.join(matches[:3])}): write its folder too")
        raise ValueError(f"there is no such file under {self.root}")

    def _as_listed(self, name: str) -> str:
        """The name as the disk spells it: where Cat.jpg is cat.jpg, a table with both would show one image twice."""
        if self._listed is None:
            other = self.root / name.swapcase()
            ignores_case = name != name.swapcase() and _is_file(other) and os.path.samefile(other, self.root / name)
            files = [path.relative_to(self.root).as_posix() for path in image_files(self.root)] if ignores_case else []
            self._listed = {same_file(file): file for file in files}
        return self._listed.get(same_file(name), name)

    def _names(self) -> dict[str, list[str]]:
        """Files by their name, and by their name and their path without extension."""
        if not self._by_name:
            for path in image_files(self.root):
                relative = path.relative_to(self.root)
                keys = {path.name, path.stem, relative.with_suffix("").as_posix()}
                for key in keys:
                    self._by_name.setdefault(normalize("NFC", key), []).append(relative.as_posix())
        return self._by_name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have: too long, or with a null byte
        return False


def valid_box(values: Iterable[float]) -> tuple[float, float, float, float] | None:
    """The corners as floats when they enclose something, else None."""
    x1, y1, x2, y2 = (float(value) for value in values)
    return (x1, y1, x2, y2) if x1 < x2 < float("inf") and y1 < y2 < float("inf") and x1 > -1e9 and y1 > -1e9 else None
