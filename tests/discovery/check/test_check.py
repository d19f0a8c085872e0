"""The pre-flight finds what was planted, and keeps quiet about what is sound."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bagwise.discovery.check.checks import Finding, check_images, told
from bagwise.discovery.check.duplicates import fingerprint, near_duplicates
from bagwise.discovery.check.labelnoise import doubtful_labels
from bagwise.discovery.proposals.edges import edge_detector
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.discovery.sources.reading import read_source
from bagwise.metrics.truth import TruthBox


def scene(seed, shape=(90, 120)):
    """A smooth random picture: a few soft blobs, unlike any other seed's."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 255, (6, 8, 3), dtype=np.uint8))
    return np.asarray(coarse.resize(shape[::-1], Image.Resampling.BICUBIC))


def fingerprints(pictures):
    bits, small = zip(*(fingerprint(picture) for picture in pictures))
    return np.array(bits, dtype=np.uint64), np.array(small)


# Near-duplicates


def test_copies_are_found_whatever_was_done_to_them(tmp_path):
    originals = [scene(seed) for seed in range(40)]
    image = Image.fromarray(originals[3])
    image.save(tmp_path / "rough.jpg", quality=25)
    changed = [
        np.asarray(Image.open(tmp_path / "rough.jpg")),
        np.asarray(image.resize((300, 225))),
        np.clip(originals[3].astype(int) + 4, 0, 255).astype(np.uint8),
    ]
    groups = near_duplicates(*fingerprints([*originals, *changed]))
    assert groups == [[3, 40, 41, 42]]


def test_every_pair_a_plain_search_finds_is_found():
    random = np.random.default_rng(0)
    pictures = [scene(int(seed)) for seed in random.integers(0, 60, 150)]
    pictures = [np.clip(p + random.normal(0, 12, p.shape), 0, 255).astype(np.uint8) for p in pictures]
    bits, small = fingerprints(pictures)
    linked = {i: {i} for i in range(150)}
    for i in range(150):
        for j in range(i):
            apart = bin(int(bits[i]) ^ int(bits[j])).count("1")
            grey = np.abs(small[i].astype(int) - small[j].astype(int)).mean()
            if apart <= 6 and grey <= 6:
                merged = linked[i] | linked[j]
                for member in merged:
                    linked[member] = merged
    plain = {tuple(sorted(group)) for group in linked.values() if len(group) > 1}
    assert {tuple(group) for group in near_duplicates(bits, small)} == plain
    assert len(plain) > 20


def test_thousands_of_blank_scans_are_one_group():
    bits, small = np.zeros(3000, dtype=np.uint64), np.zeros((3000, 16, 16), dtype=np.uint8)
    assert near_duplicates(bits, small) == [list(range(3000))]
    assert near_duplicates(bits[:1], small[:1]) == []


# Labels


def clusters(count=30, classes="abc", seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(len(classes), 16)) * 2.5
    features = np.vstack([centre + random.normal(size=(count, 16)) for centre in centres])
    return features, [(name,) for name in classes for _ in range(count)]


def test_swapped_labels_are_found():
    features, labels = clusters()
    wrong = dict.fromkeys(np.random.default_rng(1).permutation(len(labels))[:10].tolist())
    for row in wrong:
        labels[row] = ("b",) if labels[row] == ("a",) else ("a",)
    found = doubtful_labels(features, labels)
    assert len(set(wrong) & {item.row for item in found}) >= 9
    assert len(found) <= 14
    item = found[0]
    assert item.row in wrong
    assert item.probability < item.its_probability
    assert labels[item.row] == (item.label,)


def test_sound_labels_are_left_alone():
    features, labels = clusters()
    assert len(doubtful_labels(features, labels)) <= 2


def test_a_second_label_explains_a_picture():
    """A picture of a and b that looks like b is no reason to doubt the label a."""
    features, labels = clusters()
    both = [("a", "b") if name == ("b",) else name for name in labels]
    assert len(doubtful_labels(features, both)) <= 2


