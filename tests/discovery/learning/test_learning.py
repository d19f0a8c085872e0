"""Learning classes and choosing boxes, on stores whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

import bagwise
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning import models as learning
from bagwise.discovery.learning.confidence import Calibration, agreement_curve
from bagwise.discovery.learning.learn import agreed_among, learn_class
from bagwise.discovery.learning.localize import localize, objects_among, rivals_of
from bagwise.discovery.learning.models import (
    ClassModel,
    Objectness,
    Recipe,
    bags_of,
    examples,
    make_model,
    refit_on_choices,
)
from bagwise.discovery.learning.scoring import score_images
from bagwise.discovery.learning.snapshots import snapshots_of_class
from bagwise.discovery.sources.imageset import ImageSet

BOXES = 12
RECIPE = Recipe(steps=1500)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Forty photographs; box 3 of those of class "a" points along the first axis, box 5 of "b" along the second."""
    rng = np.random.default_rng(0)
    store = FeatureStore(tmp_path_factory.mktemp("known") / "store", {"test": True})
    files, labels = [], []
    grid = np.array([[x, y, x + 8, y + 8] for y in (0, 10, 20) for x in (0, 10, 20, 30)], np.float32)
    with store:
        for number in range(40):
            shown = (("a",), ("b",), ("a", "b"), ("c",))[number % 4]
            features = rng.normal(size=(BOXES, 16)).astype(np.float32) / 4
            for label, box, axis in (("a", 3, 0), ("b", 5, 1)):
                if label in shown:
                    features[box] = 0
                    features[box, axis] = 1.5
            files.append(f"{number}.jpg")
            labels.append(shown)
            store.write(files[-1], (40, 30), grid, np.full(BOXES, 0.1, np.float32), features)
    return ImageSet(Path("."), files, labels), store


def test_the_box_that_explains_the_label_is_found(known):
    images, store = known
    prior = Objectness.of_store(store, images.files, 2.0)
    model = learn_class(images, store, "a", RECIPE, prior)
    shown = [file for file, labels in zip(images.files, images.labels) if "a" in labels]
    bags = bags_of(store, shown, prior)
    chosen = [int(np.argmax(scores)) for scores in bags.split(model.scores(bags))]
    assert chosen == [3] * len(shown)
    probability = {i.file: model.calibration.shown(i.presence) for i in score_images(store, model, images.files)}
    assert np.mean([probability[file] for file in shown]) > 0.6
    assert np.mean([probability[file] for file in images.files if file not in shown]) < 0.4


def test_same_seed_same_model(known):
    images, store = known
    prior = Objectness.of_store(store, images.files, 2.0)
    one, two = (learn_class(images, store, "b", RECIPE, prior) for _ in range(2))
    np.testing.assert_array_equal(one.model.coef_, two.model.coef_)
    assert one.calibration == two.calibration
    np.testing.assert_array_equal(one.agreement, two.agreement)


def test_classes_of_a_run_share_what_agreement_tells(known):
    images, store = known
    prior = Objectness.of_store(store, images.files, 2.0)
    alone = [learn_class(images, store, label, RECIPE, prior) for label in ("a", "b")]
    shared = agreed_among(alone)
    curve = agreement_curve([model.agreement for model in alone])
    for before, after in zip(alone, shared):
        assert len(before.agreement.log_odds) == before.calibration.images
        assert after.calibration == before.calibration.agreeing(curve)
        assert after.calibration.shown_slope == before.calibration.shown_slope
    unlearned = ClassModel("c", None, Calibration(), prior)
    assert agreed_among([unlearned])[0].calibration == Calibration()


@pytest.mark.parametrize("method", ["MISVC", "MI-SVM", "MultiFoldSVC", "edge-boxes"])
def test_other_methods(known, method):
    images, store = known
    prior = Objectness.of_store(store, images.files, 2.0)
    model = learn_class(images, store, "a", Recipe(method=method), prior)
    bags = bags_of(store, [file for file, labels in zip(images.files, images.labels) if "a" in labels], prior)
    scores = model.scores(bags)
    if method == "edge-boxes":
        np.testing.assert_array_equal(scores, bags.prior)
    else:
        assert [int(np.argmax(part)) for part in bags.split(scores)] == [3] * 20


def test_examples_leave_out_what_is_unsure(known, monkeypatch):
    images, store = known
    unsure = [("a",) if labels == ("c",) else () for labels in images.labels]
    doubtful = ImageSet(images.root, images.files, images.labels, unsure=unsure)
    shown, absent = examples(doubtful, store, "a", seed=0)
    by_file = dict(zip(doubtful.files, doubtful.labels))
    assert all("a" in by_file[file] for file in shown)
    assert {by_file[file] for file in absent} == {("b",)}
    monkeypatch.setattr(learning, "MOST_BAGS", 5)
    shown, absent = examples(images, store, "a", seed=0)
    assert (len(shown), len(absent)) == (5, 5)
    assert examples(images, store, "a", seed=0) == (shown, absent)


def test_objectness():
    prior = Objectness(mean=-1.0, weight=2.0)
    np.testing.assert_allclose(prior(np.exp(np.array([-1.0, 0.5]))), [0, 3], atol=1e-12)


