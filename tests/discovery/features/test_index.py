"""The index of a store with many shards: one file, and never another answer than the shards themselves give."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bagwise.discovery.features import store as stores
from bagwise.discovery.features.arrays import OpenArrays, half_of_the_files
from bagwise.discovery.features.index import TOGETHER, BadIndex, Index, read_shard_index
from bagwise.discovery.features.store import INDEX, FeatureStore, StoreError

NAMES = [f"{i * 7 % 10}/{i}.png" for i in range(10)]


def write(store, name, seed=None):
    rng = np.random.default_rng(NAMES.index(name) if seed is None else seed)
    n = 2 + len(name) % 3
    store.write(name, (50 + n, 40), rng.uniform(0, 9, (n, 4)), rng.uniform(size=n), rng.normal(size=(n, 3)))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(stores, "IMAGES_PER_SHARD", 2)
    monkeypatch.setattr(stores, "SHARDS_APART", 3)


@pytest.fixture
def folder(tmp_path):
    """Five shards of two images, and their indexes in one file."""
    with FeatureStore(tmp_path / "store", {}) as store:
        for name in NAMES:
            write(store, name)
    return tmp_path / "store"


def answers(folder):
    store = FeatureStore(folder)
    return {name: (store.entry(name), store.features(name).tobytes()) for name in store.files}


def by_shards(folder):
    """The same without the file that keeps the indexes together."""
    aside = folder.parent / "aside"
    (folder / stores.TOGETHER).rename(aside)
    found = answers(folder)
    aside.rename(folder / stores.TOGETHER)
    return found


def test_shards_that_are_as_they_were_are_not_read_again(folder, monkeypatch):
    expected = by_shards(folder)
    monkeypatch.setattr(stores, "read_shard_index", lambda path: pytest.fail(f"{path} was read"))
    assert answers(folder) == expected
    assert FeatureStore(folder).files == sorted(NAMES)


def test_few_shards_need_no_such_file(tmp_path):
    with FeatureStore(tmp_path, {}) as store:
        write(store, NAMES[0])
    assert not (tmp_path / stores.TOGETHER).exists()


def test_a_shard_that_is_gone_is_noticed(folder):
    shutil.rmtree(folder / "shard-00001")
    store = FeatureStore(folder)
    assert store.files == sorted(set(NAMES) - set(NAMES[2:4]))
    assert store.holds(NAMES).tolist() == [True, True, False, False, *[True] * 6]
    with pytest.raises(StoreError, match="does not hold"):
        store.entry(NAMES[2])
    assert answers(folder) == by_shards(folder)
    with FeatureStore(folder, {}) as store:
        for name in NAMES[2:4]:
            write(store, name)
    assert answers(folder) == by_shards(folder)
    assert len(FeatureStore(folder)) == 10


def test_a_shard_that_came_later_is_noticed(folder):
    with FeatureStore(folder, {}) as store:
        write(store, "0/new.png", seed=3)
    assert Index.read(folder / stores.TOGETHER).names == sorted(NAMES), "one shard is no reason to write it anew"
    assert "0/new.png" in FeatureStore(folder)
    assert answers(folder) == by_shards(folder)


def test_a_shard_that_was_made_again_is_noticed(folder):
    shard = folder / "shard-00002"
    shutil.rmtree(shard)
    with FeatureStore(folder.parent / "other", {}) as store:
        write(store, "another.png", seed=5)
    shutil.copytree(folder.parent / "other" / "shard-00000", shard)
    assert FeatureStore(folder).files == sorted({*NAMES[:4], *NAMES[6:], "another.png"})
    assert answers(folder) == by_shards(folder)


def test_a_shard_whose_index_is_damaged_is_named(folder):
    (folder / "shard-00003" / "index.parquet").write_bytes(b"damaged")
    with pytest.raises(StoreError, match=r"shard-00003.* is damaged"):
        FeatureStore(folder)
    (folder / "shard-00003" / "index.parquet").unlink()
    with pytest.raises(StoreError, match=r"shard-00003.* is damaged"):
        FeatureStore(folder)


def test_of_an_image_in_two_shards_the_last_counts(folder):
    for shard in ("shard-00009", "shard-00001"):
        shutil.rmtree(folder / shard, ignore_errors=True)
        shutil.copytree(folder / "shard-00000", folder / shard)
    assert {FeatureStore(folder).entry(name).shard for name in NAMES[:2]} == {"shard-00009"}
    assert len(FeatureStore(folder)) == 8
    assert answers(folder) == by_shards(folder)


def damages(table):
    """Files that are whole, but not what lookups rely on."""
    codes = table["shard"].combine_chunks()
    yield "order", table.take(pa.array(np.arange(len(table))[::-1]))
    yield "twice", table.take(pa.array([0, 0, *range(2, len(table))]))
    yield "another shard", table.set_column(11, TOGETHER.field("shard"), pa.array(codes.to_numpy() + 3))
    yield "no shard", table.set_column(11, TOGETHER.field("shard"), pa.array([-1] * len(table), pa.int32()))
    yield "empty value", table.set_column(1, TOGETHER.field("width"), pa.array([None] * len(table), pa.int32()))
    yield "columns", table.drop_columns(["stop"])


def test_a_file_that_cannot_be_relied_on_is_not(folder):
    good, expected = Index.read(folder / stores.TOGETHER), by_shards(folder)
    path = folder / stores.TOGETHER
    for what, table in damages(good.table):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(BadIndex):
            Index.read(path)
        assert answers(folder) == expected, what
    good.write(path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        assert answers(folder) == expected
    path.unlink()
    path.mkdir()
    assert answers(folder) == expected


def test_an_index_of_a_shard_with_empty_values_is_damaged(tmp_path):
    values = [["a.png"], *[[1] for _ in INDEX.names[1:-1]], [None]]
    pq.write_table(pa.table(dict(zip(INDEX.names, values)), schema=INDEX), tmp_path / "index.parquet")
    with pytest.raises(BadIndex, match="empty values"):
        read_shard_index(tmp_path / "index.parquet")


def test_what_is_written_is_there_at_once_and_in_columns(tmp_path, monkeypatch):
    """Also when so many were written that the index is put together in between."""
    for folded in (3, 100):
        monkeypatch.setattr(stores, "FOLDED", folded)
        with FeatureStore(tmp_path / str(folded), {}) as store:
            for place, name in enumerate(NAMES):
                assert name not in store
                write(store, name)
                store.flush()
                assert name in store
                assert len(store) == place + 1
                assert len(store._recent) < folded
            assert store.holds([*NAMES[3:5], "none"]).tolist() == [True, True, False]
            assert store.files == sorted(NAMES)
            assert [store.entry(name).width for name in NAMES] == [50 + 2 + len(name) % 3 for name in NAMES]
    assert answers(tmp_path / "3") == answers(tmp_path / "100")


def test_open_files_stay_few(folder):
    """Each array keeps its file open, and a system lets a process open a thousand or so."""
    store = FeatureStore(folder)
    store._arrays = arrays = OpenArrays(most=4)
    found = {name: store.features(name).tobytes() for name in 2 * NAMES}
    assert len(arrays) == 4
    assert found == {name: content for name, (_, content) in answers(folder).items()}
    assert store._array("shard-00000", "boxes") is store._array("shard-00000", "boxes")
    assert half_of_the_files() >= 128
