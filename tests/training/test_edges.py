"""The training code of the edge network: evaluator always; network and export where PyTorch is installed."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")

FOLDER = Path(__file__).parents[2] / "training" / "edges"


@pytest.fixture
def load(monkeypatch):
    """Import a module of training/edges, as its scripts import one another."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("density", [0.05, 0.3, 0.7])
def test_matching_is_maximum(load, seed, density):
    rng = np.random.default_rng(seed)
    predicted, truth = rng.random((2, 24, 31)) < [[[density]], [[0.2]]]
    matched = load("matching").match(predicted, truth, 3.2)
    places, targets = np.argwhere(predicted), np.argwhere(truth)
    near = np.hypot(*(places[:, None] - targets[None]).transpose(2, 0, 1)) <= 3.2
    assert matched.sum() == (maximum_bipartite_matching(csr_array(near)) >= 0).sum()
    assert not (matched & ~predicted).any()


def test_matching_of_nothing(load):
    nothing, line = np.zeros((10, 12), bool), np.eye(10, 12, dtype=bool)
    match = load("matching").match
    assert not match(nothing, line, 3).any()
    assert not match(line, nothing, 3).any()
    assert (match(line, line, 3) == line).all()


@pytest.fixture
def example(load):
    """Two annotators: both drew the square, one also a line."""
    lines = np.zeros((2, 60, 80), bool)
    lines[:, 10:41, [20, 60]] = lines[:, [10, 40], 20:61] = True
    lines[1, 50, 5:75] = True
    return load("data").Example("square", np.zeros((60, 80, 3), np.uint8), lines)


def test_evaluator_counts_as_the_protocol_says(load, example):
    evaluate = load("evaluate")
    square, line = example.boundaries[0], example.boundaries[1] & ~example.boundaries[0]
    right, predicted, found, total = evaluate.count(square, example.boundaries)
    assert (right, predicted) == (square.sum(), square.sum())
    assert (found, total) == (2 * square.sum(), 2 * square.sum() + line.sum())
    # A prediction is right when one annotator has it, and twice drawn is not twice predicted.
    right, predicted, found, _ = evaluate.count(line, example.boundaries)
    assert right == predicted == found == line.sum()
    stray = np.zeros_like(square)
    stray[55:, 30] = True
    assert evaluate.count(stray, example.boundaries[:1])[0] == 0


def test_evaluator_summary(load, example):
    evaluate = load("evaluate")
    strength = np.where(example.boundaries[0], 0.8, np.where(example.boundaries[1], 0.3, 0)).astype(np.float32)
    counts = evaluate.count_thresholds(strength, example.boundaries)[None]
    result = evaluate.summarise(counts)
    assert result["ODS"] == pytest.approx(evaluate.f_measure(*evaluate.precision_recall(counts[0])).max(), abs=1e-3)
    assert result["OIS"] == pytest.approx(result["ODS"], abs=1e-3)
    assert 0.5 < result["AP"] <= 1
    assert (strength >= result["threshold"]).any()
    human = evaluate.humans(example)
    precision, recall = evaluate.precision_recall(human)
    square, line = example.boundaries[0].sum(), (example.boundaries[1] & ~example.boundaries[0]).sum()
    assert precision == pytest.approx(2 * square / (2 * square + line))
    assert recall == pytest.approx(2 * square / (2 * square + line))


def test_soft_targets(load, example):
    target = load("data").soft_target(example.boundaries, 1.0)
    assert target[10, 40] == 1
    assert target[50, 40] == pytest.approx(0.5)
    assert target[51, 40] == pytest.approx(0.5 * np.exp(-0.5))
    assert target[25, 40] < 1e-6
    assert not load("data").soft_target(np.zeros((2, 5, 6), bool), 1.0).any()


def test_reading_bsds(load, data):
    examples = load("data").load_split(data / "bsds500", "train", "val")
    assert len(examples) == 300
    assert examples[0].image.shape[:2] == examples[0].boundaries.shape[1:]
    kept, back = load("data").held_out(examples)
    assert (len(kept), len(back)) == (250, 50)
    assert not {e.name for e in kept} & {e.name for e in back}
    with pytest.raises(ValueError, match="no images of nowhere"):
        load("data").load_split(data / "bsds500", "nowhere")


@pytest.mark.slow
def test_shipped_network_beats_gradients_on_bsds(load, data):
    evaluate = load("evaluate")
    examples = load("data").load_split(data / "bsds500", "test")[::40]
    ods = {
        kind: evaluate.summarise(np.stack([evaluate.score_detector(e, kind) for e in examples]))["ODS"]
        for kind in ("network", "gradient")
    }
    # On all 200 photographs: see docs/model-cards/edges.md.
    assert ods["network"] > 0.75
    assert ods["network"] > ods["gradient"] + 0.08


def test_exported_graph_equals_the_trained_network(load, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is needed to train the edge network")
    pytest.importorskip("onnx")
    from bagwise.discovery.proposals.edges import NetworkEdges

    network, export = load("network"), load("export")
    torch.manual_seed(0)
    net = network.EdgeNet(network.Shape(4, (8, 8, 8), 1))
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    net.eval()
    file = tmp_path / "net.onnx"
    file.write_bytes(export.to_onnx(net).SerializeToString())
    image = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    with torch.no_grad():
        expected = torch.sigmoid(net(torch.tensor(image).permute(2, 0, 1)[None].float()))[0, 0].numpy()
    np.testing.assert_allclose(NetworkEdges(weights=file)(image), expected, atol=0.02)
