"""The path: its loops against plain NumPy, and what is chosen on data whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_random_state
from tests.problems import concept_problem
from tests.rmi.test_sgd import make_problem, plain

from bagwise import RMISVC, Bags
from bagwise.calibration import base_rate_log_loss, fold_of_each_bag
from bagwise.datasets import make_threshold_test
from bagwise.pooling import noisy_or_log_odds, size_prior
from bagwise.rmi import candidates, path
from bagwise.rmi.candidates import Grid, out_of_fold
from bagwise.rmi.problem import orders, with_size_prior
from bagwise.rmi.scoring import InstanceMap, View

LAMS = (0.1, 0.03)


def search(n_bags=24, passes=2, average=True, radius="safe", poolings=path.POOLINGS):
    return Grid(
        LAMS, poolings, passes, average, radius,
        lambda n: orders(n_bags, n * n_bags, "shuffle", np.random.RandomState(0)),
    )  # fmt: skip


def by_plain_steps(problem, k, fold, how):
    """The same scores, model by model, in NumPy."""
    order = np.concatenate(list(how.orders(how.passes)))
    scores = np.empty((len(how.poolings), len(how.lams), len(fold)))
    for i, pooling in enumerate(how.poolings):
        bags = with_size_prior(problem.bags) if pooling == "normalized" else problem.bags
        for j, lam in enumerate(how.lams):
            loss = type(problem.loss)(lam, problem.loss.beta, problem.loss.margin, problem.loss.threshold)
            own = type(problem)(bags, problem.targets, problem.weight, loss, problem.intercept)
            for f in range(fold.max() + 1):
                visits = order[fold[order] != f]
                last, mean = plain(own, visits, own.radius(how.radius), len(visits) // 2, k)
                w = mean if how.average else last
                z = bags.instances @ w[:-1] + w[-1] + (0 if bags.prior is None else bags.prior)
                scores[i, j, fold == f] = noisy_or_log_odds(z, bags.offsets)[fold == f]
    return scores


def assert_close(found, expected):
    """In single precision; over more passes the hinge's kinks would make the rounding errors grow."""
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"average": False, "passes": 1}, {"radius": "pegasos"}, {"radius": None, "passes": 1}], ids=str
)
def test_scores_are_those_of_models_fitted_one_by_one(form, prior, options):
    problem = make_problem(3, form=form, dtype=np.float32, prior=prior)
    fold = fold_of_each_bag(problem.targets, 3)
    how = search(**options)
    for k in (0, 2):
        found = out_of_fold(how, problem, k, fold, 7).scores
        assert_close(found, by_plain_steps(problem, k, fold, how))


def test_without_an_intercept():
    problem = make_problem(intercept=False, dtype=np.float32)
    fold = fold_of_each_bag(problem.targets, 3)
    assert_close(out_of_fold(search(), problem, 0, fold, 7).scores, by_plain_steps(problem, 0, fold, search()))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_groups_of_candidates_make_no_difference(form, monkeypatch):
    problem = make_problem(form=form, dtype=np.float32)
    fold = fold_of_each_bag(problem.targets, 5)
    at_once = out_of_fold(search(), problem, 0, fold, 7).scores
    for name in ("CANDIDATE_BYTES", "SPARSE_CANDIDATE_BYTES"):
        monkeypatch.setattr(candidates, name, 1)
    np.testing.assert_allclose(out_of_fold(search(), problem, 0, fold, 7).scores, at_once, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("shift", [-500.0, -40.0, 0.0, 500.0])
@pytest.mark.parametrize("lam", [1e-8, 3e-5, 0.1])
def test_extremes_stay_finite(form, shift, lam):
    """Also where every step is projected, so that w is written anew a hundred times."""
    problem = make_problem(form=form, dtype=np.float32)
    problem.bags = Bags.from_arrays(
        1e3 * problem.bags.instances, problem.bags.offsets, prior=np.full(problem.bags.n_instances, shift)
    )
    how = Grid([lam], path.POOLINGS, 100, True, "safe", search().orders)
    found = out_of_fold(how, problem, 0, fold_of_each_bag(problem.targets), 7)
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.coef).all()
    # A mean of iterates lies in the ball that holds each of them, but for rounding in the lengths carried along.
    for pooling, bags in enumerate([with_size_prior(problem.bags), problem.bags]):
        own = replace(problem, bags=bags, loss=replace(problem.loss, lam=lam))
        assert np.linalg.norm(found.coef[pooling]) <= 1.5 * own.radius("safe")[0]


