"""A set of labelled photographs, whatever form it came in."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from .images import EXTENSIONS


@dataclass(frozen=True)
class Problem:
    """Something that was left out, by name, and why, in one sentence."""

    file: str
    reason: str


@dataclass(frozen=True)
class TruthBox:
    """A box drawn by a person. Flags that the annotation does not give are None."""

    label: str
    box: tuple[float, float, float, float]  # x1, y1, x2, y2; zero-based, exclusive at the end
    difficult: bool = False
    truncated: bool | None = None
    pose: str | None = None


@dataclass
class ImageSet:
    """Photographs and the labels they carry as a whole.

    Attributes
    ----------
    root : Path
    files : list of str
        Posix paths relative to the root, each once, sorted.
    labels : list of tuple of str
        For each file the classes shown in it.
    classes : list of str
        Every label, sorted.
    truth : dict or None
        Boxes per file where the source has them; used to evaluate, never to learn.
    problems : list of Problem
    kind : str
        "folders", "csv", "voc", "coco" or "images" (no labels).
    unsure : list of tuple of str
        For each file the classes that may be shown: only marked difficult, or a crowd. Such a photograph is
        neither a positive nor a negative example of the class.
    """

    root: Path
    files: list[str]
    labels: list[tuple[str, ...]]
    truth: dict[str, list[TruthBox]] | None = None
    problems: list[Problem] = field(default_factory=list)
    kind: str = "folders"
    unsure: list[tuple[str, ...]] = field(default_factory=list)
    classes: list[str] = field(init=False)

    def __post_init__(self) -> None:
        order = sorted(range(len(self.files)), key=self.files.__getitem__)
        self.unsure = self.unsure or [()] * len(self.files)
        self.files = [self.files[i] for i in order]
        self.labels = [self.labels[i] for i in order]
        self.unsure = [self.unsure[i] for i in order]
        self.classes = sorted({label for labels in self.labels for label in labels})

    def __len__(self) -> int:
        return len(self.files)

    @classmethod
    def from_truth(cls, root: Path, truth: dict[str, list[TruthBox]], problems: list[Problem], kind: str) -> "ImageSet":
        """The set whose image-level labels are the classes of its boxes."""
        labels = [tuple(sorted({b.label for b in boxes if not b.difficult})) for boxes in truth.values()]
        unsure = [
            tuple(sorted({b.label for b in boxes if b.difficult} - set(sure)))
            for boxes, sure in zip(truth.values(), labels)
        ]
        return cls(root, list(truth), labels, truth, problems, kind, unsure)


def clean_label(text: str) -> str:
    """A label without surrounding or repeated blanks, in composed Unicode, so that equal labels are equal."""
    return re.sub(r"\s+", " ", normalize("NFC", text)).strip()


def image_files(folder: Path) -> Iterator[Path]:
    """Every image under the folder by its extension, sorted; hidden files and folders are left out."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.suffix.lower() in EXTENSIONS and path.is_file():
            yield path


class FileFinder:
    """Finds the files that a table names: by path from the root, or by bare name where only one file has it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._by_name: dict[str, list[str]] | None = None

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
        if ".." in Path(name).parts:
            raise ValueError(f"lies outside {self.root}")
        for form in ("NFC", "NFD"):  # file systems differ in how they write accents
            candidate = normalize(form, name)
            if candidate and (self.root / candidate).is_file():
                return Path(candidate).as_posix()
        matches = self._names().get(normalize("NFC", Path(name).name), []) if "/" not in name else []
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise ValueError(f"names {len(matches)} files ({', '.join(matches[:3])}): write its folder too")
        raise ValueError(f"there is no such file under {self.root}")

    def _names(self) -> dict[str, list[str]]:
        if self._by_name is None:
            self._by_name = {}
            for path in image_files(self.root):
                relative = path.relative_to(self.root).as_posix()
                self._by_name.setdefault(normalize("NFC", path.name), []).append(relative)
        return self._by_name


def valid_box(values: Iterable[float]) -> tuple[float, float, float, float] | None:
    """The corners as floats when they enclose something, else None."""
    x1, y1, x2, y2 = (float(value) for value in values)
    return (x1, y1, x2, y2) if x1 < x2 < float("inf") and y1 < y2 < float("inf") and x1 > -1e9 and y1 > -1e9 else None
