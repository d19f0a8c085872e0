"""Citation-kNN: distances and votes against direct loops."""

import numpy as np
import pytest
from scipy import sparse
from tests.problems import concept_problem

from bagwise import Bags, CitationKNN, distances
from bagwise.distances import hausdorff


def direct(a, b, kind):
    table = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    if kind == "minimal":
        return table.min()
    return max(table.min(axis=0).mean(), table.min(axis=1).mean())


@pytest.mark.parametrize("kind", ["minimal", "modified"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("values_per_block", [40, 1 << 22])
def test_distances_against_a_double_loop(kind, form, values_per_block, monkeypatch):
    monkeypatch.setattr(distances, "VALUES_PER_BLOCK", values_per_block)
    a, b = concept_problem(9)[0], concept_problem(7, seed=1)[0]
    a, b = (bags.with_instances(np.where(np.abs(bags.instances) < 0.3, 0, bags.instances)) for bags in (a, b))
    expected = [[direct(p, q, kind) for q in b] for p in a]
    found = hausdorff(*(bags.with_instances(form(bags.instances)) for bags in (a, b)), kind=kind)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_distances_far_from_the_origin_are_exact():
    rng = np.random.RandomState(0)
    a, b = (Bags([1e6 + rng.randint(-3, 4, size=(4, 3)).astype(float) for _ in range(5)]) for _ in range(2))
    expected = [[direct(p, q, "minimal") for q in b] for p in a]
    np.testing.assert_allclose(hausdorff(a, b, kind="minimal"), expected, atol=1e-9)


def votes_by_sorting(model, bags, y, query):
    """References and citers as the paper tells it, for distances that are all different."""
    to_query = np.array([direct(bag, query, model.metric) for bag in bags])
    voters = list(np.argsort(to_query)[: model.n_references])
    for i, bag in enumerate(bags):
        others = [direct(bag, other, model.metric) for j, other in enumerate(bags) if j != i]
        if np.sum(np.array(others) < to_query[i]) < model.n_citers:
            voters.append(i)
    return np.mean(np.where(y[voters] == 1, 1.0, -1.0))


@pytest.mark.parametrize("metric", ["minimal", "modified"])
@pytest.mark.parametrize(("references", "citers"), [(2, 4), (5, 0), (1, 3)])
def test_votes_against_sorting(metric, references, citers):
    (bags, y), (unseen, _) = concept_problem(), concept_problem(15, seed=1)
    model = CitationKNN(references, citers, metric=metric, scaling=None, calibrate=False).fit(bags, y)
    expected = [votes_by_sorting(model, bags, y, query) for query in unseen]
    np.testing.assert_allclose(model.decision_function(unseen), expected, atol=1e-12)


@pytest.mark.parametrize("scaling", [None, "unit"])
def test_a_bag_of_weight_two_counts_as_two_bags(scaling):
    (bags, y), (unseen, _) = concept_problem(), concept_problem(15, seed=1)
    weight = np.random.RandomState(0).randint(1, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    weighted = CitationKNN(scaling=scaling).fit(bags, y, sample_weight=weight)
    plain = CitationKNN(scaling=scaling).fit(bags[repeated], y[repeated])
    for query in (unseen, bags):
        np.testing.assert_allclose(weighted.decision_function(query), plain.decision_function(query), atol=1e-12)


def test_equal_distances_share_the_places_left():
    bags = Bags([np.array([[x]]) for x in (-1.0, 1.0, -1.0, 3.0)])
    model = CitationKNN(1, 0, scaling=None, calibrate=False).fit(bags, [1, 0, 0, 0])
    # Three bags at distance one share one place: a third of it is positive.
    np.testing.assert_allclose(model.decision_function([np.array([[0.0]])]), [1 / 3 - 2 / 3])
