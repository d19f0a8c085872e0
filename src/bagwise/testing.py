"""What every bag classifier must do: checks for methods of this and of other packages.

`check_bag_classifier` runs scikit-learn's `check_estimator` and, on small bags, the checks of this module. The common
tests of the library's own methods are these.
"""

from __future__ import annotations

import pickle
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from bagwise.bags import Bags
from bagwise.base import BagClassifier, InstanceScorer, PositiveClassWarning
from bagwise.persistence import load, save
from bagwise.preprocessing import InstanceScaler

Check = Callable[[BagClassifier, bool], None]


def check_bag_classifier(
    estimator: BagClassifier, *, stochastic: bool = False, expected_failed_checks: dict[str, str] | None = None
) -> None:
    """Raise where a classifier does not keep the contract of bag classifiers.

    Parameters
    ----------
    estimator : BagClassifier
        Unfitted, with parameters that make it quick: it is fitted some hundred times. It is cloned each time.
    stochastic : bool, default=False
        Whether its random numbers make something of the order of the bags, so that only most predictions need agree.
    expected_failed_checks : dict, default=None
        Names of checks that it is known to fail, and why; as in scikit-learn's `check_estimator`.

    Examples
    --------
    >>> from bagwise import CitationKNN
    >>> from bagwise.testing import check_bag_classifier
    >>> check_bag_classifier(CitationKNN())
    """
    expected = expected_failed_checks or {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail="raise")
    for check in CHECKS:
        if check.__name__ not in expected:
            check(clone(estimator), stochastic)


