"""What the base class does for every method: names of columns, the positive class, weights, prior, warnings."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.problems import concept_problem

from bagwise import APR, MISVC, RMISVC, Bags, CitationKNN, MiFV, MIKernelSVC, SingleInstance
from bagwise.base import PositiveClassWarning, RowsNotBagsWarning
from bagwise.datasets import load_musk1

NAMES = list("abcde")


def named(bags: Bags, names=NAMES) -> Bags:
    """The same bags with the columns of these names, which are NAMES in some order."""
    return bags.with_instances(bags.instances[:, [NAMES.index(name) for name in names]], feature_names=names)


class TestFeatureNames:
    @pytest.mark.parametrize("model", [RMISVC(random_state=0), CitationKNN(), MiFV(random_state=0)])
    def test_columns_are_found_by_name(self, model):
        bags, y = concept_problem()
        fitted = clone(model).fit(named(bags), y)
        assert fitted.feature_names_in_.tolist() == NAMES
        shuffled = named(bags, list("cadeb"))
        np.testing.assert_array_equal(fitted.decision_function(shuffled), fitted.decision_function(named(bags)))
        np.testing.assert_array_equal(clone(model).fit(bags, y).predict(bags), fitted.predict(shuffled))

    def test_from_frame_in_another_order(self):
        """What was 0.93 and then 0.52 when columns had no names."""
        bags, y = load_musk1()
        columns = [f"f{i}" for i in range(bags.n_features)]
        frame = pd.DataFrame(bags.instances, columns=columns).assign(mol=bags.bag_of_instance)
        model = RMISVC(random_state=0).fit(Bags.from_frame(frame, bag="mol"), y)
        other = Bags.from_frame(frame[["mol", *np.random.RandomState(0).permutation(columns)]], bag="mol")
        assert model.score(other, y) == model.score(Bags.from_frame(frame, bag="mol"), y) > 0.85

    def test_a_list_of_frames_keeps_names(self):
        bags, y = concept_problem()
        model = RMISVC(random_state=0).fit([pd.DataFrame(bag, columns=NAMES) for bag in bags], y)
        other = [pd.DataFrame(bag, columns=NAMES)[list("edcba")] for bag in bags]
        np.testing.assert_array_equal(model.predict(other), model.predict(named(bags)))

    def test_missing_and_unknown_columns_are_named(self):
        bags, y = concept_problem()
        model = RMISVC(random_state=0).fit(named(bags), y)
        renamed = Bags(bags, feature_names=["a", "b", "c", "d", "z"])
        with pytest.raises(ValueError, match=r"X lacks 'e' and has 'z', but RMISVC was fitted with other columns"):
            model.predict(renamed)
        more = bags.with_instances(np.hstack([bags.instances] * 2), feature_names=list("abcdefghij"))
        with pytest.raises(ValueError, match=r"X has 'f', 'g', 'h', 'i', 'j', but RMISVC was not fitted with"):
            model.predict(more)

    def test_names_on_one_side_only_give_a_warning(self):
        bags, y = concept_problem()
        with pytest.warns(UserWarning, match="X does not have feature names, but RMISVC was fitted with feature names"):
            RMISVC(random_state=0).fit(named(bags), y).predict(bags)
        with pytest.warns(UserWarning, match="X has feature names, but RMISVC was fitted without feature names"):
            RMISVC(random_state=0).fit(bags, y).predict(named(bags))


class TestPositiveClass:
    @pytest.mark.parametrize("model", [RMISVC(random_state=0), MISVC(random_state=0), APR(), CitationKNN()])
    def test_the_name_of_a_class_does_not_matter(self, model):
        bags, y = load_musk1()
        train, test = np.arange(92) % 3 > 0, np.arange(92) % 3 == 0
        plain = clone(model).fit(bags[train], y[train])
        words = np.where(y == 1, "active", "inactive")
        renamed = clone(model).set_params(positive="active").fit(bags[train], words[train])
        assert renamed.score(bags[test], words[test]) == plain.score(bags[test], y[test]) > 0.6
        assert renamed.classes_.tolist() == ["active", "inactive"]
        assert renamed.positive_class_ == "active"
        # scikit-learn's scores are those of classes_[1]; the scores of instances are those of the positive class.
        np.testing.assert_array_equal(renamed.decision_function(bags), -plain.decision_function(bags))
        np.testing.assert_array_equal(renamed.predict_proba(bags), plain.predict_proba(bags)[:, ::-1])
        if hasattr(model, "instance_scores"):
            np.testing.assert_array_equal(renamed.instance_scores(bags), plain.instance_scores(bags))

    def test_a_choice_between_words_is_said(self):
        bags, y = concept_problem()
        with pytest.warns(PositiveClassWarning, match="'no' and 'yes', and 'yes' is taken for the positive class"):
            model = RMISVC().fit(bags, np.array(["no", "yes"])[y])
        assert model.positive_class_ == "yes"
        with warnings.catch_warnings():
            warnings.simplefilter("error", PositiveClassWarning)
            RMISVC(positive="yes").fit(bags, np.array(["no", "yes"])[y])
            for plain in (y, y.astype(bool), y + 3.0, np.array(["a", "b", "c"])[np.arange(40) % 3]):
                RMISVC(max_steps=1).fit(bags, plain)

    def test_streams_know_it_too(self):
        bags, y = concept_problem()
        words = np.where(y == 1, "active", "inactive")
        plain = RMISVC(lam=0.01, random_state=0).partial_fit(bags, y, classes=[0, 1])
        renamed = RMISVC(lam=0.01, positive="active", random_state=0)
        renamed.partial_fit(bags, words, classes=["active", "inactive"])
        np.testing.assert_array_equal(renamed.predict(bags) == "active", plain.predict(bags) == 1)

    @pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "yes"]])
    def test_what_it_cannot_be(self, labels):
        bags, _ = concept_problem()
        with pytest.raises(ValueError, match=r"positive='yes' must be one of two labels, but the labels are \['a'"):
            RMISVC(positive="yes").fit(bags, np.resize(labels, 40))


class TestPrior:
    def test_methods_that_cannot_use_it_say_so(self):
        bags, y = concept_problem()
        with_prior = bags.with_prior(np.zeros(bags.n_instances))
        fitted = CitationKNN().fit(bags, y)
        for act in (lambda: CitationKNN().fit(with_prior, y), lambda: fitted.predict(with_prior)):
            with pytest.raises(ValueError, match=r"CitationKNN cannot use the prior of the bags: .*with_prior\(None\)"):
                act()
        np.testing.assert_array_equal(fitted.predict(with_prior.with_prior(None)), fitted.predict(bags))

    def test_others_use_it(self):
        bags, y = concept_problem()
        prior = np.random.RandomState(0).randn(bags.n_instances)
        model = RMISVC(random_state=0).fit(bags, y)
        np.testing.assert_allclose(
            model.instance_scores(bags.with_prior(prior)), model.instance_scores(bags) + prior, rtol=1e-10, atol=1e-10
        )


class TestClassWeight:
    @pytest.mark.parametrize("model", [MIKernelSVC(), SingleInstance(), MiFV(random_state=0)])
    def test_it_is_a_weight_of_bags(self, model):
        bags, y = concept_problem()
        few = np.flatnonzero((y == 1) | (np.arange(40) % 4 == 0))
        bags, y = bags[few], y[few]
        by_class = clone(model).set_params(class_weight={0: 3.0, 1: 0.5}).fit(bags, y)
        by_bag = clone(model).fit(bags, y, sample_weight=np.where(y == 0, 3.0, 0.5))
        np.testing.assert_array_equal(by_class.decision_function(bags), by_bag.decision_function(bags))
        balanced = clone(model).set_params(class_weight="balanced").fit(bags, y)
        counts = np.bincount(y)
        by_bag = clone(model).fit(bags, y, sample_weight=len(y) / (2 * counts[y]))
        np.testing.assert_allclose(balanced.decision_function(bags), by_bag.decision_function(bags), rtol=1e-6)

    def test_what_it_cannot_be(self):
        bags, y = concept_problem()
        with pytest.raises(ValueError, match="class_weight"):
            CitationKNN(class_weight="fair").fit(bags, y)


class TestRowsThatLookLikeInstances:
    bags, y = concept_problem()
    labels = np.repeat(y, bags.sizes)

    def test_labels_in_runs(self):
        with pytest.warns(RowsNotBagsWarning, match=r"read as a bag of its own, .*Bags.from_groups"):
            RMISVC(max_steps=1).fit(self.bags.instances, self.labels)

    def test_a_column_that_names_the_bags(self):
        frame = pd.DataFrame(self.bags.instances, columns=NAMES).assign(mol=self.bags.bag_of_instance)
        with pytest.warns(RowsNotBagsWarning, match="column 'mol' and y stay the same over runs of rows"):
            RMISVC(max_steps=1).fit(frame, self.labels)

    def test_a_column_of_text(self):
        frame = pd.DataFrame(self.bags.instances, columns=NAMES)
        frame["mol"] = [f"m{i}" for i in self.bags.bag_of_instance]
        with pytest.raises(ValueError, match=r"column 'mol' is not numeric: .*Bags.from_frame\(frame, bag='mol'"):
            RMISVC(max_steps=1).fit(frame, self.labels)

    def test_rows_in_any_order_are_bags_of_one(self):
        order = np.random.RandomState(0).permutation(len(self.labels))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RMISVC(max_steps=1).fit(pd.DataFrame(self.bags.instances[order]), self.labels[order])
            RMISVC(max_steps=1).fit(self.bags, self.y)
        assert not [each for each in caught if issubclass(each.category, RowsNotBagsWarning)]
