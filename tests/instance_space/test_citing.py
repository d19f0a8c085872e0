"""Votes of citers against plain loops, and key instances found where they are known."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from bagwise import Bags, CitationVote
from bagwise.instance_space._citing_loops import reach_of_rows
from bagwise.instance_space.citing import best_threshold


def key_problem(seed: int, n_bags: int = 40):
    """Bags of two far clusters and noise, where instances of the third cluster make bags positive."""
    rng = np.random.RandomState(seed)
    centres = 6 * np.eye(3, 4)
    tables, kinds = [], []
    for label in np.arange(n_bags) % 2:
        kind = rng.randint(2, size=rng.randint(4, 8))
        kind[0] = 2 if label else kind[0]
        tables.append(centres[kind] + rng.randn(len(kind), 4))
        kinds.append(kind == 2)
    return Bags(tables), np.arange(n_bags) % 2, np.concatenate(kinds)


def plain_votes(x, bag, label, k, refinement, rounds):
    """Votes and scores of the training instances, one pair at a time."""
    n = len(x)
    distance = ((x[:, None] - x) ** 2).sum(axis=2)
    cites = np.zeros((n, n), dtype=bool)
    for j in range(n):
        others = np.flatnonzero(bag != bag[j])
        cites[j, others] = distance[j, others] <= np.sort(distance[j, others])[k - 1] * (1 + 1e-9)
    vote, neutral = label.copy(), label.mean()
    for _ in range(rounds + 1):
        score = np.array([(neutral + vote[cites[:, i]].sum()) / (1 + cites[:, i].sum()) for i in range(n)])
        final = vote
        vote = np.where(label > 0, (1 - refinement) + refinement * score, -1.0)
    return final, score


@pytest.mark.parametrize("refinement", [0.0, 0.5])
def test_votes_against_plain_loops(refinement):
    bags, y, _ = key_problem(0, 16)
    model = CitationVote(4, refinement=refinement, scaling=None, calibrate=False).fit(bags, y)
    label = np.where(np.repeat(y == 1, bags.sizes), 1.0, -1.0)
    votes, scores = plain_votes(bags.instances, bags.bag_of_instance, label, 4, refinement, 60 if refinement else 0)
    np.testing.assert_allclose(model.votes_[:, 0], votes, atol=1e-8)
    # A new bag: an instance votes for those that it would count among its four nearest of other bags.
    new = np.random.RandomState(1).randn(5, 4) * 3
    expected = []
    for row in new:
        citers = []
        for j, x in enumerate(bags.instances):
            others = bags.instances[bags.bag_of_instance != bags.bag_of_instance[j]]
            nearer = (((others - x) ** 2).sum(axis=1) < ((row - x) ** 2).sum()).sum()
            if nearer < 4:
                citers.append(votes[j])
        expected.append((label.mean() + np.sum(citers)) / (1 + len(citers)))
    np.testing.assert_allclose(model.instance_scores(Bags([new])) + model.threshold_, expected, atol=1e-8)
    best = np.maximum.reduceat(scores, bags.offsets[:-1])
    assert model.threshold_[0] == pytest.approx(best_threshold(best, y == 1, np.ones(len(y))))


def test_reach_counts_copies_and_equal_distances():
    squared = np.array([[0.0, 1.0, 1.0, 4.0, 9.0], [0.0, 0.0, 2.0, 3.0, 5.0]])
    bag, own = np.array([0, 1, 2, 3, 4]), np.array([0, 0])
    for mass, k, expected in (
        (np.ones(5), 1, [1.0, 0.0]),
        (np.ones(5), 2, [1.0, 2.0]),  # two at equal distance are both within
        (np.ones(5), 3, [4.0, 3.0]),
        (np.ones(5), 5, [np.inf, np.inf]),  # there are but four others
        (np.array([2.0, 1, 1, 1, 1]), 1, [0.0, 0.0]),  # the copy of the bag itself
        (np.array([1.0, 0.5, 0.5, 1, 1]), 1, [1.0, 2.0]),
    ):
        out = np.empty(2)
        reach_of_rows(squared, own, mass, bag, k, 1e-12, out)
        np.testing.assert_allclose(out, expected, atol=1e-9)


def test_threshold_is_the_best_of_all():
    rng = np.random.RandomState(0)
    scores, target, weight = rng.randint(6, size=40) / 3, rng.rand(40) < 0.5, rng.rand(40)
    found = best_threshold(scores, target, weight)
    steps = np.unique(scores)
    tried = [weight[(scores > t) != target].sum() for t in (steps[1:] + steps[:-1]) / 2]
    assert weight[(scores > found) != target].sum() == pytest.approx(min(tried))


def test_key_instances_of_new_bags_are_found():
    bags, y, _ = key_problem(0)
    unseen, truth, is_key = key_problem(1)
    model = CitationVote(5).fit(bags, y)
    assert roc_auc_score(is_key, model.instance_scores(unseen)) > 0.95
    assert model.score(unseen, truth) >= 0.85
    plain = CitationVote(5, refinement=0.0).fit(bags, y)
    others = np.repeat(y == 1, bags.sizes) & ~key_problem(0)[2]
    # Refined, the other instances of positive bags have less to say.
    assert model.votes_[others].mean() < plain.votes_[others].mean() - 0.1


def test_sparse_rows_have_the_same_scores():
    bags, y, _ = key_problem(2)
    csr = bags.with_instances(sparse.csr_array(bags.instances))
    dense = CitationVote(scaling="global").fit(bags, y)
    np.testing.assert_allclose(
        CitationVote(scaling="global").fit(csr, y).instance_scores(csr), dense.instance_scores(bags), atol=1e-6
    )
