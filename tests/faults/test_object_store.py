"""A store where nothing can be renamed, as on S3: what is cut off in the middle does not count, and is done again."""

import numpy as np
import pytest

fsspec = pytest.importorskip("fsspec", reason="stores at a URL need bagwise[cluster]")
pytest.importorskip("pyarrow")

from bagwise.discovery.features import store as stores  # noqa: E402
from bagwise.discovery.features.remote import RemoteStore, publish_shard  # noqa: E402
from bagwise.discovery.features.store import FeatureStore  # noqa: E402

SETTINGS = {"network": "n"}


@pytest.fixture
def url():
    system = fsspec.filesystem("memory")
    yield "memory://bucket/run"
    if system.exists("/bucket"):
        system.rm("/bucket", recursive=True)


@pytest.fixture
def shard(tmp_path):
    with FeatureStore(tmp_path / "private", SETTINGS) as store:
        store.write("a.png", (9, 9), np.ones((2, 4)), np.ones(2), np.arange(6.0).reshape(2, 3))
    return next((tmp_path / "private").glob("shard-*"))


class Cut(OSError):
    """The connection is gone."""


def cut_after(monkeypatch, puts, half_written):
    """From the n-th file on every upload fails, having left nothing or half of the file."""
    kind = type(fsspec.filesystem("memory"))
    put, done = kind.put_file, []

    def put_file(self, source, target, **rest):
        if len(done) >= puts:
            if half_written:
                with open(source, "rb") as file:
                    self.pipe_file(target, file.read()[:40])
            raise Cut("connection reset")
        done.append(target)
        put(self, source, target, **rest)

    monkeypatch.setattr(kind, "put_file", put_file)


def test_a_shard_that_was_cut_off_is_not_there(url, shard, tmp_path, monkeypatch):
    """Uploads of S3 appear whole or not at all, one by one; the index of a shard goes last."""
    RemoteStore(url, tmp_path / "first", SETTINGS)
    for puts in range(len(list(shard.iterdir()))):
        with monkeypatch.context() as patched:
            cut_after(patched, puts, half_written=False)
            with pytest.raises(Cut):
                publish_shard(shard, url, "shard-1000000")
        assert "a.png" not in RemoteStore(url, tmp_path / f"after {puts}", SETTINGS)
    publish_shard(shard, url, "shard-1000000")
    store = RemoteStore(url, tmp_path / "third", SETTINGS)
    assert store.files == ["a.png"]
    np.testing.assert_allclose(store.features("a.png"), np.arange(6.0).reshape(2, 3), atol=0.05)


def test_a_system_that_shows_half_an_upload_is_refused_in_one_sentence(url, shard, tmp_path, monkeypatch):
    """Not S3's promise, but a plain file server's: half an index is damage, said so, and nothing is taken from it."""
    RemoteStore(url, tmp_path / "first", SETTINGS)
    with monkeypatch.context() as patched:
        cut_after(patched, len(list(shard.iterdir())) - 1, half_written=True)
        with pytest.raises(Cut):
            publish_shard(shard, url, "shard-1000000")
    with pytest.raises(ValueError, match=r"index\.parquet is damaged .* delete"):
        RemoteStore(url, tmp_path / "second", SETTINGS)
    publish_shard(shard, url, "shard-1000000")
    assert RemoteStore(url, tmp_path / "third", SETTINGS).files == ["a.png"]


def test_a_download_that_was_cut_off_is_fetched_again(url, shard, tmp_path, monkeypatch):
    RemoteStore(url, tmp_path / "first", SETTINGS)
    publish_shard(shard, url, "shard-1000000")
    store = RemoteStore(url, tmp_path / "mirror", SETTINGS)
    kind = type(fsspec.filesystem("memory"))

    def half(self, source, target, **rest):
        with open(target, "wb") as file:
            file.write(self.cat_file(source)[:30])
        raise Cut("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(kind, "get_file", half)
        with pytest.raises(Cut):
            store.features("a.png")
    assert not list((tmp_path / "mirror").rglob("features.npy"))
    assert not list((tmp_path / "mirror").rglob(".writing-*"))
    assert store.features("a.png").shape == (2, 3)


def test_indexes_kept_together_at_the_url(url, tmp_path, monkeypatch):
    """One download instead of thousands; a shard that was made again, is gone or came later is noticed."""
    monkeypatch.setattr(stores, "IMAGES_PER_SHARD", 1)
    monkeypatch.setattr(stores, "SHARDS_APART", 3)
    RemoteStore(url, tmp_path / "first", SETTINGS)
    with FeatureStore(tmp_path / "private", SETTINGS) as private:
        for name in ("a.png", "b.png", "c.png", "d.png"):
            private.write(name, (9, 9), np.ones((2, 4)), np.ones(2), np.arange(6.0).reshape(2, 3))
    shards = sorted((tmp_path / "private").glob("shard-*"))
    for shard in shards[:3]:
        publish_shard(shard, url, shard.name)
    with RemoteStore(url, tmp_path / "client", SETTINGS) as store:
        assert store.files == ["a.png", "b.png", "c.png"]
    fetched, fetch = [], RemoteStore._fetch
    monkeypatch.setattr(RemoteStore, "_fetch", lambda self, name: (fetched.append(name), fetch(self, name))[1])

    def opened(name):
        fetched.clear()
        return RemoteStore(url, tmp_path / name, SETTINGS).files, [name for name in fetched if "shard" in name]

    assert opened("worker") == (["a.png", "b.png", "c.png"], [])
    publish_shard(shards[3], url, shards[3].name)
    assert opened("later") == (["a.png", "b.png", "c.png", "d.png"], ["shard-00003/index.parquet"])
    publish_shard(shards[3], url, shards[0].name)
    assert opened("again") == (["b.png", "c.png", "d.png"], [f"shard-0000{i}/index.parquet" for i in (0, 3)])
    fsspec.filesystem("memory").rm("/bucket/run/shard-00001", recursive=True)
    assert opened("gone")[0] == ["c.png", "d.png"]
