"""The compiled solvers against the same algorithm in a dozen lines of NumPy."""

import numpy as np
import pytest
from scipy import sparse
from tests.problems import concept_problem

from bagwise import Bags
from bagwise.rmi.lbfgs import lbfgs
from bagwise.rmi.objective import Loss, instance_coefficients
from bagwise.rmi.problem import Iterate, Problem, orders
from bagwise.rmi.sgd import sgd


def make_problem(n_classes=2, intercept=True, form="dense", dtype=np.float64, prior=False, lam=0.01):
    bags, y = concept_problem(24, n_features=7, n_classes=n_classes)
    rng = np.random.RandomState(1)
    instances = bags.instances.astype(dtype)
    instances = sparse.csr_array(np.where(np.abs(instances) > 0.5, instances, 0)) if form == "csr" else instances
    bags = Bags.from_arrays(instances, bags.offsets, prior=rng.randn(bags.n_instances) if prior else None)
    targets = (y == 1)[:, None] if n_classes == 2 else y[:, None] == np.arange(n_classes)
    weight = rng.uniform(0.5, 1.5, size=targets.shape)
    return Problem(bags, targets, weight / weight.mean(axis=0), Loss(lam, 2.0, 0.7, 0.4), intercept)


def plain(problem, order, radius, average_from, k):
    """Pegasos on RMI-SVM's objective, as the paper has it."""
    loss, bags = problem.loss, problem.bags
    w, b, mean, kept = np.zeros(bags.n_features), 0.0, 0, 0
    for t, i in enumerate(order, start=1):
        rows = slice(bags.offsets[i], bags.offsets[i + 1])
        x = bags[int(i)].toarray() if sparse.issparse(bags.instances) else bags[int(i)]
        z = x @ w + b + (0 if bags.prior is None else bags.prior[rows])
        c = instance_coefficients(z, np.array([0, len(z)]), problem.targets[i : i + 1, k], loss)[1]
        eta, c = 1 / (loss.lam * t), c * problem.weight[i, k]
        w, b = (1 - eta * loss.lam) * w + eta * x.T @ c, (1 - eta * loss.lam) * b + eta * c.sum() * problem.intercept
        shrink = min(1, radius[k] / max(np.sqrt(w @ w + b * b), 1e-300))
        w, b = w * shrink, b * shrink
        if t > average_from:
            mean, kept = mean + np.append(w, b), kept + 1
    return np.append(w, b), mean / kept


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("radius", ["pegasos", "safe", None])
def test_steps_are_the_plain_algorithm(form, intercept, prior, n_classes, radius):
    problem = make_problem(n_classes, intercept, form, prior=prior)
    bound = problem.radius(radius)
    passes = list(orders(24, 60, "shuffle", np.random.RandomState(0)))
    last, mean = sgd(problem, Iterate.zero(problem.targets.shape[1], 7), iter(passes), average_from=30, radius=bound)
    assert last.steps == 60
    for k in range(problem.targets.shape[1]):
        w, average = plain(problem, np.concatenate(passes), bound, 30, k)
        np.testing.assert_allclose(np.append(last.coef[k], last.intercept[k]), w, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(np.append(mean.coef[k], mean.intercept[k]), average, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_float32_steps_are_close(form):
    single, double = (make_problem(form=form, dtype=dtype) for dtype in (np.float32, np.float64))
    runs = []
    for problem in (single, double):
        passes = orders(24, 48, "shuffle", np.random.RandomState(0))
        runs.append(sgd(problem, Iterate.zero(1, 7), passes, average_from=None, radius=np.array([np.inf]))[0].coef)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_going_on_equals_going_through(form):
    problem, radius = make_problem(form=form), np.array([20.0])
    passes = list(orders(24, 72, "uniform", np.random.RandomState(0)))
    through, _ = sgd(problem, Iterate.zero(1, 7), iter(passes), average_from=None, radius=radius)
    half, _ = sgd(problem, Iterate.zero(1, 7), iter(passes[:1]), average_from=None, radius=radius)
    on, _ = sgd(problem, half, iter(passes[1:]), average_from=None, radius=radius)
    np.testing.assert_allclose(on.coef, through.coef, rtol=1e-10)
    assert on.steps == through.steps == 72


def test_sparse_steps_do_not_touch_other_columns():
    """A step must cost O(nonzeros): columns without a nonzero keep their starting value of zero."""
    problem = make_problem(form="csr")
    wide = sparse.csr_array(
        (problem.bags.instances.data, problem.bags.instances.indices, problem.bags.instances.indptr),
        shape=(problem.bags.n_instances, 10_000),
    )
    problem.bags = problem.bags.with_instances(wide)
    last, mean = sgd(
        problem,
        Iterate.zero(1, 10_000),
        orders(24, 48, "shuffle", np.random.RandomState(0)),
        average_from=10,
        radius=np.array([np.inf]),
    )
    assert not last.coef[0, 7:].any()
    assert not mean.coef[0, 7:].any()
    assert last.coef[0, :7].all()


def test_orders():
    shuffled = list(orders(5, 12, "shuffle", np.random.RandomState(0)))
    assert [len(part) for part in shuffled] == [5, 5, 2]
    assert sorted(shuffled[0]) == list(range(5))
    uniform = np.concatenate(list(orders(5, 1000, "uniform", np.random.RandomState(0))))
    assert len(uniform) == 1000
    assert set(uniform) == set(range(5))
    assert list(orders(5, 0, "shuffle", np.random.RandomState(0))) == []


@pytest.mark.parametrize("intercept", [True, False])
def test_lbfgs_goes_below_sgd(intercept):
    problem = make_problem(intercept=intercept, prior=True)
    _, mean = sgd(
        problem,
        Iterate.zero(1, 7),
        orders(24, 2400, "shuffle", np.random.RandomState(0)),
        average_from=1200,
        radius=problem.radius("safe"),
    )
    end, iterations = lbfgs(problem, mean, max_iter=200, tol=1e-6)
    assert iterations >= 1
    assert problem.objective(end.coef, end.intercept) <= problem.objective(mean.coef, mean.intercept)
    if not intercept:
        assert end.intercept[0] == 0


def test_safe_radius_holds_the_minimiser():
    problem = make_problem()
    end, _ = lbfgs(problem, Iterate.zero(1, 7), max_iter=500, tol=1e-8)
    assert np.hypot(np.linalg.norm(end.coef), end.intercept[0]) <= problem.radius("safe")[0]