def test_the_final_fit_starts_from_the_mean_of_the_models_compared():
    problem = make_problem(dtype=np.float32)
    fold = fold_of_each_bag(problem.targets)
    how = Grid([0.1], ["noisy-or"], 3, True, "safe", search().orders)
    view = View(None, "linear")
    unscaled = InstanceMap.fit(problem.bags, view, np.ones(len(problem.bags)), np.random.RandomState(0), 1.0, 1)
    choice = path.Search(how, [view]).choose(problem, {view: unscaled}.__getitem__, 0)
    fold = fold_of_each_bag(problem.targets, random_state=0)
    order = np.concatenate(list(how.orders(3)))
    loss = type(problem.loss)(0.1, problem.loss.beta, problem.loss.margin, problem.loss.threshold)
    own = type(problem)(problem.bags, problem.targets, problem.weight, loss, True)
    visits = [order[fold[order] != f] for f in range(5)]
    models = [plain(own, part, own.radius("safe"), len(part) // 2, 0)[1] for part in visits]
    found = np.append(choice.start.coef[0], choice.start.intercept)
    np.testing.assert_allclose(found, np.mean(models, axis=0), rtol=0.01, atol=0.01)
    assert choice.start.steps == min(map(len, visits))


def test_path_tells_what_was_compared():
    bags, y = concept_problem(60)
    model = RMISVC(random_state=0).fit(bags, y)
    found = model.path_
    n_candidates = 5 * 2 * 4  # five λ, two poolings, three scalings and a kernel
    assert {len(values) for values in found.values()} == {n_candidates}
    best = int(np.flatnonzero(found["chosen"])[0])
    assert found["chosen"].sum() == 1
    assert best == found["smoothed_log_loss"].argmin()
    names = ("lam", "scaling", "kernel", "pooling")
    assert [found[name][best] for name in names] == [getattr(model, f"{name}_") for name in names]
    assert found["log_loss"][best] < base_rate_log_loss(y == 1)
    only = RMISVC(scaling="unit", kernel="rbf", pooling="noisy-or", random_state=0).fit(bags, y).path_
    assert set(only["scaling"]) == {"unit"}
    assert set(only["kernel"]) == {"rbf"}
    assert set(only["pooling"]) == {"noisy-or"}


def test_lams_that_a_fit_of_so_many_steps_does_not_reach_are_left_out():
    bags, y = concept_problem(60)
    found = RMISVC(scaling="unit", kernel="linear", pooling="noisy-or", random_state=0).fit(bags, y).path_["lam"]
    assert found.min() * 50 * 48 >= 1
    assert len(found) == 5
    assert path.lams_for(200, 50) == list(path.LAMS[:6])
    assert path.lams_for(10_000, 50) == list(path.LAMS)
    assert path.lams_for(3, 1) == list(path.LAMS[:2])


def test_neighbours_smooth_the_path():
    np.testing.assert_allclose(path.with_neighbours(np.array([[4.0, 0.0, 8.0]])), [[2.0, 3.0, 4.0]])
    np.testing.assert_allclose(path.with_neighbours(np.array([[4.0]])), [[4.0]])


def test_where_bags_say_nothing_the_stronger_lam_is_taken():
    """Out-of-fold scores that know nothing of the labels: a weak λ may not win by a hair."""
    rng = np.random.RandomState(0)
    chosen = []
    for _ in range(20):
        bags, y = Bags([rng.randn(4, 5) for _ in range(60)]), np.arange(60) % 2
        chosen.append(RMISVC(scaling="standard", pooling="noisy-or", epochs=10, random_state=0).fit(bags, y).lam_)
    assert np.median(chosen) >= 0.03


def test_a_weaker_lam_is_worth_a_quarter_of_a_nat_and_a_kernel_a_whole_one():
    bags, y = concept_problem(60)
    found = RMISVC(scaling="unit", pooling="noisy-or", random_state=0).fit(bags, y).path_
    for kernel, its_price in {"linear": 0, "rbf": 1}.items():
        mine = found["kernel"] == kernel
        price = found["smoothed_log_loss"][mine] - path.with_neighbours(found["log_loss"][mine])
        np.testing.assert_allclose(price, (its_price + 0.25 * np.arange(mine.sum())) / 60, atol=1e-12)


def test_a_kernel_is_compared_where_that_is_cheap():
    def kernels(rows, columns, n_components=256):
        table = np.broadcast_to(0.0, (rows, columns))
        return [view.kernel for view in path.views_for(table, "auto", "auto", n_components)]

    assert kernels(300, 100) == kernels(300, 10) == ["linear", "linear", "linear", "rbf"]
    assert kernels(300, 101) == kernels(1_000_000, 100) == ["linear", "linear", "linear"]
    assert kernels(1_000_000, 100, n_components=32)[-1] == "rbf"
    assert path.views_for(np.zeros((3, 999)), "unit", "rbf", 256) == [View("unit", "rbf")]


def test_roots_are_taken_where_columns_have_long_tails():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    tables = rng.standard_normal((300, 5, 20))
    tables[y == 1, 0] += 0.8
    bags = Bags(np.sinh(2.5 * tables))
    model = RMISVC(random_state=0).fit(bags[:150], y[:150])
    assert model.scaling_ == "root-unit"
    other = RMISVC(scaling="standard-unit", random_state=0).fit(bags[:150], y[:150])
    assert model.score(bags[150:], y[150:]) > other.score(bags[150:], y[150:]) + 0.03


def test_the_same_for_every_form():
    bags, y = concept_problem(60)
    plain_bags = RMISVC(scaling="unit", random_state=0).fit(bags, y)
    forms = {
        "list": list(bags),
        "csr": bags.with_instances(sparse.csr_array(bags.instances)),
        "again": bags,
    }
    for name, form in forms.items():
        other = RMISVC(scaling="unit", random_state=0).fit(form, y)
        assert other.lam_ == plain_bags.lam_
        assert other.pooling_ == plain_bags.pooling_
        tolerance = 1e-2 if name == "csr" else 0
        np.testing.assert_allclose(
            other.decision_function(bags), plain_bags.decision_function(bags), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (2, 2), (3, 7)])
def test_few_bags(counts, recwarn):
    y = np.repeat([0, 1], counts)
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(3, 4) + 3 * label for label in y])
    model = RMISVC(random_state=0).fit(bags, y)
    assert np.isfinite(model.predict_proba(bags)).all()
    assert (model.path_ is None) == (min(counts) == 1)
    assert len(recwarn) == 0


