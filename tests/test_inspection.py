"""Displays, the strongest instances and what each feature adds."""

import matplotlib as mpl
import numpy as np
import pytest
from tests.problems import concept_problem

mpl.use("Agg")

from bagwise import MISVC, RMISVC, Bags, CitationKNN
from bagwise.datasets import load_musk1
from bagwise.inspection import (
    FeatureContributionDisplay,
    InstanceScoreDisplay,
    LamPathDisplay,
    feature_contributions,
    top_instances,
)


@pytest.fixture(scope="module")
def fitted():
    bags, y = concept_problem(40)
    return RMISVC(lam=0.01, random_state=0).fit(bags, y), bags, y


def test_top_instances_are_those_of_a_full_sort(fitted):
    model, bags, _ = fitted
    top = top_instances(model, bags, n=7)
    scores = model.instance_scores(bags)
    np.testing.assert_array_equal(top["score"], np.sort(scores)[::-1][:7])
    for bag, row, score, rank in zip(*top.values()):
        inside = model.instance_scores(bags[[int(bag)]])
        assert inside[row] == pytest.approx(score)
        assert rank == 1 + np.sum(inside > inside[row])


def test_top_instances_name_bags_by_their_ids(fitted):
    model, bags, _ = fitted
    named = Bags.from_arrays(bags.instances, bags.offsets, ids=[f"m{i}" for i in range(len(bags))])
    numbers = top_instances(model, bags)["bag"]
    assert top_instances(model, named)["bag"].tolist() == [f"m{i}" for i in numbers]


@pytest.mark.parametrize("model", [RMISVC(lam=0.01, random_state=0), MISVC()], ids=lambda m: type(m).__name__)
def test_contributions_sum_to_the_score_but_for_the_intercept(model):
    bags, y = concept_problem(40)
    fitted = model.fit(bags, y)
    names, parts = feature_contributions(fitted, bags)
    rest = fitted.instance_scores(bags) - parts.sum(axis=1)
    for one in bags.split(rest):  # what is left is the same for every instance of a bag
        np.testing.assert_allclose(one, one[0], atol=1e-8)
    assert names.tolist() == [f"x{k}" for k in range(bags.n_features)]


def test_methods_without_weights_say_so(fitted):
    _, bags, y = fitted
    with pytest.raises(ValueError, match="CitationKNN has no weight for each feature"):
        feature_contributions(CitationKNN().fit(bags, y), bags)
    with pytest.raises(ValueError, match="RMISVC has no weight for each feature"):
        feature_contributions(RMISVC(lam=0.01, kernel="rbf", random_state=0).fit(bags, y), bags)


def test_several_classes_need_a_name(fitted):
    _, bags, y = fitted
    three = np.where(np.arange(len(y)) % 5 == 0, 2, y)
    model = RMISVC(lam=0.01, epochs=3, random_state=0).fit(bags, three)
    with pytest.raises(ValueError, match="3 classes"):
        top_instances(model, bags)
    with pytest.raises(ValueError, match="9 is not among"):
        top_instances(model, bags, label=9)
    scores = model.instance_scores(bags)[:, 2]
    assert top_instances(model, bags, 1, label=2)["score"][0] == scores.max()
    assert feature_contributions(model, bags, label=1)[1].shape == bags.instances.shape
    with pytest.raises(ValueError, match="name one of the classes"):
        feature_contributions(model, bags)


def test_score_display_draws_every_instance(fitted):
    model, bags, y = fitted
    display = InstanceScoreDisplay.from_estimator(model, bags[:6], y[:6])
    drawn = [line for line in display.ax_.lines if len(line.get_xdata()) > 1 or line.get_markerfacecolor() == "none"]
    assert sum(len(line.get_xdata()) for line in drawn) == bags[:6].n_instances
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == [str(i) for i in range(6)]
    again = InstanceScoreDisplay(display.scores, what="probability").plot(ax=display.ax_)
    assert again.ax_ is display.ax_
    assert "probability" in again.ax_.get_xlabel()


def test_contribution_display_shows_the_largest_first(fitted):
    model, bags, _ = fitted
    display = FeatureContributionDisplay.from_estimator(model, bags[[3]], n_features=3)
    widths = np.abs([bar.get_width() for bar in display.ax_.patches])
    assert len(widths) == 3
    assert (np.diff(widths) <= 0).all()
    assert widths[0] == pytest.approx(np.abs(display.contributions).max())
    with pytest.raises(ValueError, match="give one bag, not 2"):
        FeatureContributionDisplay.from_estimator(model, bags[:2])


def test_path_display_draws_every_candidate_and_rings_the_chosen_one():
    bags, y = load_musk1()
    model = RMISVC(random_state=0).fit(bags, y)
    display = LamPathDisplay.from_estimator(model)
    *lines, ring = display.ax_.get_lines()
    assert sum(len(line.get_xdata()) for line in lines) == len(model.path_["lam"])
    drawn = {(x, loss) for line in lines for x, loss in zip(line.get_xdata(), line.get_ydata())}
    assert drawn == set(zip(model.path_["lam"], model.path_["log_loss"]))
    assert ring.get_xdata().tolist() == [model.lam_]
    with pytest.raises(ValueError, match="compared no values of lam"):
        LamPathDisplay.from_estimator(RMISVC(lam=0.01, random_state=0).fit(bags, y))
