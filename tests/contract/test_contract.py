"""What every classifier must do, run against all of them.

A new method is tested by registering it in ``bagwise.all_estimators``. Parameters that make it small enough for
hundreds of fits stand in QUICK; checks that a method cannot pass stand in EXPECTED_FAILURES, each with its reason.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.contract.tables import EXPECTED_FAILURES, ORDER_OF_BAGS_MATTERS, QUICK
from tests.problems import concept_problem

import bagwise
from bagwise import Bags, InstanceScaler
from bagwise.all_estimators import classifiers, deep_classifiers
from bagwise.base import InstanceScorer


def make(kind: type):
    model = kind(**QUICK.get(kind.__name__, {}))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


ALL = [make(kind) for kind in [*classifiers(), *deep_classifiers()]]
every_classifier = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


@parametrize_with_checks(ALL, expected_failed_checks=lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def as_csr(bags: Bags) -> Bags:
    return bags.with_instances(sparse.csr_array(bags.instances))


@every_classifier
class TestContract:
    def test_learns(self, model):
        bags, y = concept_problem(60)
        unseen, truth = concept_problem(40, seed=1)
        assert clone(model).fit(bags, y).score(unseen, truth) >= 0.7

    def test_order_of_instances_in_a_bag_does_not_matter(self, model):
        bags, y = concept_problem()
        rng = np.random.RandomState(3)
        shuffled = Bags([bag[rng.permutation(len(bag))] for bag in bags])
        fitted = clone(model).fit(bags, y)
        np.testing.assert_allclose(
            fitted.decision_function(bags), fitted.decision_function(shuffled), rtol=1e-6, atol=1e-8
        )
        refitted = clone(model).fit(shuffled, y)
        agree = np.mean(refitted.predict(bags) == fitted.predict(bags))
        assert agree >= 0.95

    def test_order_of_bags_does_not_matter(self, model):
        bags, y = concept_problem()
        order = np.random.RandomState(3).permutation(len(bags))
        fitted = clone(model).fit(bags, y)
        np.testing.assert_allclose(
            fitted.decision_function(bags)[order], fitted.decision_function(bags[order]), rtol=1e-6, atol=1e-8
        )
        refitted = clone(model).fit(bags[order], y[order])
        if type(model).__name__ in ORDER_OF_BAGS_MATTERS:
            assert np.mean(refitted.predict(bags) == fitted.predict(bags)) >= 0.9
        else:
            np.testing.assert_allclose(
                refitted.decision_function(bags), fitted.decision_function(bags), rtol=1e-3, atol=1e-3
            )

    def test_dense_equals_csr(self, model):
        bags, y = concept_problem()
        if not model.accepts_sparse:
            with pytest.raises(TypeError, match="sparse"):
                clone(model).fit(as_csr(bags), y)
            return
        # Centring is not done to sparse columns, so compare without it.
        model = clone(model)
        if "scaling" in model.get_params():
            model.set_params(scaling="unit")
        dense = clone(model).fit(bags, y)
        csr = clone(model).fit(as_csr(bags), y)
        # Sums in another order move the last bits, and stochastic methods make them a little larger.
        tolerance = 1e-2 if type(model).__name__ in ORDER_OF_BAGS_MATTERS else 1e-4
        np.testing.assert_allclose(
            csr.decision_function(as_csr(bags)), dense.decision_function(bags), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            dense.decision_function(as_csr(bags)), dense.decision_function(bags), rtol=1e-6, atol=1e-8
        )

    def test_list_equals_bags_equals_cube(self, model):
        rng = np.random.RandomState(0)
        cube = rng.randn(30, 3, 4)
        y = np.arange(30) % 2
        cube[y == 1, 0, 0] += 5
        scores = [
            clone(model).fit(form, y).decision_function(form)
            for form in (cube, list(cube), Bags(cube), Bags(list(cube)))
        ]
        for other in scores[1:]:
            np.testing.assert_array_equal(scores[0], other)

    def test_float32_is_close_to_float64(self, model):
        bags, y = concept_problem()
        single = bags.with_instances(bags.instances.astype(np.float32))
        double = single.with_instances(single.instances.astype(np.float64))
        a, b = clone(model).fit(single, y), clone(model).fit(double, y)
        assert np.mean(a.predict(single) == b.predict(double)) >= 0.95
        np.testing.assert_allclose(b.decision_function(single), b.decision_function(double), rtol=1e-3, atol=1e-3)

    def test_same_seed_gives_the_same_bits(self, model):
        bags, y = concept_problem()
        a, b = (clone(model).fit(bags, y).decision_function(bags) for _ in range(2))
        np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("names", [("no", "yes"), (-1, 1), (False, True), (3.0, 7.0)])
    def test_labels_of_any_kind(self, model, names):
        bags, y = concept_problem()
        plain = clone(model).fit(bags, y).predict(bags)
        named = clone(model).fit(bags, np.array(names)[y]).predict(bags)
        np.testing.assert_array_equal(named, np.array(names)[plain])

    def test_multi_class(self, model):
        bags, y = concept_problem(90, n_classes=3)
        names = np.array(["none", "one", "two"])
        fitted = clone(model).fit(bags, names[y])
        assert fitted.decision_function(bags).shape == (90, 3)
        assert fitted.score(bags, names[y]) >= 0.6
        proba = fitted.predict_proba(bags)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        if isinstance(fitted, InstanceScorer):
            assert fitted.instance_scores(bags).shape == (bags.n_instances, 3)

    def test_instance_scores_find_the_concept(self, model):
        if not isinstance(model, InstanceScorer):
            assert not hasattr(model, "instance_scores")
            return
        bags, y = concept_problem(60)
        scores = clone(model).fit(bags, y).instance_scores(bags)
        assert scores.shape == (bags.n_instances,)
        assert np.isfinite(scores).all()
        moved = [np.argmax(bag[:, 0]) for bag in bags]
        hits = [np.argmax(s) == m for s, m, label in zip(bags.split(scores), moved, y) if label]
        assert np.mean(hits) >= 0.7

    def test_zero_weight_is_absence(self, model):
        bags, y = concept_problem()
        weight = np.ones(len(y))
        weight[:5] = 0
        with_zero = clone(model).fit(bags, y, sample_weight=weight)
        without = clone(model).fit(bags[5:], y[5:])
        np.testing.assert_array_equal(with_zero.decision_function(bags), without.decision_function(bags))

    def test_pipeline_grid_search_cross_validation_calibration(self, model):
        bags, y = concept_problem()
        pipeline = make_pipeline(InstanceScaler("standard"), clone(model))
        assert pipeline.fit(bags, y).score(bags, y) >= 0.6
        assert cross_val_score(clone(model), bags, y, cv=3).shape == (3,)
        name, value = next(iter(model.get_params(deep=False).items()))
        search = GridSearchCV(clone(model), {name: [value]}, cv=2).fit(bags, y)
        assert search.best_score_ > 0.4
        proba = CalibratedClassifierCV(clone(model), cv=2).fit(bags, y).predict_proba(bags)
        assert proba.shape == (len(y), 2)

    def test_survives_pickle_and_our_own_file(self, model, tmp_path):
        bags, y = concept_problem(n_classes=3)
        names = np.array(["a", "b", "ü"])
        fitted = clone(model).fit(bags, names[y])
        scores = fitted.decision_function(bags)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(bags), scores)
        if type(model).__name__ == "SingleInstance":
            with pytest.raises(TypeError, match="cannot be saved safely"):
                bagwise.save(fitted, tmp_path / "model.bagwise")
            assert list(tmp_path.iterdir()) == []
            return
        bagwise.save(fitted, tmp_path / "model.bagwise")
        loaded = bagwise.load(tmp_path / "model.bagwise")
        np.testing.assert_array_equal(loaded.decision_function(bags), scores)
        np.testing.assert_array_equal(loaded.predict(bags), fitted.predict(bags))
        assert loaded.get_params() == fitted.get_params()

    def test_bad_input(self, model):
        bags, y = concept_problem()
        fitted = clone(model).fit(bags, y)
        with pytest.raises(ValueError, match="features"):
            fitted.predict(Bags([np.zeros((2, 3))]))
        with pytest.raises(ValueError, match="bag 1 is empty"):
            clone(model).fit([np.zeros((2, 3)), np.zeros((0, 3))], [0, 1])
        with pytest.raises(ValueError, match="bag 1, row 0"):
            clone(model).fit([np.zeros((2, 3)), np.full((1, 3), np.nan)], [0, 1])
        with pytest.raises(ValueError, match="only one class"):
            clone(model).fit(bags, np.zeros(len(y)))
        with pytest.raises(ValueError, match="40 bags but 3 labels"):
            clone(model).fit(bags, [0, 1, 0])

    def test_hard_data_gives_finite_results(self, model, recwarn):
        """Constant columns, duplicated instances and bags of very different size; nothing may warn."""
        rng = np.random.RandomState(0)
        tables = [np.repeat(rng.randn(1, 4), rng.choice([1, 3, 150]), axis=0) for _ in range(16)]
        for table in tables:
            table[:, 3] = 7.0
        y = np.arange(16) % 2
        fitted = clone(model).fit(Bags(tables), y)
        assert np.isfinite(fitted.decision_function(Bags(tables))).all()
        assert [str(w.message) for w in recwarn if "bagwise" in w.filename] == []
