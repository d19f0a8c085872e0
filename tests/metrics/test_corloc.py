"""The two CorLoc definitions against a second, plain implementation, and against a count by hand."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagwise.metrics.corloc import corloc_any_class, corloc_per_class, iou
from bagwise.metrics.truth import TruthBox

# The second implementation works in PASCAL's own terms: one-based corners, both ends inside the box.


def pascal(box):
    x1, y1, x2, y2 = box
    return x1 + 1, y1 + 1, x2, y2


def pascal_iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    area_a = (a[2] - a[0] + 1) * (a[3] - a[1] + 1)
    area_b = (b[2] - b[0] + 1) * (b[3] - b[1] + 1)
    return width * height / (area_a + area_b - width * height)


def plain_per_class(answers, truth, groups):
    rates = []
    for name, (label, files) in groups.items():
        found = 0
        for file in files:
            for thing in truth[file]:
                right_class = thing.label == label
                if right_class and (file, name) in answers:
                    overlap = pascal_iou(pascal(answers[file, name]), pascal(thing.box))
                    if overlap > 0.5:
                        found += 1
                        break
        rates.append(found / len(files))
    return sum(rates) / len(rates)


def plain_any_class(answers, truth, hard):
    found = asked = 0
    for file, things in truth.items():
        best = None
        for thing in things:
            if not hard and (thing.difficult or thing.truncated):
                continue
            if best is None:
                best = 0.0
            if file not in answers:
                continue
            (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2) = answers[file], thing.box
            common = max(0, min(ax2, bx2) - max(ax1, bx1)) * max(0, min(ay2, by2) - max(ay1, by1))
            best = max(best, common / ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - common))
        if best is not None:
            asked += 1
            found += best >= 0.5
    return found / asked


corner, side = st.integers(0, 12), st.integers(1, 12)
# Small whole numbers, so that overlaps of exactly one half come up and the two definitions must differ there.
box = st.builds(lambda x, y, w, h: (x, y, x + w, y + h), corner, corner, side, side)
thing = st.builds(TruthBox, st.sampled_from("ab"), box, st.booleans(), st.sampled_from([None, False, True]))
scene = st.tuples(st.lists(thing, min_size=1, max_size=4), st.none() | box, st.none() | box)


@settings(deadline=None, max_examples=300)
@given(st.lists(scene, min_size=1, max_size=8))
def test_both_definitions_agree_with_the_plain_ones(scenes):
    truth = {f"{i}.jpg": things for i, (things, _, _) in enumerate(scenes)}
    files = list(truth)
    first = {file: answer for file, (_, answer, _) in zip(files, scenes) if answer is not None}
    second = {file: answer for file, (_, _, answer) in zip(files, scenes) if answer is not None}
    answers = {(file, "a"): answer for file, answer in first.items()}
    answers |= {(file, "b far"): answer for file, answer in second.items()}
    groups = {"a": ("a", files), "b far": ("b", files[: 1 + len(files) // 2])}
    measured = corloc_per_class(answers, truth, groups, replicates=10)
    assert measured.mean.value == pytest.approx(plain_per_class(answers, truth, groups))
    for hard in (True, False):
        if hard or any(not (item.difficult or item.truncated) for things in truth.values() for item in things):
            assert corloc_any_class(first, truth, hard=hard).mean.value == pytest.approx(
                plain_any_class(first, truth, hard)
            )


@settings(deadline=None)
@given(st.lists(box, min_size=1, max_size=5), st.lists(box, min_size=1, max_size=5))
def test_iou_is_the_one_of_pascal(boxes, others):
    expected = [[pascal_iou(pascal(a), pascal(b)) for b in others] for a in boxes]
    np.testing.assert_allclose(iou(np.array(boxes), np.array(others)), expected, rtol=1e-12)


def test_an_overlap_of_exactly_one_half_parts_the_definitions():
    truth = {"i.jpg": [TruthBox("a", (0, 0, 10, 10))]}
    half = (0, 0, 10, 5)
    assert iou(half, (0, 0, 10, 10)) == 0.5
    assert corloc_per_class({("i.jpg", "a"): half}, truth, {"a": ("a", ["i.jpg"])}).mean.value == 0
    assert corloc_any_class({"i.jpg": half}, truth).mean.value == 1


def test_only_the_class_itself_counts_in_the_first_and_any_in_the_second():
    truth = {"i.jpg": [TruthBox("a", (0, 0, 10, 10)), TruthBox("b", (50, 50, 60, 60), difficult=True)]}
    answer = (50, 50, 60, 60)
    assert corloc_per_class({("i.jpg", "a"): answer}, truth, {"a": ("a", ["i.jpg"])}).mean.value == 0
    assert corloc_per_class({("i.jpg", "b"): answer}, truth, {"b": ("b", ["i.jpg"])}).mean.value == 1
    assert corloc_any_class({"i.jpg": answer}, truth).mean.value == 1
    assert corloc_any_class({"i.jpg": answer}, truth, hard=False).mean.value == 0


def test_the_mean_does_not_weigh_classes_and_unanswered_images_are_misses():
    truth = {f"{i}.jpg": [TruthBox("a", (0, 0, 9, 9)), TruthBox("b", (0, 0, 9, 9))] for i in range(10)}
    answers = {("0.jpg", "a"): (0, 0, 9, 9)}
    groups = {"a": ("a", ["0.jpg"]), "b": ("b", list(truth)), "unasked": ("b", [])}
    measured = corloc_per_class(answers, truth, groups)
    assert (measured.mean.value, measured.mean.hits, measured.mean.of, measured.unanswered) == (0.5, 1, 11, 10)
    assert set(measured.groups) == {"a", "b"}


def test_the_intervals_cover_as_often_as_they_say():
    """That of a class, and that of the mean over two classes whose answers are right in the same images."""
    random = np.random.default_rng(0)
    files = [f"{i}" for i in range(80)]
    truth = {file: [TruthBox(label, (0, 0, 9, 9)) for label in "ab"] for file in files}
    groups = {label: (label, files) for label in "ab"}
    covered = np.zeros(2)
    for trial in range(200):
        right = [file for file in files if random.random() < 0.4]
        answers = {(file, label): (0, 0, 9, 9) for file in right for label in "ab"}
        measured = corloc_per_class(answers, truth, groups, replicates=200, seed=trial)
        covered += [rate.low <= 0.4 <= rate.high for rate in (measured.mean, measured.groups["a"])]
    assert ((covered / 200 >= 0.88) & (covered / 200 <= 0.99)).all()


def test_few_images_have_a_wide_interval():
    """Draws with replacement from three hits hold nothing but hits: "100% (100 to 100)" of three images."""
    truth = {f"{i}": [TruthBox("a", (0, 0, 9, 9)), TruthBox("b", (0, 0, 9, 9))] for i in range(3)}
    answers = {(file, label): (0, 0, 9, 9) for file in truth for label in "ab"}
    measured = corloc_per_class(answers, truth, {label: (label, list(truth)) for label in "ab"})
    for rate in measured.groups.values():
        # Wilson's bounds are where the normal test of a share just rejects the one that was seen.
        assert (1 - rate.low) / np.sqrt(rate.low * (1 - rate.low) / 3) == pytest.approx(1.959964, rel=1e-5)
        assert rate.high == rate.value == 1


def test_the_interval_is_reproducible_and_holds_the_value():
    truth = {f"{i}": [TruthBox("a", (0, 0, 9, 9))] for i in range(50)}
    answers = {(f"{i}", "a"): (0, 0, 9, 9) for i in range(20)}
    groups = {"a": ("a", list(truth)), "b": ("a", list(truth)[:40])}
    first, second = (corloc_per_class(answers, truth, groups, seed=3) for _ in range(2))
    assert first == second
    for rate in (first.mean, first.groups["a"]):
        assert rate.low < rate.value < rate.high


def test_nothing_to_evaluate_is_said():
    with pytest.raises(ValueError, match="nothing to evaluate"):
        corloc_per_class({}, {}, {})
    with pytest.raises(ValueError, match="nothing to evaluate"):
        corloc_any_class({}, {"i": [TruthBox("a", (0, 0, 1, 1), difficult=True)]}, hard=False)


def test_voc07_by_hand(data):
    """The middle half of every picture as the answer, counted straight from the XML in whole pixels."""
    root = data / "voc07"
    names = (root / "ImageSets" / "Main" / "train.txt").read_text().split()[:600]
    by_hand = per_class_hits = per_class_asked = 0
    truth, answers, class_answers, groups = {}, {}, {}, {}
    for name in names:
        tree = ET.parse(root / "Annotations" / f"{name}.xml")
        width, height = (int(tree.findtext(f"size/{side}")) for side in ("width", "height"))
        ours = (width // 8 + 1, height // 8 + 1, 7 * width // 8, 7 * height // 8)  # one-based, inclusive
        things, hit = [], set()
        for node in tree.iter("object"):
            theirs = tuple(int(node.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
            across = min(ours[2], theirs[2]) - max(ours[0], theirs[0]) + 1
            down = min(ours[3], theirs[3]) - max(ours[1], theirs[1]) + 1
            common = max(across, 0) * max(down, 0)
            total = sum((b[2] - b[0] + 1) * (b[3] - b[1] + 1) for b in (ours, theirs)) - common
            label = node.findtext("name")
            if 2 * common >= total:
                hit.add("any")
            if 2 * common > total:
                hit.add(label)
            things.append(TruthBox(label, (theirs[0] - 1, theirs[1] - 1, theirs[2], theirs[3])))
        by_hand += "any" in hit
        truth[name] = things
        answers[name] = (ours[0] - 1, ours[1] - 1, ours[2], ours[3])
        for label in {item.label for item in things}:
            groups.setdefault(label, (label, []))[1].append(name)
            class_answers[name, label] = answers[name]
            per_class_asked += 1
            per_class_hits += label in hit
    measured = corloc_any_class(answers, truth)
    assert (measured.mean.hits, measured.mean.of) == (by_hand, len(names))
    assert 100 < by_hand < 500
    paper = corloc_per_class(class_answers, truth, groups)
    assert (paper.mean.hits, paper.mean.of) == (per_class_hits, per_class_asked)
