"""Learning all classes at once on a card makes the models that learning them one by one makes."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra [gpu] is not installed")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
pytest.importorskip("triton", reason="triton, which runs the kernels for cards, is not installed")

from bagwise.discovery.features.store import FeatureStore  # noqa: E402
from bagwise.discovery.learning.learn import Lesson, learn_class, learned, said_of_unseen  # noqa: E402
from bagwise.discovery.learning.models import Objectness, Recipe, bags_of, fit_model  # noqa: E402
from bagwise.discovery.learning.on_card import boxes_on_card, chosen_boxes, fit_lessons  # noqa: E402
from bagwise.discovery.sources.imageset import ImageSet  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RECIPE = Recipe(steps=20)  # the interpreter takes a tenth of a second for each


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images of uneven numbers of boxes, in which class "a" points along the first axis and "b" along the second."""
    rng = np.random.default_rng(0)
    store = FeatureStore(tmp_path_factory.mktemp("images") / "store", {"test": True})
    files, labels = [], []
    with store:
        for number in range(14):
            shown = (("a",), ("b",), ("a", "b"), ())[number % 4]
            count = int(rng.integers(2, 7))
            features = rng.normal(size=(count, 7)).astype(np.float32)
            for axis, label in enumerate("ab"):
                if label in shown:
                    features[axis, axis] += 3
            corner = rng.uniform(0, 20, (count, 2))
            boxes = np.hstack([corner, corner + rng.uniform(5, 20, (count, 2))]).astype(np.float32)
            files.append(f"{number}.jpg")
            labels.append(shown)
            store.write(files[-1], (40, 40), boxes, rng.uniform(0.01, 1, count).astype(np.float32), features)
    return ImageSet(Path("."), files, labels), store, Objectness.of_store(store, files, 2.0)


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        replace(RECIPE, refit=False, average=False, sampling="uniform", radius=None),
        replace(RECIPE, radius="safe"),
    ],
    ids=["default", "as published", "safe"],
)
def test_the_models_are_those_of_the_cpu(images, recipe):
    images, store, prior = images
    lessons = [Lesson.of(images, store, label, recipe) for label in "ab"]
    found = fit_lessons(store, lessons, prior, DEVICE)
    for lesson, models in zip(lessons, found):
        assert len(models) == len(lesson.fits()) == 1 + 7  # so few images are held out one by one
        bags = bags_of(store, lesson.files, prior)
        for (rows, steps), model in list(zip(lesson.fits(), models))[:3]:
            expected = fit_model(replace(recipe, steps=steps), bags[rows], lesson.shown[rows])
            np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(
                model.instance_scores(bags), expected.instance_scores(bags), rtol=1e-4, atol=1e-3
            )
            assert model.get_params() == expected.get_params()
            assert (model.n_steps_, model.lam_, model.pooling_) == (steps, expected.lam_, expected.pooling_)


def test_a_class_learned_from_them_is_that_of_the_cpu(images):
    images, store, prior = images
    lesson = Lesson.of(images, store, "a", RECIPE)
    one = learn_class(images, store, "a", RECIPE, prior)
    models = fit_lessons(store, [lesson], prior, DEVICE)[0]
    said = [said_of_unseen(store, lesson, fold, model, prior) for fold, model in enumerate(models[1:])]
    two = learned(lesson, models, prior, said)
    assert two.calibration.images == one.calibration.images == 7
    assert two.held_out.keys() == one.held_out.keys()
    np.testing.assert_allclose(two.calibration.shown_slope, one.calibration.shown_slope, rtol=1e-2)


def test_a_class_of_every_image_has_no_models(images):
    images, store, prior = images
    everywhere = ImageSet(images.root, images.files, [("c",)] * len(images))
    lesson = Lesson.of(everywhere, store, "c", RECIPE)
    assert lesson.nothing
    assert fit_lessons(store, [lesson], prior, DEVICE) == [[]]
    assert learned(lesson, [], prior, []).model is None


def test_chosen_boxes_are_the_best_of_each_image(images):
    images, store, prior = images
    lesson = Lesson.of(images, store, "b", RECIPE)
    bags = bags_of(store, lesson.files, prior)
    model = fit_model(RECIPE, bags, lesson.shown)
    chosen = chosen_boxes(boxes_on_card(store, lesson.files, prior, DEVICE), [model, model])
    scores = model.instance_scores(bags)
    best = [start + scores[start:stop].argmax() for start, stop in zip(bags.offsets, bags.offsets[1:])]
    np.testing.assert_array_equal(chosen, np.repeat(np.array(best)[:, None], 2, axis=1))