def test_refit_by_the_definition(known):
    images, store = known
    bags = store.bags(images.files)
    y = np.array(["a" in labels for labels in images.labels])
    model = make_model(RECIPE).fit(bags, y)
    before, intercept, scores = model.coef_.copy(), model.intercept_.copy(), model.instance_scores(bags)
    refit_on_choices(model, bags, y, seed=0)
    x = bags.instances.astype(float)
    chosen = x[[12 * bag + int(np.argmax(scores[12 * bag : 12 * bag + 12])) for bag in np.flatnonzero(y)]]
    covariance = np.cov(x.T, bias=True)
    w = np.linalg.inv(covariance + np.trace(covariance) / 16 * np.eye(16)) @ (chosen.mean(axis=0) - x.mean(axis=0))
    w /= (x @ w).std()
    np.testing.assert_allclose(model.coef_[0], 0.4 * (before[0] + w), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, 0.4 * (intercept - w @ x.mean(axis=0)), rtol=1e-4, atol=1e-5)


def test_snapshots_settle(known):
    images, store = known
    prior = Objectness.of_store(store, images.files, 2.0)
    rows = snapshots_of_class(images, store, "a", RECIPE, prior, steps=(0, 500))
    assert {steps for steps, _, _ in rows} == {0, 500}
    assert len(rows) == 40
    key = store.boxes("0.jpg")[0][3]
    hits = {count: [np.array_equal(box, key) for steps, _, box in rows if steps == count] for count in (0, 500)}
    assert np.mean(hits[500]) > 0.9 > np.mean(hits[0])
    assert snapshots_of_class(images, store, "a", Recipe(method="MISVC"), prior) == []


def linear(label, axis):
    """A class whose score is one feature."""
    model = bagwise.RMISVC(max_steps=1, scaling=None).fit([np.zeros((1, 16)), np.ones((1, 16))], [0, 1])
    model.coef_, model.intercept_ = np.zeros((1, 16)), np.zeros(1)
    model.coef_[0, axis] = 2
    return ClassModel(label, model, Calibration(2.0, -3.0, 1.0, 0.0, 20), Objectness(np.log(0.1), 1.0))


def test_answers(known):
    _, store = known
    found = list(localize(store, linear("a", 0), ["0.jpg", "1.jpg"], max_objects=3))
    first = [answer for answer in found if answer.file == "0.jpg"]
    assert [answer.rank for answer in first] == list(range(len(first)))
    assert first[0].kind == "object"
    assert first[0].box == tuple(store.boxes("0.jpg")[0][3])
    assert first[0].confidence == max(answer.confidence for answer in first)
    scores = [answer.score for answer in first if answer.kind == "alternative"]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 5
    # A photograph that nobody labelled gets an answer only where the model is confident.
    assert {a.file for a in localize(store, linear("a", 0), ["0.jpg", "1.jpg"], at_least=0.5)} == {"0.jpg"}


def test_several_objects_do_not_overlap_and_are_sure(tmp_path):
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10], [40, 0, 50, 10]], np.float32)
    features = np.zeros((4, 16), np.float32)
    features[:, 0] = [2, 1.9, 1.8, 0.1]
    features[:, 5] = 2
    with FeatureStore(tmp_path, {}) as store:
        store.write("x", (60, 20), boxes, np.full(4, 0.1, np.float32), features)
    objects = [a.box[0] for a in localize(store, linear("a", 0), ["x"], max_objects=3) if a.kind == "object"]
    assert objects == [0, 20]  # box 1 is the same object as box 0; box 3 looks less like the class


def test_parts_of_an_object_and_what_holds_it_are_no_objects():
    boxes = np.array([[0, 0, 40, 40], [5, 5, 15, 15], [0, 0, 90, 90], [60, 60, 80, 80], [50, 0, 70, 20]], float)
    scores, alone = np.array([9.0, 8, 7, 6, 5]), np.array([2.0, 2, 2, 1.6, 1.0])
    assert objects_among(boxes, scores, alone, 5).tolist() == [0, 3]
    assert objects_among(boxes, scores, alone, 1).tolist() == [0]
    assert objects_among(boxes, scores, alone + np.eye(5)[4], 5).tolist() == [0, 3, 4]
    assert objects_among(boxes, scores, alone + 1.5 * np.eye(5)[4], 5).tolist() == [0, 4]  # now 3 is far from the most


def test_rivals_take_their_boxes(tmp_path):
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10]], np.float32)
    features = np.zeros((2, 16), np.float32)
    features[0, :2] = 1, 2  # looks a little more like a, and very much like b
    features[1, 0] = 0.9
    with FeatureStore(tmp_path, {}) as store:
        for name in ("alone", "both"):
            store.write(name, (40, 10), boxes, np.full(2, 0.1, np.float32), features)
    images = ImageSet(Path("."), ["alone", "both"], [("a",), ("a", "b")])
    models = [linear("a", 0), linear("b", 1)]
    rivals = rivals_of(images, models, "a")
    assert list(rivals) == ["both"]
    best = {a.file: a.box[0] for a in localize(store, models[0], images.files, rivals=rivals) if a.rank == 0}
    assert best == {"alone": 0, "both": 20}


@pytest.mark.parametrize("method", ["SingleInstance", "CitationKNN", "SIL", "SVM"])
def test_methods_that_cannot_use_objectness_are_refused_before_the_work(method):
    with pytest.raises(ValueError, match=r"there is no method .* objectness of boxes: use one of .*RMISVC.*edge-boxes"):
        learning.check_method(Recipe(method=method).method)
