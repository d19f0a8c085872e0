"""Images that nobody labelled: which half is asked, which class is held out, what is counted."""

from pathlib import Path

from benchmarks.halves import halves, without_labels
from benchmarks.unseen import held_out, lend

from bagwise.discovery.sources.imageset import ImageSet

FILES = ["a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg"]
LABELS = [("cat",), ("cat", "dog"), ("dog",), (), ("owl",)]


def test_every_second_image_is_asked_about_and_its_labels_are_kept_from_the_run():
    known, asked = halves(ImageSet(Path(), FILES, LABELS))
    assert list(known.files) == ["a.jpg", "c.jpg", "e.jpg"]
    assert [tuple(labels) for labels in asked.labels] == [("cat", "dog"), ()]
    strangers = without_labels(asked)
    assert list(strangers.files) == ["b.jpg", "d.jpg"]
    assert strangers.classes == []


def test_what_is_held_out_is_in_no_image_that_is_learned_from():
    known, asked = held_out(ImageSet(Path(), FILES, LABELS), "cat")
    assert list(known.files) == ["c.jpg", "d.jpg", "e.jpg"]
    assert list(asked.files) == ["a.jpg"]  # b.jpg shows a dog, which is learned


def test_a_lent_store_is_the_same_files(tmp_path):
    (tmp_path / "store" / "shards").mkdir(parents=True)
    (tmp_path / "store" / "shards" / "0.bin").write_bytes(b"boxes")
    lend(tmp_path / "store", tmp_path / "run")
    lend(tmp_path / "store", tmp_path / "run")  # a second time changes nothing
    assert (tmp_path / "run" / "store" / "shards" / "0.bin").samefile(tmp_path / "store" / "shards" / "0.bin")
