"""The feature store: what is written comes back, whole or not at all."""

import json

import numpy as np
import pytest

from bagwise.discovery.features.arrays import quantise
from bagwise.discovery.features.store import IMAGES_PER_SHARD, FeatureStore, Maps, StoreError

SETTINGS = {"backbone": "test", "boxes": 400}


def photograph(seed, n=7, d=5):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0, 100, (n, 2, 2)), axis=1).reshape(n, 4).astype(np.float32)
    return (120, 100), corners, rng.uniform(0, 1, n).astype(np.float32), rng.normal(size=(n, d)).astype(np.float32)


def test_round_trip_over_several_shards(tmp_path):
    names = [f"класс {i % 3}/{i}.jpg" for i in range(IMAGES_PER_SHARD + 5)]
    with FeatureStore(tmp_path / "store", SETTINGS) as store:
        for i, name in enumerate(names):
            store.write(name, *photograph(i, n=1 + i % 9))
    store = FeatureStore(tmp_path / "store")
    assert store.files == sorted(names)
    assert len(list((tmp_path / "store").glob("shard-*"))) == 2
    for i, name in enumerate(names):
        (width, height), boxes, objectness, features = photograph(i, n=1 + i % 9)
        entry = store.entry(name)
        assert (entry.width, entry.height, len(entry)) == (width, height, len(boxes))
        np.testing.assert_array_equal(store.boxes(name)[0], boxes)
        np.testing.assert_array_equal(store.boxes(name)[1], objectness)
        tolerance = np.abs(features).max(axis=1, keepdims=True) / 254 * 1.001
        assert (np.abs(store.features(name) - features) <= tolerance).all()


def test_maps_come_back(tmp_path):
    rng = np.random.default_rng(0)
    kept = {}
    with FeatureStore(tmp_path, SETTINGS) as store:
        for i, shape in enumerate(((3, 4), (0, 0), (2, 7))):
            cells = rng.normal(size=(*shape, 5)).astype(np.float32)
            edges, figure = (rng.integers(0, 256, (6 + i, 9), dtype=np.uint8) for _ in range(2))
            kept[str(i)] = Maps(cells, edges, figure)
            store.write(str(i), *photograph(i), kept[str(i)])
        store.write("none", *photograph(5))
    store = FeatureStore(tmp_path)
    for name, maps in kept.items():
        found = store.maps(name)
        np.testing.assert_array_equal(found.edges, maps.edges)
        np.testing.assert_array_equal(found.figure, maps.figure)
        assert found.cells.shape == maps.cells.shape
        tolerance = np.abs(maps.cells).max(axis=2, keepdims=True, initial=0) / 254 * 1.001
        assert (np.abs(found.cells - maps.cells) <= tolerance).all()
    assert store.maps("none").figure.size == store.maps("none").cells.size == 0
    with pytest.raises(StoreError, match="as wide as features"):
        store.write("wide", *photograph(6), Maps(np.zeros((1, 1, 4)), edges, figure))


def test_bags_are_in_the_order_asked_for(tmp_path):
    with FeatureStore(tmp_path, SETTINGS) as store:
        for i in range(4):
            store.write(str(i), *photograph(i, n=i + 1))
    bags = store.bags(["3", "0", "2"], priors=[np.arange(4), np.zeros(1), np.ones(3)])
    assert bags.offsets.tolist() == [0, 4, 5, 8]
    assert bags.instances.dtype == np.float32
    np.testing.assert_array_equal(bags[1], store.features("0"))
    np.testing.assert_array_equal(bags.prior, [0, 1, 2, 3, 0, 1, 1, 1])


def test_interrupted_and_resumed(tmp_path):
    def interrupted():
        with FeatureStore(tmp_path, SETTINGS) as store:
            store.write("a", *photograph(0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with FeatureStore(tmp_path, SETTINGS) as store:
        assert store.files == ["a"]
        store.write("b", *photograph(1))
    assert FeatureStore(tmp_path).files == ["a", "b"]


def test_a_crash_in_the_middle_of_a_shard_leaves_no_trace(tmp_path, monkeypatch):
    with FeatureStore(tmp_path, SETTINGS) as store:
        store.write("a", *photograph(0))
    save = np.save

    def full_disk(file, array):
        if "features" in str(file):
            raise OSError("no space left on device")
        save(file, array)

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full_disk)
        store.write("b", *photograph(1))
        with pytest.raises(OSError, match="no space"):
            store.flush()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["manifest.json", "shard-00000"]
    assert FeatureStore(tmp_path).files == ["a"]


def test_other_settings_are_refused(tmp_path):
    FeatureStore(tmp_path, SETTINGS)
    with pytest.raises(StoreError, match=r"other settings \(boxes\)"):
        FeatureStore(tmp_path, SETTINGS | {"boxes": 100})
    FeatureStore(tmp_path, dict(SETTINGS))


def test_damage_is_named(tmp_path):
    with pytest.raises(StoreError, match="not a feature store"):
        FeatureStore(tmp_path)
    with FeatureStore(tmp_path, SETTINGS) as store:
        store.write("a", *photograph(0))
    (tmp_path / "shard-00000" / "index.parquet").write_bytes(b"damaged")
    with pytest.raises(StoreError, match=r"shard-00000.* is damaged"):
        FeatureStore(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        FeatureStore(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99, "settings": {}}))
    with pytest.raises(StoreError, match="format 99"):
        FeatureStore(tmp_path)


def test_bad_rows_are_refused(tmp_path):
    store = FeatureStore(tmp_path, SETTINGS)
    size, boxes, objectness, features = photograph(0)
    with pytest.raises(StoreError, match="same number of rows"):
        store.write("a", size, boxes, objectness[:-1], features)
    with pytest.raises(StoreError, match="not finite"):
        store.write("a", size, boxes, objectness, features * np.nan)
    store.write("a", size, boxes, objectness, features)
    with pytest.raises(StoreError, match="already holds 'a'"):
        store.write("a", size, boxes, objectness, features)
    with pytest.raises(StoreError, match="does not hold 'b'"):
        store.features("b")


def test_quantise_zero_rows():
    values, scales = quantise(np.zeros((2, 3), np.float32))
    assert (values == 0).all()
    assert np.isfinite(scales).all()
