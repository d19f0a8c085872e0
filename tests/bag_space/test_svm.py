"""The support vector machine on bag kernels against a plain quadratic programme."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.problems import concept_problem

from bagwise import Bags, MIKernelSVC


def plain_kernel(a, b, gamma, normalization):
    def total(x, y):
        return np.exp(-gamma * ((x[:, None] - y) ** 2).sum(axis=2)).sum()

    raw = np.array([[total(x, y) for y in b] for x in a])
    if normalization == "average":
        return raw / a.sizes[:, None] / b.sizes
    return raw / np.sqrt([total(x, x) for x in a])[:, None] / np.sqrt([total(y, y) for y in b])


def plain_dual(kernel, y, upper):
    """Greatest Σα - ½ αᵀQα with 0 <= α <= upper and αᵀy = 0."""
    q = kernel * np.outer(y, y)
    found = minimize(
        lambda a: 0.5 * a @ q @ a - a.sum(),
        np.zeros(len(y)),
        jac=lambda a: q @ a - 1,
        bounds=[(0, u) for u in upper],
        constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y.astype(float)},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return -found.fun


@pytest.mark.parametrize("normalization", ["average", "feature"])
@pytest.mark.parametrize("weighted", [False, True])
def test_dual_objective_equals_the_plain_programme(normalization, weighted):
    bags, y = concept_problem(20)
    weight = np.random.RandomState(0).uniform(0.3, 2, len(y)) if weighted else np.ones(len(y))
    model = MIKernelSVC(C=5.0, gamma=0.2, normalization=normalization, scaling=None)
    model.fit(bags, y, sample_weight=weight)
    kernel = plain_kernel(bags, bags, 0.2, normalization)
    best = plain_dual(kernel, 2 * y - 1, 5.0 * weight)
    alpha = np.abs(model.dual_coef_[0])
    part = kernel[np.ix_(model.support_, model.support_)]
    reached = alpha.sum() - 0.5 * model.dual_coef_[0] @ part @ model.dual_coef_[0]
    assert reached == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("normalization", ["average", "feature"])
def test_scores_of_new_bags(normalization):
    bags, y = concept_problem(30)
    new, _ = concept_problem(10, seed=5)
    model = MIKernelSVC(gamma=0.2, normalization=normalization, scaling=None, calibrate=False).fit(bags, y)
    expected = plain_kernel(new, bags[model.support_], 0.2, normalization) @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-8, atol=1e-8)


def test_all_classes_share_the_support_bags():
    bags, y = concept_problem(45, n_classes=3)
    model = MIKernelSVC(calibrate=False).fit(bags, y)
    assert model.dual_coef_.shape == (3, len(model.support_))
    np.testing.assert_array_equal(np.diff(model.support_offsets_), bags.sizes[model.support_])
    for k in range(3):
        alone = MIKernelSVC(calibrate=False).fit(bags, y == k).decision_function(bags)
        np.testing.assert_allclose(model.decision_function(bags)[:, k], alone, rtol=1e-8, atol=1e-8)


def test_weight_two_is_the_bag_twice():
    bags, y = concept_problem(24)
    weight = np.ones(24)
    weight[:6] = 2
    model = MIKernelSVC(C=1.0, gamma=0.2, scaling=None)
    weighted = model.fit(bags, y, sample_weight=weight).decision_function(bags)
    twice = model.fit(Bags.concat([bags, bags[:6]]), np.append(y, y[:6])).decision_function(bags)
    np.testing.assert_allclose(weighted, twice, atol=5e-4)


def test_class_weight():
    bags, y = concept_problem(40)
    plain = MIKernelSVC(C=0.1, calibrate=False).fit(bags, y)
    by_label = MIKernelSVC(C=0.1, class_weight={0: 1.0, 1: 3.0}, calibrate=False).fit(bags, y)
    by_weight = MIKernelSVC(C=0.1, calibrate=False).fit(bags, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_label.decision_function(bags), by_weight.decision_function(bags), atol=1e-8)
    assert by_label.predict(bags).sum() > plain.predict(bags).sum()
    few = np.flatnonzero((y == 0) | (np.arange(40) < 12))
    balanced = MIKernelSVC(C=0.1, class_weight="balanced", calibrate=False).fit(bags[few], y[few])
    assert balanced.predict(bags).sum() > MIKernelSVC(C=0.1, calibrate=False).fit(bags[few], y[few]).predict(bags).sum()


def test_one_repeated_instance_everywhere():
    same = Bags([np.full((m, 2), 3.0) for m in (1, 2, 3, 4)])
    model = MIKernelSVC().fit(same, [0, 1, 0, 1])
    assert np.isfinite(model.gamma_)
    assert np.isfinite(model.decision_function(same)).all()
