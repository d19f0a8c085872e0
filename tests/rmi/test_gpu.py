"""The kernels for graphics cards against the CPU's, run in Triton's interpreter when there is no card."""

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra [gpu] is not installed")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
pytest.importorskip("triton", reason="triton, which runs the kernels for cards, is not installed")

from tests.rmi.test_sgd import make_problem  # noqa: E402

from bagwise import RMISVC, Bags  # noqa: E402
from bagwise.rmi.problem import Iterate  # noqa: E402
from bagwise.rmi.sgd import sgd  # noqa: E402
from bagwise.rmi.torch_solver import CardData, CudaStepper  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class SmallTiles(CudaStepper):
    """Tiles so small that the little problems here need several in each direction."""

    score_tile = (4, 8, 1)
    update_tile = (4, 8, 1)


def on_card(problem, start, bound):
    data = CardData.from_problem(problem, problem.bags.n_features, DEVICE)
    return SmallTiles(data, problem.loss, problem.intercept, start, bound)


def run_both(problem, average_from=5, radius="safe", start=None):
    """Two passes of six bags on the CPU and, in the interpreter (a tenth of a second a step), on the card."""
    bound = problem.radius(radius)
    start = start or Iterate.zero(problem.targets.shape[1], problem.bags.n_features)
    passes = np.random.RandomState(0).permutation(24)[:12].reshape(2, 6)
    on_cpu = sgd(problem, start, iter(passes), average_from=average_from, radius=bound)
    stepper = on_card(problem, start, bound)
    for order in passes:
        stepper.run(order, average_from)
    last, (coef, intercept) = stepper.last(), stepper.sums()
    kept = last.steps - max(average_from, start.steps)
    return on_cpu, (last, Iterate(coef / kept, intercept / kept, last.steps))


def assert_same(a, b, rtol):
    for one, other in zip(a, b):
        assert one.steps == other.steps
        np.testing.assert_allclose(one.coef, other.coef, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(one.intercept, other.intercept, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("intercept", "prior", "n_classes", "radius"),
    [(True, True, 3, "pegasos"), (False, True, 2, "safe"), (True, False, 2, None), (False, False, 2, "pegasos")],
)
def test_same_steps_as_the_cpu(intercept, prior, n_classes, radius):
    problem = make_problem(n_classes, intercept, prior=prior)
    assert_same(*run_both(problem, radius=radius), rtol=1e-9)


def test_single_precision_is_close():
    assert_same(*run_both(make_problem(dtype=np.float32)), rtol=1e-4)


def test_goes_on_from_an_earlier_iterate():
    rng = np.random.RandomState(0)
    start = Iterate(rng.randn(1, 7), rng.randn(1), steps=100)
    assert_same(*run_both(make_problem(), start=start, average_from=50, radius="pegasos"), rtol=1e-9)


@pytest.mark.parametrize("shift", [-700.0, -20.0, 700.0])
def test_extreme_scores(shift):
    problem = make_problem(prior=True)
    problem.bags = Bags.from_arrays(problem.bags.instances, problem.bags.offsets, prior=problem.bags.prior + shift)
    assert_same(*run_both(problem, radius=None), rtol=1e-9)


def test_each_problem_may_visit_bags_of_its_own():
    problem = make_problem(3)
    bound = problem.radius("safe")
    order = np.array([np.random.RandomState(k).permutation(24)[:7] for k in range(3)])
    stepper = on_card(problem, Iterate.zero(3, 7), bound)
    stepper.run(order, average_from=5)
    together = stepper.last()
    for k in range(3):
        alone = sgd(problem, Iterate.zero(3, 7), iter([order[k]]), average_from=5, radius=bound)[0]
        np.testing.assert_allclose(together.coef[k], alone.coef[k], rtol=1e-9, atol=1e-12)


def test_sparse_instances_are_refused():
    problem = make_problem(form="csr")
    with pytest.raises(ValueError, match="dense"):
        CardData.from_problem(problem, 7, DEVICE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card here")
def test_no_card_is_said_in_one_sentence():
    problem = make_problem()
    with pytest.raises(ValueError, match="no CUDA card here"):
        RMISVC(device="cuda").fit(problem.bags, problem.targets[:, 0])
