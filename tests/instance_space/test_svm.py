"""mi-SVM and MI-SVM against quadratic programmes solved by scipy, and against a search through all guesses."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from tests.problems import concept_problem

from bagwise import MISVC, Bags, MiSVC
from bagwise._utils.row_loops import row_store
from bagwise.instance_space._dual import Items
from bagwise.instance_space._kernel_machine import InstanceKernel, KernelMachine
from bagwise.instance_space._linear import LinearMachine
from bagwise.instance_space._linear_loops import _hold, _least_deserving, check, passes


def quadratic_programme(x, offsets, sign, cap):
    """The least of ½ (‖w‖² + b²) + cap · slack with y (w · x + b) ≥ 1 - slack for all items of each group."""
    d, n_groups = x.shape[1], len(sign)
    rows = np.hstack([x, np.ones((len(x), 1))]) * np.repeat(sign, np.diff(offsets))[:, None]
    belongs = np.repeat(np.eye(n_groups), np.diff(offsets), axis=0)
    matrix = np.hstack([rows, belongs])
    result = minimize(
        lambda v: 0.5 * v[: d + 1] @ v[: d + 1] + cap @ v[d + 1 :],
        np.append(np.zeros(d + 1), np.full(n_groups, 2.0)),
        jac=lambda v: np.append(v[: d + 1], cap),
        constraints={"type": "ineq", "fun": lambda v: matrix @ v - 1, "jac": lambda v: matrix},
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n_groups,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success
    return result.fun, result.x[: d + 1]


def groups(seed, sizes=(3, 1, 4, 1, 1, 2, 1, 5), d=3):
    rng = np.random.RandomState(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sign = np.where(np.arange(len(sizes)) % 2, 1.0, -1.0)
    x = rng.randn(offsets[-1], d) + 0.7 * np.repeat(sign, sizes)[:, None]
    return x, offsets, sign, rng.uniform(0.2, 5, size=len(sizes))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", range(4))
def test_linear_machine_solves_the_quadratic_programme(form, seed):
    x, offsets, sign, cap = groups(seed)
    value, w = quadratic_programme(x, offsets, sign, cap)
    machine = LinearMachine(form(x), seed=7)
    objective, z = machine.solve(Items.start(np.arange(len(x)), offsets, sign, cap), 1e-10, 100_000)
    assert objective == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(np.append(machine.coef, machine.intercept), w, atol=1e-4)
    np.testing.assert_allclose(z, x @ machine.coef + machine.intercept, atol=1e-12)


@pytest.mark.parametrize("cache_size", [1.0, 1e-9])  # all rows of the kernel, or only two at a time
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_kernel_machine_agrees_with_the_linear_one(form, cache_size):
    x, offsets, sign, cap = groups(5)
    items = [Items.start(np.arange(len(x)), offsets, sign, cap) for _ in range(2)]
    linear = LinearMachine(form(x), seed=0)
    kernel = KernelMachine(form(x), InstanceKernel("poly", 1.0, 0.0, 1), cache_size)
    found, expected = kernel.solve(items[1], 1e-9, 1000), linear.solve(items[0], 1e-9, 100_000)
    assert found[0] == pytest.approx(expected[0], rel=1e-7)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)
    rows = np.array([7, 0, 3])
    np.testing.assert_allclose(kernel.scores(rows), linear.scores(rows), atol=1e-4)


@pytest.mark.parametrize("cache_size", [1.0, 1e-9])
@pytest.mark.parametrize(
    ("kind", "value"),
    [("rbf", lambda a, b: np.exp(-0.3 * np.sum((a - b) ** 2))), ("poly", lambda a, b: (0.3 * a @ b + 2) ** 3)],
)
def test_kernel_machine_on_features_of_the_kernel_matrix(kind, value, cache_size):
    """A matrix square root of the kernel matrix has rows with the kernel's inner products."""
    x, offsets, sign, cap = groups(6)
    matrix = np.array([[value(a, b) for b in x] for a in x])
    eigenvalues, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(eigenvalues.clip(0))
    expected, w = quadratic_programme(root, offsets, sign, cap)
    kernel = InstanceKernel(kind, 0.3, 2.0, 3)
    machine = KernelMachine(x, kernel, cache_size)
    items = Items.start(np.arange(len(x)), offsets, sign, cap)
    objective, z = machine.solve(items, 1e-9, 1000)
    assert objective == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(z, root @ w[:-1] + w[-1], atol=1e-3)
    coefficients = items.coefficients()
    again = kernel.weighted_sum(x, x, coefficients[None])[:, 0] + coefficients.sum()
    np.testing.assert_allclose(again, z, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_check_against_plain_numpy(form):
    """Rows in another order than the items, a prior, variables at both bounds, groups of one and of several."""
    x, offsets, sign, cap = groups(2)
    rng = np.random.RandomState(0)
    n, rows = len(x), rng.permutation(len(x))
    prior, w, bias, far = rng.randn(n), rng.randn(x.shape[1]), np.array([0.3]), 0.2
    group = np.repeat(np.arange(len(sign)), np.diff(offsets))
    share = np.array([0.0, 1.0, 0.5, 1.0, 0.0, 0.0, 0.4])  # of the cap: bounds more often than not
    alpha = cap[group] * np.resize(share, n)
    items = Items(rows, offsets, sign, cap, alpha, prior)
    z, slope, active = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    loss, linear, n_active = check(
        row_store(form(x)), rows, offsets, sign, cap, far, alpha, w, bias, prior, z, slope, active
    )

    scores = x @ w + bias[0] + prior
    np.testing.assert_allclose(z, scores[rows], atol=1e-12)
    beyond = items.item_sign * scores[rows] - 1
    np.testing.assert_allclose(slope, beyond, atol=1e-12)
    square = float(w @ w + bias[0] ** 2)
    assert 0.5 * square + loss == pytest.approx(items.objective(scores, square))
    assert max(square + loss - linear, 0) == pytest.approx(items.gap(scores, square))
    alone = np.diff(offsets)[group] == 1
    at_zero, at_cap = (alpha == 0) & (beyond > far), alone & (alpha == cap[group]) & (beyond < -far)
    assert at_zero.any()
    assert at_cap.any()
    assert not (at_zero | at_cap).all()
    np.testing.assert_array_equal(active[:n_active], np.flatnonzero(~(at_zero | at_cap)))


def test_least_deserving_item_against_plain_numpy():
    """Items come and go; equal slopes: the first of them."""
    rng = np.random.RandomState(0)
    offsets, n = np.array([0, 6, 13]), 13
    group = np.repeat([0, 1], [6, 7])
    held, place_of, n_held = np.empty(n, np.int64), np.full(n, -1), np.zeros(2, np.int64)
    alpha, slope, found = np.zeros(n), np.zeros(n), set()
    for _ in range(500):
        k = rng.randint(n)
        g = group[k]
        alpha[k], slope[k] = rng.choice([0.0, 0.0, 0.7]), rng.randint(3)
        if alpha[k] > 0:
            _hold(k, g, offsets, held, place_of, n_held)
        others = [j for j in range(offsets[g], offsets[g + 1]) if alpha[j] > 0 and j != k]
        expected = max(others, key=lambda j: (slope[j], -j), default=-1)
        assert _least_deserving(k, g, offsets, alpha, slope, held, place_of, n_held) == expected
        found.add(expected)
    assert len(found) == n + 1


def test_passes_against_plain_numpy():
    """Single items only; the order comes from the same generator."""
    x, _, _, _ = groups(1)
    n, d = x.shape
    sign, cap = np.where(np.arange(n) % 3, 1.0, -1.0), np.linspace(0.5, 2, n)
    norm2 = (x**2).sum(axis=1) + 1
    w, bias, alpha, slope = np.zeros(d), np.zeros(1), np.zeros(n), np.zeros(n)
    prior = np.linspace(-0.5, 0.5, n)
    passes(
        row_store(x), np.arange(n), np.arange(n), np.arange(n + 1), sign, cap, norm2,
        alpha, np.zeros(n), slope, np.arange(n), w, bias, prior, 3, np.uint64(11),
    )  # fmt: skip

    plain_w, plain_alpha, order, state = np.zeros(d + 1), np.zeros(n), np.arange(n), 11
    rows = np.hstack([x, np.ones((n, 1))])
    for _ in range(3):
        for last in range(n - 1, 0, -1):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            other = (state >> 33) % (last + 1)
            order[last], order[other] = order[other], order[last]
        for k in order:
            best = plain_alpha[k] - (sign[k] * (rows[k] @ plain_w + prior[k]) - 1) / norm2[k]
            change = np.clip(best, 0, cap[k]) - plain_alpha[k]
            plain_alpha[k] += change
            plain_w += change * sign[k] * rows[k]
    np.testing.assert_allclose(alpha, plain_alpha, atol=1e-12)
    np.testing.assert_allclose(np.append(w, bias), plain_w, atol=1e-12)


@pytest.fixture
def tiny():
    rng = np.random.RandomState(2)
    tables = [rng.randn(m, 2) for m in (2, 3, 2, 2, 3, 2)]
    y = np.array([1, 0, 1, 0, 1, 0])
    for table, label in zip(tables, y):
        table[0] += 1.5 * label
    return Bags(tables), y


def test_witness_search_finds_the_best_of_all_choices(tiny):
    bags, y = tiny
    negative = [bags[i] for i in np.flatnonzero(y == 0)]
    values = []
    for choice in product(*(range(bags.sizes[i]) for i in np.flatnonzero(y == 1))):
        witnesses = [bags[i][[j]] for i, j in zip(np.flatnonzero(y == 1), choice)]
        part = Bags(negative + witnesses)
        sign = np.array([-1.0] * 3 + [1.0] * 3)
        values.append(quadratic_programme(part.instances, part.offsets, sign, np.full(6, 2.0))[0])
    C = 2.0 * np.mean(np.sum(bags.instances**2, axis=1))  # in units of the mean squared length
    model = MISVC(C=C, scaling=None, n_init=20, tol=1e-9, calibrate=False, random_state=0).fit(bags, y)
    assert model.objective_[0] == pytest.approx(min(values), rel=1e-6)


def test_label_search_finds_the_best_of_all_labels(tiny):
    bags, y = tiny
    in_positive = np.repeat(y == 1, bags.sizes)
    first = np.cumsum(np.append(0, bags.sizes[y == 1]))[:-1]
    values = []
    for labels in product([-1.0, 1.0], repeat=in_positive.sum()):
        if np.maximum.reduceat(labels, first).min() > 0:
            sign = np.full(bags.n_instances, -1.0)
            sign[in_positive] = labels
            n = len(sign)
            values.append(quadratic_programme(bags.instances, np.arange(n + 1), sign, np.full(n, 2.0))[0])
    C = 2.0 * np.mean(np.sum(bags.instances**2, axis=1))  # in units of the mean squared length
    model = MiSVC(C=C, scaling=None, n_init=30, tol=1e-9, calibrate=False, random_state=0).fit(bags, y)
    assert model.objective_[0] == pytest.approx(min(values), rel=1e-6)


@pytest.mark.parametrize("kind", [MiSVC, MISVC])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_scores_belong_to_the_objective(kind, kernel):
    """The objective, computed from scores and dual coefficients of the fitted model, is the reported one."""
    bags, y = concept_problem()
    weight = np.random.RandomState(0).uniform(0.5, 2, size=len(y))
    model = kind(C=3.0, kernel=kernel, scaling="unit", tol=1e-8, calibrate=False, random_state=0)
    z = model.fit(bags, y, sample_weight=weight).instance_scores(bags)
    weight /= np.where(y == 1, weight[y == 1].sum(), weight[y == 0].sum()) / (weight.sum() / 2)  # balanced
    best = np.maximum.reduceat(z, bags.offsets[:-1])
    if kind is MISVC:
        loss = weight @ np.maximum(0, 1 - np.where(y == 1, 1, -1) * best)
    else:
        label = np.where(np.repeat(y, bags.sizes) == 1, np.sign(z), -1)
        label[z == np.repeat(np.where(y == 1, best, np.inf), bags.sizes)] = 1
        loss = np.repeat(weight, bags.sizes) @ np.maximum(0, 1 - label * z)
    if kernel == "linear":
        square = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    else:
        gram = model.kernel_.matrix(model.support_vectors_, model.support_vectors_) + 1
        square = float((model.dual_coef_ @ gram @ model.dual_coef_.T)[0, 0])
    assert 0.5 * square + 3.0 * loss == pytest.approx(model.objective_[0], rel=1e-5)


def test_restarts_never_hurt():
    bags, y = concept_problem(30, seed=5)
    objectives = [MISVC(C=10, n_init=n, calibrate=False, random_state=0).fit(bags, y).objective_[0] for n in (1, 4, 8)]
    assert objectives[0] >= objectives[1] * (1 - 1e-3) >= objectives[2] * (1 - 2e-3)


@pytest.mark.parametrize(("kind", "seeds"), [(MISVC, [7]), (MiSVC, range(4, 9))])
def test_few_positive_bags_get_more_starts(kind, seeds):
    """Where few bags are positive, one search in several ends where it finds nothing."""
    areas = []
    for seed in seeds:
        rng = np.random.RandomState(seed)
        tables = rng.randn(2, 300, 8, 20)
        y = (np.arange(300) < 18).astype(int)
        tables[:, y == 1, 0, 0] += 5
        model = kind(random_state=0).fit(tables[0], y)
        areas.append(roc_auc_score(y, model.decision_function(tables[1])))
    assert np.mean(areas) > 0.9


@pytest.mark.parametrize("kind", [MISVC, MiSVC])
def test_one_start_where_many_bags_are_positive(kind):
    bags, y = concept_problem(40)
    one, auto = (kind(n_init=n, calibrate=False, random_state=0).fit(bags, y) for n in (1, "auto"))
    np.testing.assert_array_equal(one.coef_, auto.coef_)


def test_first_guess_of_the_paper():
    bags, y = concept_problem(60)
    model = MiSVC(init="bags", C=10).fit(bags, y)
    assert model.score(bags, y) >= 0.8
    with pytest.warns(ConvergenceWarning):
        assert MiSVC(init="bags", max_iter=1).fit(bags, y).n_iter_ == 1


def test_trec9_is_learnt_from_its_sparse_form(data):
    arrays = np.load(data / "mil" / "trec1.npz")
    x = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    bags, y = Bags.from_groups(x, arrays["bag"]), arrays["y"]
    train = np.arange(len(y)) % 4 > 0
    for kind in (MiSVC, MISVC):
        assert kind(random_state=0).fit(bags[train], y[train]).score(bags[~train], y[~train]) >= 0.9