def test_one_class_or_tiny_ones_cannot_be_judged():
    features, labels = clusters(5)
    assert doubtful_labels(features, labels) == []
    assert doubtful_labels(*clusters(30, "a")) == []


# All of it


@pytest.fixture
def folder(tmp_path):
    """Two classes of eight, one of two, one broken file, one copy with another label."""
    root = tmp_path / "photos"
    for label, count, first in (("cat", 8, 0), ("dog", 8, 100), ("owl", 2, 200)):
        (root / label).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(scene(first + number)).save(root / label / f"{number}.png")
    (root / "cat" / "broken.jpg").write_bytes(b"")
    Image.fromarray(scene(0)).save(root / "dog" / "copy.png")
    (root / "stray.png").write_bytes((root / "cat" / "0.png").read_bytes())
    return root


def sentences(findings, severity):
    return " | ".join(finding.sentence for finding in findings if finding.severity == severity)


def test_what_was_planted_is_found(folder):
    images = read_source(folder)
    findings = check_images(images)
    wrong, doubtful = sentences(findings, "wrong"), sentences(findings, "doubtful")
    assert "1 image cannot be read" in wrong
    assert "1 entry of the source cannot be used" in wrong
    assert "too few images to learn from (fewer than 5) in 1 class" in wrong
    assert "few images (fewer than 20) in 2 classes" in doubtful
    assert "different labels in 1 group of nearly equal images" in doubtful
    text = told(images, findings)
    assert "cat/broken.jpg: broken.jpg is empty (zero bytes)" in text
    assert "owl: 2 images" in text
    assert "cat/0.png, dog/copy.png: cat / dog" in text
    assert [finding.severity for finding in findings] == sorted((f.severity for f in findings), reverse=True)


def test_a_class_that_every_image_carries_cannot_be_told_from_anything(folder):
    files = [f"cat/{number}.png" for number in range(8)]
    findings = check_images(ImageSet(folder, files, [("cat",)] * 8))
    assert "which leaves nothing to tell the label from" in sentences(findings, "wrong")


def test_images_that_the_table_does_not_name_are_told(folder):
    table = folder.parent / "labels.csv"
    table.write_text("file,label\ncat/0.png,cat\ncat/1.png,cat\ndog/0.png,dog\ndog/gone.png,dog\n")
    findings = check_images(read_source(folder, table))
    (finding,) = [item for item in findings if "without an entry in the labels" in item.sentence]
    assert finding.sentence.startswith("18 images of the folder")
    assert "stray.png" in finding.details
    assert "cat/0.png" not in finding.details


def test_proposals_are_tried_where_there_are_boxes(folder):
    picture = np.full((120, 160, 3), 60, dtype=np.uint8)
    picture[30:90, 40:120] = 220
    Image.fromarray(picture).save(folder / "square.png")
    truth = {"square.png": [TruthBox("square", (40.0, 30.0, 120.0, 90.0)), TruthBox("speck", (2.0, 2.0, 4.0, 4.0))]}
    images = ImageSet(folder, ["square.png", "dog/1.png"], [("speck", "square"), ("dog",)], truth)
    findings = check_images(images, detector=edge_detector("gradient"))
    (finding,) = [item for item in findings if "proposals fit" in item.sentence]
    assert "50% of 2 objects" in finding.sentence
    assert finding.severity == "doubtful"
    assert finding.details == ["square.png: no proposal fits any speck"]


def test_details_are_cut_short_and_good_news_is_said():
    images = ImageSet(Path("r"), ["a/1", "a/2", "none/3"], [("a",), ("a",), ("none",)]).with_negatives()
    text = told(images, [Finding("doubtful", "look", [str(i) for i in range(9)])])
    assert "and 4 more" in text
    assert "3 images, 1 class, 1 image of none of them" in text
    assert "nothing is wrong" in told(images, [Finding("good to know", "fine")])
