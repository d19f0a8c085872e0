"""Networks over bags: pooling and objectives against plain NumPy, members that do not disturb each other."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

torch = pytest.importorskip("torch")

from bagwise import Bags  # noqa: E402 - after the check that torch is there
from bagwise.deep import AttentionMIL, MINet, MiNet, RMINet  # noqa: E402
from bagwise.deep._networks import (  # noqa: E402
    AttentionNetwork,
    EmbeddingNetwork,
    InstanceNetwork,
    Layout,
    RelaxedNetwork,
)
from bagwise.rmi.objective import Loss, instance_coefficients  # noqa: E402

SIZES = [3, 1, 4]
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
BAG_OF_ROW = torch.as_tensor(np.repeat(np.arange(3), SIZES))
X = torch.as_tensor(np.random.RandomState(0).randn(8, 5))
TARGET = np.array([True, False, True])


def layout() -> Layout:
    return Layout(BAG_OF_ROW, 3, torch.float64)


def parameters(network, n_estimators=2):
    drawn = network.initial(5, n_estimators, torch.Generator().manual_seed(0))
    noise = torch.Generator().manual_seed(1)
    return {name: value.double() + 0.1 * torch.randn(value.shape, generator=noise) for name, value in drawn.items()}


def plain_layers(weights, member, x, n_layers):
    """Hidden activations of one member in NumPy."""
    layers = []
    for i in range(n_layers):
        x = np.maximum(x @ weights[f"hidden{i}.weight"][member].numpy() + weights[f"hidden{i}.bias"][member].numpy(), 0)
        layers.append(x)
    return layers


def plain_linear(weights, name, member, x):
    return x @ weights[f"{name}.weight"][member].numpy() + weights[f"{name}.bias"][member].numpy()


def rows_of_bags():
    return [X.numpy()[a:b] for a, b in zip(OFFSETS[:-1], OFFSETS[1:])]  # noqa: RUF007 - plain slices


def test_pooling_over_the_rows_of_each_bag():
    values = torch.as_tensor(np.random.RandomState(1).randn(2, 8, 4))
    parts = np.split(values.numpy(), OFFSETS[1:-1], axis=1)
    flat = [part[..., 0] for part in parts]
    at = layout()
    np.testing.assert_allclose(at.total(values), np.stack([part.sum(axis=1) for part in parts], axis=1))
    np.testing.assert_allclose(at.highest(values), np.stack([part.max(axis=1) for part in parts], axis=1))
    np.testing.assert_allclose(at.mean(values), np.stack([part.mean(axis=1) for part in parts], axis=1))
    log_mean = [np.log(np.mean(np.exp(part), axis=1)) for part in flat]
    np.testing.assert_allclose(at.log_mean_exp(values[..., 0]), np.stack(log_mean, axis=1))
    shares = [np.exp(part) / np.exp(part).sum(axis=1, keepdims=True) for part in flat]
    np.testing.assert_allclose(at.softmax(values[..., 0]), np.concatenate(shares, axis=1))


@pytest.mark.parametrize("gated", [False, True])
def test_attention_network_is_its_formula(gated):
    network = AttentionNetwork((6, 4), 0.0, 3, gated)
    weights = parameters(network)
    scores = network.scores(weights, X, layout())
    for member in range(2):
        for i, rows in enumerate(rows_of_bags()):
            h = plain_layers(weights, member, rows, 2)[-1]
            units = np.tanh(plain_linear(weights, "attend", member, h))
            if gated:
                units = units / (1 + np.exp(-plain_linear(weights, "gate", member, h)))
            a = np.exp(plain_linear(weights, "attention", member, units)[:, 0])
            expected = plain_linear(weights, "output", member, (a / a.sum()) @ h)[0]
            assert float(scores[member, i]) == pytest.approx(expected)


@pytest.mark.parametrize("pooling", ["max", "mean", "lse"])
def test_instance_network_is_its_formula(pooling):
    network = InstanceNetwork((6, 4), 0.0, pooling)
    weights = parameters(network)
    scores = network.scores(weights, X, layout())
    pool = {"max": np.max, "mean": np.mean, "lse": lambda z: np.log(np.mean(np.exp(z)))}[pooling]
    for member in range(2):
        for i, rows in enumerate(rows_of_bags()):
            z = plain_linear(weights, "output", member, plain_layers(weights, member, rows, 2)[-1])[:, 0]
            assert float(scores[member, i]) == pytest.approx(pool(z))


@pytest.mark.parametrize("deep_supervision", [False, True])
def test_embedding_network_is_its_formula(deep_supervision):
    network = EmbeddingNetwork((6, 4), 0.0, "max", deep_supervision)
    weights = parameters(network)
    scores = network.scores(weights, X, layout())
    losses = network.losses(weights, X, layout(), torch.as_tensor(TARGET), None)
    for member in range(2):
        for i, rows in enumerate(rows_of_bags()):
            first, last = plain_layers(weights, member, rows, 2)
            branches = [plain_linear(weights, "output", member, last.max(axis=0))[0]]
            if deep_supervision:
                branches.append(plain_linear(weights, "output0", member, first.max(axis=0))[0])
            assert float(scores[member, i]) == pytest.approx(np.mean(branches))
            expected = np.mean([np.logaddexp(0, -z if TARGET[i] else z) for z in branches])
            assert float(losses[member, i]) == pytest.approx(expected)


def test_relaxed_network_has_the_objective_of_rmi_svm():
    network = RelaxedNetwork((6,), 0.0, 5.0, 1.2)
    weights = {name: value.requires_grad_() for name, value in parameters(network).items()}
    losses = network.losses(weights, X, layout(), torch.as_tensor(TARGET), None)
    for member in range(2):
        plain = {name: value.detach() for name, value in weights.items()}
        z = plain_linear(plain, "output", member, plain_layers(plain, member, X.numpy(), 1)[-1])[:, 0]
        expected, coefficients = instance_coefficients(z, OFFSETS, TARGET, Loss(1.0, 5.0, 1.2))
        np.testing.assert_allclose(losses[member].detach(), expected)
        (gradient,) = torch.autograd.grad(losses[member].sum(), weights["output.bias"], retain_graph=True)
        assert float(gradient[member, 0]) == pytest.approx(-coefficients.sum())


def test_noisy_or_learns_from_bags_far_below_the_border():
    """Probabilities that underflow must still pull their best instance up."""
    from bagwise.deep._networks import noisy_or_log_odds

    z = torch.full((1, 8), -60.0, requires_grad=True)
    at = Layout(BAG_OF_ROW, 3, torch.float32)
    torch.nn.functional.softplus(-noisy_or_log_odds(z, at)).sum().backward()
    np.testing.assert_allclose(z.grad[0], -1 / np.repeat(SIZES, SIZES), rtol=1e-3)


def concept_bags(n_bags=60, seed=0):
    rng = np.random.RandomState(seed)
    y = np.arange(n_bags) % 2
    tables = [rng.randn(rng.randint(2, 6), 6) for _ in y]
    for table, label in zip(tables, y):
        if label:
            table[0, :2] += 4
    return Bags(tables), y


SMALL = {"hidden": (16,), "epochs": 40, "learning_rate": 0.01, "n_estimators": 2, "random_state": 0}


@pytest.mark.parametrize("kind", [AttentionMIL, MiNet, MINet, RMINet])
def test_learns_the_concept(kind):
    bags, y = concept_bags()
    unseen, truth = concept_bags(seed=1)
    model = kind(**SMALL).fit(bags, y)
    assert model.score(unseen, truth) >= 0.9
    hits = [np.argmax(z) == 0 for z, label in zip(unseen.split(model.instance_scores(unseen)), truth) if label]
    assert np.mean(hits) >= 0.9
    assert model.validation_loss_.shape == (1, 2)


def test_attention_lies_on_the_witness_and_sums_to_one():
    bags, y = concept_bags()
    weights = bags.split(AttentionMIL(**SMALL).fit(bags, y).attention(bags))
    np.testing.assert_allclose([w.sum() for w in weights], 1)
    assert np.mean([np.argmax(w) == 0 for w, label in zip(weights, y) if label]) >= 0.9


def test_members_hold_out_different_bags():
    _, y = concept_bags()
    model = AttentionMIL(**SMALL | {"n_estimators": 5})
    held_out = model._held_out(y == 1, np.random.RandomState(0))
    np.testing.assert_array_equal(held_out.sum(axis=0), 1)
    assert np.ptp((held_out & (y == 1)).sum(axis=1)) <= 1
    assert not AttentionMIL()._held_out(y[:8] == 1, np.random.RandomState(0)).any()


def test_a_member_never_learns_from_the_bags_it_holds_out():
    """Flipping the labels of held-out bags changes when a member is kept, but not the path it walks."""
    from bagwise.deep._training import Plan, train

    bags, y = concept_bags()
    network = InstanceNetwork((8,), 0.0, "max")
    held_out = (np.arange(60) < 12)[None]
    plan = Plan(5, 5, 16, 0.1, 0.0, "cpu", 0)
    flipped = np.where(held_out, y == 0, y == 1)
    honest, honest_loss, _ = train(network, bags, (y == 1)[None], np.ones(60), held_out, plan)
    other, other_loss, _ = train(network, bags, flipped, np.ones(60), held_out, plan)
    assert honest_loss[0] < other_loss[0]
    everything = np.zeros_like(held_out)
    joint, _, _ = train(network, bags, flipped, np.ones(60), everything, plan)
    # The first pass is the best for flipped labels: it must equal the honest run stopped after one pass.
    one, _, _ = train(network, bags, (y == 1)[None], np.ones(60), held_out, Plan(1, 5, 16, 0.1, 0.0, "cpu", 0))
    np.testing.assert_array_equal(other["hidden0.weight"], one["hidden0.weight"])
    assert not np.array_equal(joint["hidden0.weight"], honest["hidden0.weight"])


def test_dropout_is_random_in_training_only():
    bags, y = concept_bags()
    model = MINet(**SMALL | {"dropout": 0.5}).fit(bags, y)
    np.testing.assert_array_equal(model.decision_function(bags), model.decision_function(bags))
    assert not np.array_equal(model.weights_["output.weight"], MINet(**SMALL).fit(bags, y).weights_["output.weight"])


def test_large_data_is_scored_in_blocks(monkeypatch):
    bags, y = concept_bags()
    model = MiNet(**SMALL).fit(bags, y)
    whole = model.decision_function(bags)
    monkeypatch.setattr("bagwise.deep._training.ROWS_PER_BLOCK", 4)
    np.testing.assert_allclose(model.decision_function(bags), whole)


def test_bad_parameters_are_named():
    bags, y = concept_bags(20)
    with pytest.raises(ValueError, match="hidden must name the width"):
        MiNet(hidden=()).fit(bags, y)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device='cpu'"):
            MiNet(device="cuda").fit(bags, y)


def test_mi_net_learns_from_few_bags_whatever_the_seed():
    """One of three kinds of instance makes a bag positive; by the highest score alone, most seeds learn nothing."""
    rng = np.random.RandomState(0)
    y = np.arange(400) % 2
    tables = [rng.randn(rng.randint(4, 13), 20) for _ in y]
    for table, label in zip(tables, y):
        table[0, rng.randint(3)] += 5 * label
    for seed in range(3):
        model = MiNet(random_state=seed).fit(tables[:200], y[:200])
        assert roc_auc_score(y[200:], model.decision_function(tables[200:])) > 0.9


@pytest.mark.parametrize(
    "network",
    [
        RelaxedNetwork((4,), 0.0, beta=5.0, margin=1.0),
        InstanceNetwork((4,), 0.0, pooling="lse"),
        EmbeddingNetwork((4,), 0.0, pooling="max", deep_supervision=True),
    ],
)
@pytest.mark.parametrize("share", [0.04, 0.5, 0.9])
def test_a_bag_that_tells_nothing_begins_at_the_base_rate(network, share):
    weights = {name: 0 * value.double() for name, value in parameters(network, 1).items()}
    for name in weights:
        if name.startswith("output") and name.endswith("bias"):
            weights[name] += network.first_bias(share, 20)
    bag = torch.as_tensor(np.random.RandomState(0).randn(20, 5))
    at = Layout(torch.zeros(20, dtype=torch.int64), 1, torch.float64)
    np.testing.assert_allclose(torch.sigmoid(network.scores(weights, bag, at)), share, rtol=1e-10)


@pytest.mark.parametrize(("n_bags", "size", "every"), [(60, 150, 2), (500, 8, 25)], ids=["large bags", "few positive"])
def test_relaxed_network_learns_where_most_instances_or_bags_are_negative(n_bags, size, every):
    rng = np.random.RandomState(0)
    tables = rng.randn(2, n_bags, size, 20)
    y = (np.arange(n_bags) % every == 0).astype(int)
    tables[:, y == 1, : max(1, size // 20), 0] += 5
    model = RMINet(random_state=0).fit(tables[0], y)
    assert roc_auc_score(y, model.decision_function(tables[1])) > 0.95
