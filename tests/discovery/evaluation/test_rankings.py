"""All boxes in the order of the run's models, against the scores computed one image at a time."""

import numpy as np
import pytest
from tests.discovery.runs import FILES, make_run

import bagwise
from bagwise.discovery.evaluation.protocols import Protocol
from bagwise.discovery.evaluation.rankings import answers_first, kept_boxes, method_of, proposed_boxes, scored_boxes
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.localize import localize, rivals_of
from bagwise.discovery.learning.models import Recipe
from bagwise.discovery.learning.scoring import RIVALRY
from bagwise.discovery.run.models import images_of, load_models
from bagwise.discovery.run.settings import Settings

PRIOR_MEAN, PRIOR_WEIGHT = -1.5, 2.0


@pytest.fixture
def run(tmp_path):
    settings = Settings(recipe=Recipe(prior_weight=PRIOR_WEIGHT)).as_dict()
    learnt = {"prior_mean": PRIOR_MEAN, "calibration": {"cat": [1, 0], "dog": [1, 0]}, "trust": {"cat": 1, "dog": 1}}
    run, _ = make_run(tmp_path, settings=settings, learnt=learnt)
    random = np.random.default_rng(0)
    with FeatureStore(run.store_path, {"of": "test"}) as store:
        for number, file in enumerate(FILES):
            n = 5 + number
            corner = random.uniform(0, 50, (n, 2))
            boxes = np.hstack([corner, corner + random.uniform(5, 50, (n, 2))])
            store.write(file, (120, 100), boxes, random.uniform(0.05, 0.5, n), random.normal(size=(n, 4)))
    for label in ("cat", "dog"):
        bags = bagwise.Bags([random.normal(size=(6, 4)) + (i % 2) for i in range(20)])
        model = bagwise.RMISVC(epochs=5, random_state=0).fit(bags, np.arange(20) % 2)
        run.model_path(label).parent.mkdir(exist_ok=True)
        bagwise.save(model, run.model_path(label))
    return run


CHOSEN = Protocol("labels", {"cat": ("cat", FILES[:3]), "dog": ("dog", FILES[3:5])})
BOTH = FILES[6:]  # they show a cat and a dog
RIVALS = Protocol("labels", {"cat": ("cat", BOTH), "dog": ("dog", BOTH)})


def looks_and_prior(run, file, label):
    """Plainly, one image at a time: the model's score of each box, and its objectness in the same units."""
    store, model = FeatureStore(run.store_path), bagwise.load(run.model_path(label))
    looks = model.instance_scores(bagwise.Bags([store.features(file)]))
    return looks, PRIOR_WEIGHT * (np.log(store.boxes(file)[1]) - PRIOR_MEAN)


def test_models_order_the_boxes_with_the_prior(run):
    ranked = scored_boxes(run, CHOSEN)
    assert set(ranked) == {(file, "cat") for file in FILES[:3]} | {(file, "dog") for file in FILES[3:5]}
    for (file, label), boxes in ranked.items():
        looks, prior = looks_and_prior(run, file, label)
        np.testing.assert_array_equal(boxes, FeatureStore(run.store_path).boxes(file)[0][np.argsort(-looks - prior)])


def test_a_box_that_looks_like_the_other_class_of_its_image_comes_later(run):
    ranked = scored_boxes(run, RIVALS)
    moved = 0
    for (file, label), boxes in ranked.items():
        looks, prior = looks_and_prior(run, file, label)
        rival, _ = looks_and_prior(run, file, "dog" if label == "cat" else "cat")
        own = FeatureStore(run.store_path).boxes(file)[0]
        np.testing.assert_array_equal(boxes, own[np.argsort(-(looks + prior - RIVALRY * rival))])
        moved += (boxes != own[np.argsort(-looks - prior)]).any()
    assert moved, "the rival changed no order, so this test shows nothing"


@pytest.mark.parametrize("rivalry", [True, False])
def test_the_first_box_is_the_answer_that_the_run_gives(run, rivalry):
    run.manifest["settings"]["rivalry"] = rivalry
    models, images, store = load_models(run), images_of(run), FeatureStore(run.store_path)
    ranked = scored_boxes(run, RIVALS)
    for label, model in models.items():
        rivals = rivals_of(images, list(models.values()), label) if rivalry else None
        for answer in localize(store, model, BOTH, rivals=rivals):
            if answer.rank == 0:
                np.testing.assert_array_equal(ranked.pop((answer.file, label))[0], np.float32(answer.box))
    assert not ranked


def test_a_class_without_a_model_goes_by_objectness(run):
    run.model_path("dog").unlink()
    ranked, proposed = scored_boxes(run, CHOSEN), proposed_boxes(run, CHOSEN)
    for file in FILES[3:5]:
        np.testing.assert_array_equal(ranked[file, "dog"], proposed[file, "dog"])
    run.model_path("cat").unlink()
    assert scored_boxes(run, CHOSEN) == {}, "no models are kept here, so nobody knows the scores"


def test_objectness_alone_orders_the_same_boxes(run):
    ranked = proposed_boxes(run, CHOSEN)
    assert len(ranked) == 5
    own, objectness = FeatureStore(run.store_path).boxes(FILES[3])
    np.testing.assert_array_equal(ranked[FILES[3], "dog"], own[np.argsort(-objectness)])


def test_a_run_without_store_has_the_boxes_it_kept(tmp_path):
    run, _ = make_run(tmp_path)
    assert scored_boxes(run, CHOSEN) == proposed_boxes(run, CHOSEN) == {}
    kept = kept_boxes(run)
    assert all(len(boxes) == 5 for boxes in kept.values())
    first = [row for row in run.boxes.to_pylist() if row["image_id"] == 1]
    np.testing.assert_allclose(kept[FILES[0], "cat"][:, 0], [row["x1"] for row in first])


@pytest.mark.parametrize(
    ("method", "written"),
    [("RMISVC", "RMI-SVM"), ("MiSVC", "mi-SVM"), ("edge-boxes", "Edge Boxes"), ("EMDD", "EMDD")],
)
def test_methods_are_written_as_in_the_literature(tmp_path, method, written):
    run, _ = make_run(tmp_path, settings={"recipe": {"method": method}})
    assert method_of(run) == written


def test_answers_come_before_what_scores_say():
    scored = {("a", "cat"): np.array([[0, 0, 5, 5], [1, 1, 9, 9], [20, 20, 30, 30]], np.float32)}
    answers = {("a", "cat"): np.array([[20, 20, 30, 30]], np.float32)}
    ranked = answers_first(answers, scored)["a", "cat"]
    np.testing.assert_array_equal(ranked, scored["a", "cat"][[2, 0, 1]])
    np.testing.assert_array_equal(answers_first({}, scored)["a", "cat"], scored["a", "cat"])