def test_weights_count_in_the_choice_and_the_calibration():
    rng = np.random.RandomState(0)
    bags = Bags([rng.randn(3, 4) for _ in range(60)])
    y = np.arange(60) % 2
    weight = np.where(y == 1, 9.0, 1.0)
    heavy = RMISVC(random_state=0).fit(bags, y, sample_weight=weight)
    assert heavy.predict_proba(bags)[:, 1].mean() > 0.8
    scaled = RMISVC(random_state=0).fit(bags, y, sample_weight=100 * weight)
    np.testing.assert_allclose(scaled.predict_proba(bags), heavy.predict_proba(bags), rtol=1e-4)
    by_class = RMISVC(class_weight={0: 1, 1: 9}, random_state=0).fit(bags, y)
    np.testing.assert_allclose(by_class.predict_proba(bags), heavy.predict_proba(bags), rtol=1e-4)


def test_noise_gives_the_base_rate():
    rng = np.random.RandomState(1)
    bags = Bags([rng.randn(rng.randint(2, 7), 12) for _ in range(400)])
    y = (rng.rand(400) < 0.2).astype(int)
    model = RMISVC(random_state=0).fit(bags[:200], y[:200])
    p = model.predict_proba(bags[200:])[:, 1]
    loss = -np.mean(np.where(y[200:], np.log(p), np.log(1 - p)))
    assert loss < base_rate_log_loss(y[200:] == 1) + 0.02
    assert model.score(bags[200:], y[200:]) >= 1 - y[200:].mean() - 0.02


def test_probabilities_are_better_than_the_base_rate_on_bags_never_seen():
    rng = check_random_state(0)
    y = np.arange(240) % 2
    tables = [rng.randn(6, 10) for _ in y]
    for table, label in zip(tables, y):
        table[0, 0] += 2.5 * label  # hard to see among six
    bags = Bags(tables)
    model = RMISVC(random_state=0).fit(bags[:120], y[:120])
    own = RMISVC(3e-5, random_state=0).fit(bags[:120], y[:120])

    def loss(fitted):
        p = fitted.predict_proba(bags[120:])[:, 1].clip(1e-12, 1 - 1e-12)
        return -np.mean(np.where(y[120:], np.log(p), np.log(1 - p)))

    assert loss(model) < np.log(2) < loss(own)


def test_where_sizes_tell_the_labels_they_are_not_learned():
    train, _ = make_threshold_test(random_state=0)
    assert path.sizes_tell(train.bags, (train.y == 1)[:, None], np.ones((len(train.y), 1)))
    assert set(RMISVC(random_state=0).fit(train.bags, train.y).path_["pooling"]) == {"normalized"}
    bags, y = concept_problem(60)
    assert not path.sizes_tell(bags, (y == 1)[:, None], np.ones((60, 1)))


@pytest.mark.parametrize("size", [100, 1000])
def test_large_bags(size):
    """A twentieth of the instances of positive bags lies six deviations away."""
    for seed in range(2):
        rng = np.random.RandomState(seed)
        y = np.arange(100) % 2
        x = rng.standard_normal((100, size, 16)).astype(np.float32)
        x[y == 1, : size // 20, 0] += 6
        model = RMISVC(random_state=seed).fit(x[:60], y[:60])
        assert model.score(x[60:], y[60:]) >= 0.95


def test_size_prior_is_in_the_scores_of_bags_and_not_of_instances():
    bags, y = concept_problem()
    model = RMISVC(0.01, pooling="normalized", random_state=0).fit(bags, y)
    z = model.instance_scores(bags)
    mapped = model.scaler_.transform(bags).instances @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(z, mapped)
    sized = z + np.repeat(size_prior(bags.offsets), bags.sizes)
    np.testing.assert_allclose(model.decision_function(bags), noisy_or_log_odds(sized, bags.offsets))


def test_passes_are_bounded():
    few, many = Bags(np.zeros((100, 2, 3))), Bags(np.zeros((100_000, 1, 1)))
    assert path.passes_for(few, 100) == 50
    assert path.passes_for(few, 1) == 1
    assert path.passes_for(many, 100) == 2
