"""DD-SVM: prototypes and distances against direct loops."""

import numpy as np
from scipy import sparse
from sklearn.svm import SVC
from tests.problems import concept_problem

from bagwise import DDSVC, Bags
from bagwise.instance_space.dd_svm import distinct, nearest_distances


def test_distances_against_a_double_loop():
    bags, _ = concept_problem(8)
    rng = np.random.RandomState(0)
    points, scales = rng.randn(3, 5), rng.uniform(0.1, 2, size=(3, 5))
    expected = [[min(np.linalg.norm(s * (x - t)) for x in bag) for t, s in zip(points, scales)] for bag in bags]
    np.testing.assert_allclose(nearest_distances(bags, points, scales), expected, atol=1e-3)
    csr = bags.with_instances(sparse.csr_array(bags.instances))
    np.testing.assert_allclose(nearest_distances(csr, points, scales), expected, atol=1e-3)


def test_prototypes_are_good_and_different():
    points = np.array([[0.0, 0.0], [5.0, 5.0], [5.0, 5.001], [9.0, 9.0]])
    scales = np.ones((4, 2))
    kept, _ = distinct(points, scales, np.array([0.3, 0.1, 0.2, 0.9]))
    np.testing.assert_array_equal(kept, points[[1, 0]])  # best first; a copy and the worst half are left out


def test_scores_are_those_of_a_machine_on_the_distances():
    bags, y = concept_problem(40)
    new, _ = concept_problem(15, seed=1)
    model = DDSVC(C=3.0, n_init=5, calibrate=False, random_state=0).fit(bags, y)
    near, unseen = (
        (nearest_distances(model.concepts_._mapped(each), model.points_[0], model.scales_[0]) - model.centre_[0])
        / model.spread_[0]
        for each in (bags, new)
    )
    plain = SVC(C=3.0, gamma=model.gamma_[0], tol=1e-9).fit(near, y)
    np.testing.assert_allclose(model.decision_function(new), plain.decision_function(unseen), atol=1e-5)


def test_two_concepts_that_must_both_be_there():
    """A point near all positive bags cannot tell; distances to several can."""

    def make(seed):
        rng = np.random.RandomState(seed)
        y = np.arange(120) % 2
        tables = []
        for label in y:
            table = rng.randn(5, 3)
            for row, kind in enumerate((0, 1) if label else (rng.randint(2),)):
                table[row, kind] += 7
            tables.append(table)
        return Bags(tables), y

    bags, y = make(0)
    assert DDSVC(random_state=0).fit(bags, y).score(*make(1)) >= 0.85
