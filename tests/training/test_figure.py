"""The training code of the figure branch: measures always; wiring and export where PyTorch is installed."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

import cv2
import onnx

from bagwise.discovery.proposals.edges import WEIGHTS, NetworkEdges

TRAINING = Path(__file__).parents[2] / "training"


@pytest.fixture
def load(monkeypatch):
    """Import a module of training/figure, as its scripts import one another and those of training/edges."""
    monkeypatch.syspath_prepend(TRAINING / "edges")
    monkeypatch.syspath_prepend(TRAINING / "figure")
    return importlib.import_module


@pytest.fixture
def branch(load):
    """A branch with random weights and batch norms that matter."""
    torch = pytest.importorskip("torch", reason="PyTorch is needed to train the figure branch")
    torch.manual_seed(0)
    branch = load("branch").FigureBranch()
    for module in branch.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    torch.nn.init.normal_(branch.head.weight, 0, 1)
    return branch.eval()


# Maps of odd sides at strides 16 and 32 are where doubling and halving could part.
@pytest.mark.parametrize("size", [(96, 128), (48, 80), (16, 16)])
def test_attached_graph_equals_the_trained_branch(load, branch, tmp_path, size):
    import torch

    before = onnx.load(str(WEIGHTS))
    file = tmp_path / "both.onnx"
    file.write_bytes(load("attach").attach(branch, before).SerializeToString())
    image = np.random.default_rng(0).integers(0, 255, (*size, 3), dtype=np.uint8)
    edges, figure = NetworkEdges(weights=file).edges_and_figure(image)
    np.testing.assert_array_equal(edges, NetworkEdges()(image))
    taps = load("trunk").Trunk(WEIGHTS)(image[None])
    assert [tuple(tap.shape[1] for tap in pair) for pair in taps] == list(load("branch").TAPS)
    with torch.no_grad():
        logits, sides = branch([tuple(torch.from_numpy(tap) for tap in pair) for pair in taps])
        expected = torch.nn.functional.interpolate(logits, scale_factor=4, mode="bilinear", align_corners=False)
    assert len(sides) == 3
    # 8-bit kernels through twenty layers.
    np.testing.assert_allclose(figure, torch.sigmoid(expected)[0, 0].numpy(), atol=0.06)
    assert np.ptp(figure) > 0.01 or size == (16, 16)


def test_attaching_again_replaces_the_branch(load, branch):
    attach, shipped = load("attach").attach, onnx.load(str(WEIGHTS))
    once = attach(branch, shipped)
    assert [output.name for output in once.graph.output] == ["edges", "figure"]
    assert attach(branch, once).SerializeToString() == once.SerializeToString()
    plain = load("trunk").without_figure(once)
    assert [output.name for output in plain.graph.output] == ["edges"]
    onnx.checker.check_model(plain)


def test_f_measure_against_the_definition(load):
    measure = load("measure")
    rng = np.random.default_rng(0)
    figure, truth = rng.random((20, 30)).astype(np.float32), rng.random((20, 30)) < 0.3
    scores = measure.f_measures(figure, truth)
    for threshold, score in zip(measure.THRESHOLDS, scores):
        predicted = figure >= threshold
        right = (predicted & truth).sum()
        precision, recall = right / predicted.sum(), right / truth.sum()
        assert score == pytest.approx(1.3 * precision * recall / (0.3 * precision + recall))
    assert np.isnan(measure.f_measures(figure, np.zeros_like(truth))).all()


def test_loss_prefers_the_teachers_map(load):
    torch = pytest.importorskip("torch", reason="PyTorch is needed to train the figure branch")
    loss = load("distil").figure_loss
    target = torch.zeros(2, 1, 8, 8)
    target[:, :, 2:5, 3:7] = 1
    assert (
        loss(20 * target - 10, target) < 0.01 < loss(torch.zeros_like(target), target) < loss(10 - 20 * target, target)
    )


def square_in_an_image() -> tuple[np.ndarray, np.ndarray]:
    """A light square on a dark ground, and its mask as a teacher's map."""
    y, x = np.mgrid[:160, :200]
    inside = (np.abs(y - 60) < 30) & (np.abs(x - 70) < 40)
    image = np.where(inside[..., None], 220, 30).repeat(3, 2).astype(np.uint8)
    return image, cv2.resize(np.where(inside, 255, 0).astype(np.uint8), (320, 320), interpolation=cv2.INTER_AREA)


def test_drawing_keeps_image_and_target_together(load, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is needed to train the figure branch")
    distil = load("distil")
    monkeypatch.setattr(distil, "STUDIO", 0)
    image, target = square_in_an_image()
    cv2.imwrite(str(tmp_path / "a.png"), image)
    rng = np.random.default_rng(0)
    for _ in range(8):
        image, drawn = distil.draw(tmp_path / "a.png", target, (64, 80), rng)
        assert image.shape == (64, 80, 3)
        assert drawn.shape == (16, 20)
        small = cv2.resize(image.mean(2), (20, 16), interpolation=cv2.INTER_AREA)
        assert np.corrcoef(small.ravel(), drawn.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("seed", range(6))
def test_studio_images_change_where_the_mask_says(load, seed):
    image, target = square_in_an_image()
    make = load("studio").studio_image
    made, mask = make(image, target, np.random.default_rng(seed))
    assert made.shape == image.shape
    assert mask.shape == image.shape[:2]
    assert 0 < (mask > 128).mean() < 0.6
    # Colours jump at the outline of the mask.
    jump = sum(np.abs(np.diff(made.astype(int), axis=axis)).sum(2)[:159, :199] for axis in (0, 1))
    outline = cv2.dilate(mask, np.ones((3, 3))) - cv2.erode(mask, np.ones((3, 3))) > 128
    assert jump[outline[:159, :199]].mean() > 3 * jump[mask[:159, :199] == 0].mean()
    again = make(image, target, np.random.default_rng(seed))
    np.testing.assert_array_equal(made, again[0])
    np.testing.assert_array_equal(mask, again[1])
