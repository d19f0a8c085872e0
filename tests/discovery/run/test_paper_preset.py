"""The paper's own recipe, on a network of its AlexNet's shape."""

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from PIL import Image
from tests.discovery.networks import alexnet

from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.run import pipeline
from bagwise.discovery.run.settings import Settings


@pytest.mark.slow
def test_fc6_of_every_warped_box(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(4):
        image = np.full((60, 80, 3), 120, np.uint8) + rng.integers(0, 9, (60, 80, 3), dtype=np.uint8)
        image[15:45, 20 + number : 55] = (200, 20, 20) if number % 2 else (20, 20, 200)
        folder = tmp_path / "photographs" / ("red" if number % 2 else "blue")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    file = alexnet(tmp_path / "alexnet.onnx")
    settings = Settings.preset("paper", str(file)).changed(max_boxes=6)
    run = pipeline.discover(tmp_path / "photographs", tmp_path / "run", settings=settings)
    assert run.manifest["settings"]["layer"] == "fc6_1"
    store = FeatureStore(run.store_path)
    assert not (run.store_path / "reduction.npz").exists()
    for name in store.files:
        features = store.features(name)
        assert features.shape[1] == 4096
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=0.05)
    assert len([row for row in run.boxes.to_pylist() if row["rank"] == 0]) == 4
    # The trained models look at new photographs through the same network.
    again = pipeline.discover_unlabelled(run.path, tmp_path / "photographs" / "red", tmp_path / "new")
    assert len(again.images) == 2