def concept_problem(
    n_bags: int = 40, n_features: int = 5, seed: int = 0, n_classes: int = 2
) -> tuple[Bags, NDArray[np.int64]]:
    """Bags of 2 to 6 standard normal instances; one instance of each bag of class c > 0 is moved along column c."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % n_classes
    rng.shuffle(y)
    tables = [rng.randn(rng.randint(2, 7), n_features) for _ in range(n_bags)]
    for table, label in zip(tables, y):
        if label:
            table[rng.randint(len(table)), label - 1] += 6
    return Bags(tables), y


def _as_csr(bags: Bags) -> Bags:
    return bags.with_instances(sparse.csr_array(bags.instances))


def _refuses(error: type[Exception], message: str, act: Callable[[], Any]) -> None:
    """The call raises an error whose message has this in it."""
    said = ""
    try:
        act()
    except error as raised:
        said = str(raised)
    assert re.search(message, said), f"a {error.__name__} should say {message!r}, not {said!r}"


def check_learns(model: BagClassifier, stochastic: bool) -> None:
    """A concept in one instance of each positive bag is found."""
    bags, y = concept_problem(60)
    unseen, truth = concept_problem(40, seed=1)
    assert clone(model).fit(bags, y).score(unseen, truth) >= 0.7


def check_order_of_instances(model: BagClassifier, stochastic: bool) -> None:
    """A bag has no order."""
    bags, y = concept_problem()
    rng = np.random.RandomState(3)
    shuffled = Bags([bag[rng.permutation(len(bag))] for bag in bags])
    fitted = clone(model).fit(bags, y)
    np.testing.assert_allclose(fitted.decision_function(bags), fitted.decision_function(shuffled), rtol=1e-6, atol=1e-8)
    refitted = clone(model).fit(shuffled, y)
    assert np.mean(refitted.predict(bags) == fitted.predict(bags)) >= 0.95


def check_order_of_bags(model: BagClassifier, stochastic: bool) -> None:
    """The training bags have none either, but for what random numbers make of it."""
    bags, y = concept_problem()
    order = np.random.RandomState(3).permutation(len(bags))
    fitted = clone(model).fit(bags, y)
    scores = fitted.decision_function(bags)
    np.testing.assert_allclose(scores[order], fitted.decision_function(bags[order]), rtol=1e-6, atol=1e-8)
    refitted = clone(model).fit(bags[order], y[order])
    if stochastic:
        assert np.mean(refitted.predict(bags) == fitted.predict(bags)) >= 0.9
    else:
        np.testing.assert_allclose(refitted.decision_function(bags), scores, rtol=1e-3, atol=1e-3)


def check_dense_equals_csr(model: BagClassifier, stochastic: bool) -> None:
    """Sparse instances are refused, or treated as dense ones."""
    bags, y = concept_problem()
    if not model.accepts_sparse:
        _refuses(TypeError, "sparse", lambda: clone(model).fit(_as_csr(bags), y))
        return
    if "scaling" in model.get_params():
        model.set_params(scaling="unit")  # centring is not done to sparse columns
    # Strongly regularised: else steps and rounds of choosing enlarge roundings, which differ between processors.
    strong = {"lam": 0.1, "C": 0.1, "calibrate": False}
    model.set_params(**{name: value for name, value in strong.items() if name in model.get_params()})
    dense, csr = clone(model).fit(bags, y), clone(model).fit(_as_csr(bags), y)
    # Sums in another order move the last bits, and stochastic methods make them a little larger.
    tolerance = 1e-2 if stochastic else 1e-4
    scores = dense.decision_function(bags)
    np.testing.assert_allclose(csr.decision_function(_as_csr(bags)), scores, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(dense.decision_function(_as_csr(bags)), scores, rtol=1e-6, atol=1e-8)


def check_every_form_of_bags(model: BagClassifier, stochastic: bool) -> None:
    """A cube, a list of tables and Bags are the same."""
    cube = np.random.RandomState(0).randn(30, 3, 4)
    y = np.arange(30) % 2
    cube[y == 1, 0, 0] += 5
    forms: list[Any] = [cube, list(cube), Bags(cube), Bags(list(cube))]
    first, *others = (clone(model).fit(form, y).decision_function(form) for form in forms)
    for other in others:
        np.testing.assert_array_equal(first, other)


def check_float32_is_close_to_float64(model: BagClassifier, stochastic: bool) -> None:
    """Half the precision returns nearly the same scores."""
    bags, y = concept_problem()
    single = bags.with_instances(bags.instances.astype(np.float32))
    double = single.with_instances(single.instances.astype(np.float64))
    a, b = clone(model).fit(single, y), clone(model).fit(double, y)
    assert np.mean(a.predict(single) == b.predict(double)) >= 0.95
    np.testing.assert_allclose(b.decision_function(single), b.decision_function(double), rtol=1e-3, atol=1e-3)


def check_same_bits(model: BagClassifier, stochastic: bool) -> None:
    """The same seed returns the same bits."""
    bags, y = concept_problem()
    a, b = (clone(model).fit(bags, y).decision_function(bags) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def check_labels_of_any_kind(model: BagClassifier, stochastic: bool) -> None:
    """Labels are names, and ``positive`` says which of two is the positive one."""
    bags, y = concept_problem()
    plain = clone(model).fit(bags, y)
    for names in ((-1, 1), (False, True), (3.0, 7.0), ("no", "yes")):
        named = clone(model).set_params(positive=names[1]).fit(bags, np.array(names)[y])
        np.testing.assert_array_equal(named.predict(bags), np.array(names)[plain.predict(bags)])
    swapped = clone(model).set_params(positive="active").fit(bags, np.array(["inactive", "active"])[y])
    np.testing.assert_array_equal(swapped.predict(bags) == "active", plain.predict(bags) == 1)
    np.testing.assert_array_equal(swapped.decision_function(bags), -plain.decision_function(bags))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(model).fit(bags, np.array(["no", "yes"])[y])
    assert sum(warning.category is PositiveClassWarning for warning in caught) == 1


def check_multi_class(model: BagClassifier, stochastic: bool) -> None:
    """More than two classes are told apart."""
    bags, y = concept_problem(90, n_classes=3)
    names = np.array(["none", "one", "two"])
    fitted = clone(model).fit(bags, names[y])
    assert fitted.decision_function(bags).shape == (90, 3)
    assert fitted.score(bags, names[y]) >= 0.6
    np.testing.assert_allclose(fitted.predict_proba(bags).sum(axis=1), 1)
    if isinstance(fitted, InstanceScorer):
        assert fitted.instance_scores(bags).shape == (bags.n_instances, 3)


def check_instance_scores(model: BagClassifier, stochastic: bool) -> None:
    """Where there are scores of instances, they find the concept."""
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


def check_zero_weight_is_absence(model: BagClassifier, stochastic: bool) -> None:
    """A bag of weight zero is not there."""
    bags, y = concept_problem()
    weight = np.ones(len(y))
    weight[:5] = 0
    with_zero = clone(model).fit(bags, y, sample_weight=weight)
    without = clone(model).fit(bags[5:], y[5:])
    np.testing.assert_array_equal(with_zero.decision_function(bags), without.decision_function(bags))


def check_prior(model: BagClassifier, stochastic: bool) -> None:
    """A prior is used, or refused."""
    bags, y = concept_problem()
    with_prior = bags.with_prior(np.linspace(-3, 3, bags.n_instances))
    if not model.uses_prior:
        _refuses(ValueError, "cannot use the prior", lambda: clone(model).fit(with_prior, y))
        return
    fitted = clone(model).fit(with_prior, y)
    assert np.isfinite(fitted.decision_function(with_prior)).all()
    assert np.any(fitted.decision_function(with_prior) != fitted.decision_function(bags))


def check_feature_names(model: BagClassifier, stochastic: bool) -> None:
    """Columns are found by their names."""
    bags, y = concept_problem()
    fitted = clone(model).fit(Bags(bags, feature_names=list("abcde")), y)
    assert fitted.feature_names_in_.tolist() == list("abcde")
    turned = bags.with_instances(bags.instances[:, ::-1], feature_names=list("edcba"))
    np.testing.assert_array_equal(
        fitted.decision_function(turned), fitted.decision_function(Bags(bags, feature_names=list("abcde")))
    )
    other = bags.with_instances(bags.instances, feature_names=list("abcdz"))
    _refuses(ValueError, "lacks 'e' and has 'z'", lambda: fitted.predict(other))


def check_meta_estimators(model: BagClassifier, stochastic: bool) -> None:
    """Pipelines, searches, cross-validation and calibration take it."""
    bags, y = concept_problem()
    pipeline = make_pipeline(InstanceScaler("standard"), clone(model))
    assert pipeline.fit(bags, y).score(bags, y) >= 0.6
    assert cross_val_score(clone(model), bags, y, cv=3).shape == (3,)
    name, value = next(iter(model.get_params(deep=False).items()))
    search = GridSearchCV(clone(model), {name: [value]}, cv=2).fit(bags, y)
    assert search.best_score_ > 0.4
    proba = CalibratedClassifierCV(clone(model), cv=2).fit(bags, y).predict_proba(bags)
    assert proba.shape == (len(y), 2)


def check_pickle_and_model_file(model: BagClassifier, stochastic: bool) -> None:
    """A copy from a pickle, or from `bagwise.save`, does the same."""
    bags, y = concept_problem(n_classes=3)
    names = np.array(["a", "b", "ü"])
    fitted = clone(model).fit(bags, names[y])
    scores = fitted.decision_function(bags)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(bags), scores)
    with tempfile.TemporaryDirectory() as folder:
        save(fitted, Path(folder) / "model.bagwise")
        loaded = load(Path(folder) / "model.bagwise")
    np.testing.assert_array_equal(loaded.decision_function(bags), scores)
    np.testing.assert_array_equal(loaded.predict(bags), fitted.predict(bags))
    assert loaded.get_params() == fitted.get_params()


def check_bad_input(model: BagClassifier, stochastic: bool) -> None:
    """What is wrong with the input is said."""
    bags, y = concept_problem()
    fitted = clone(model).fit(bags, y)
    table, empty, missing = np.zeros((2, 3)), np.zeros((0, 3)), np.full((1, 3), np.nan)
    _refuses(ValueError, "features", lambda: fitted.predict(Bags([table])))
    _refuses(ValueError, "bag 1 is empty", lambda: clone(model).fit([table, empty], [0, 1]))
    _refuses(ValueError, "bag 1, row 0", lambda: clone(model).fit([table, missing], [0, 1]))
    _refuses(ValueError, "only one class", lambda: clone(model).fit(bags, np.zeros(len(y))))
    _refuses(ValueError, "40 bags but 3 labels", lambda: clone(model).fit(bags, [0, 1, 0]))


def check_hard_data(model: BagClassifier, stochastic: bool) -> None:
    """Constant columns, duplicated instances and bags of very different size give finite scores."""
    rng = np.random.RandomState(0)
    tables = [np.repeat(rng.randn(1, 4), rng.choice([1, 3, 150]), axis=0) for _ in range(16)]
    for table in tables:
        table[:, 3] = 7.0
    y = np.arange(16) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = clone(model).fit(Bags(tables), y)
        assert np.isfinite(fitted.decision_function(Bags(tables))).all()


CHECKS: tuple[Check, ...] = (
    check_learns,
    check_order_of_instances,
    check_order_of_bags,
    check_dense_equals_csr,
    check_every_form_of_bags,
    check_float32_is_close_to_float64,
    check_same_bits,
    check_labels_of_any_kind,
    check_multi_class,
    check_instance_scores,
    check_zero_weight_is_absence,
    check_prior,
    check_feature_names,
    check_meta_estimators,
    check_pickle_and_model_file,
    check_bad_input,
    check_hard_data,
)
