"""Names that Linux, macOS and Windows accept and keep apart, and that lead nowhere else on any of them."""

import os
import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bagwise._utils.names import distinct_names, is_reserved, safe_name, same_file, stays_inside
from bagwise.discovery.run.export.collect import flat_names
from bagwise.discovery.sources import imageset
from bagwise.discovery.sources.imageset import FileFinder

LABELS = ["a", "a/b", "a%2Fb", "..", ".hidden", "with space", "größer", "a:b", "dot.", "dot%2E", "con", "NUL", "com1",
          "lpt9.tar", "%63on", "console", "x" * 300, "x" * 301, "é", "e\u0301", "Cat", "cat", "CAT", "ß", "ss",
          "trail ", "\u202egnp.exe", "日本" * 100, "\x00\x1f\x7f", "'", "-", "~"]  # fmt: skip


def acceptable_on_windows(name: str) -> bool:
    legal = not re.search(r'[\x00-\x1f/\\:*?"<>|]', name) and not name.endswith((".", " "))
    return legal and not is_reserved(name)


def test_any_labels_make_files_that_every_system_keeps_apart(tmp_path):
    names = distinct_names(LABELS)
    assert all(acceptable_on_windows(f"{name}.bagwise") for name in names.values())
    assert all(len(f"{name}.bagwise".encode()) < 200 for name in names.values())
    assert len({same_file(name) for name in names.values()}) == len(LABELS)
    for name in names.values():
        (tmp_path / name).write_text("x")
    assert {path.name for path in tmp_path.iterdir()} == set(names.values())
    assert names["größer"] == "größer"
    assert names["cat"] != names["Cat"]
    assert safe_name("cat") == "cat"


def test_an_empty_label_is_refused():
    with pytest.raises(ValueError, match="class name is empty"):
        safe_name("")


@given(st.sets(st.text(min_size=1), max_size=8))
def test_all_labels(labels):
    names = distinct_names(labels)
    assert all(acceptable_on_windows(name) for name in names.values())
    assert len({same_file(name) for name in names.values()}) == len(labels)
    assert all(len(name.encode("utf-8", "surrogatepass")) <= 140 for name in names.values())


@given(st.sets(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), max_size=8))
def test_exported_images(files):
    files = sorted(name for name in files if PurePosixPath(name).name not in ("", ".", ".."))
    names = flat_names([f"{file}.jpg" for file in files])
    assert all(acceptable_on_windows(name) and "/" not in name for name in names.values())
    assert len({same_file(Path(name).stem) for name in names.values()}) == len(files)
    assert all(len(name.encode()) < 200 for name in names.values())


@pytest.mark.parametrize(
    ("name", "posix", "windows"),
    [
        ("cat/1.jpg", True, True),
        ("cat/a b.jpg", True, True),
        ("../x.jpg", False, False),
        ("cat/../../x.jpg", False, False),
        ("/etc/passwd", False, False),
        ("", False, False),
        ("..\\x.jpg", True, False),
        ("cat\\..\\..\\x.jpg", True, False),
        ("C:\\x.jpg", True, False),
        ("C:x.jpg", True, False),
        ("\\\\server\\share\\x.jpg", True, False),
        ("\\x.jpg", True, False),
    ],
)
def test_names_that_lead_out_of_a_folder(name, posix, windows):
    assert stays_inside(name, PurePosixPath) is posix
    assert stays_inside(name, PureWindowsPath) is windows


def test_an_image_that_a_table_spells_in_two_ways_is_one_image(tmp_path, monkeypatch):
    """On a disk that ignores case; here one is made of Linux's by looking names up without it."""
    (tmp_path / "Dog").mkdir()
    (tmp_path / "Dog" / "One.jpg").write_bytes(b"")

    def spelled(path: Path) -> Path | None:
        wanted = same_file(Path(path).relative_to(tmp_path).as_posix())
        found = (f for f in tmp_path.rglob("*") if same_file(f.relative_to(tmp_path).as_posix()) == wanted)
        return next(found, None)

    assert FileFinder(tmp_path).find("Dog/One.jpg") == "Dog/One.jpg"
    with pytest.raises(ValueError, match="no such file"):
        FileFinder(tmp_path).find("dog/ONE.JPG")
    monkeypatch.setattr(imageset, "_is_file", lambda path: spelled(path) is not None)
    monkeypatch.setattr(os.path, "samefile", lambda one, other: spelled(one) == spelled(other))
    assert FileFinder(tmp_path).find("dog/ONE.JPG") == "Dog/One.jpg"
    assert FileFinder(tmp_path).find("DOG/one.jpg") == "Dog/One.jpg"


def test_marks_that_nobody_sees_are_shown():
    from bagwise._utils.words import visible

    assert visible("a\x1b[31m\u202eb\u2069\x00") == "a⟨U+001B⟩[31m⟨U+202E⟩b⟨U+2069⟩⟨U+0000⟩"
    assert visible("größer, 日本, שלום, 👩\u200d🔬") == "größer, 日本, שלום, 👩\u200d🔬"
