"""Slides from HDF5 files."""

import numpy as np
import pytest

from bagwise import RMISVC
from bagwise.datasets import read_hdf5

h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'bagwise[hdf5]'")


def write(path, features, coords=None, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=features, **options)
        file.create_dataset("coords", data=np.zeros((features.shape[-2], 2), int) if coords is None else coords)
    return path


@pytest.fixture
def slides(tmp_path):
    rng = np.random.RandomState(0)
    tables = [rng.randn(m, 4).astype(np.float32) for m in (3, 5, 2)]
    for i, table in enumerate(tables):
        shown = table[None] if i == 1 else table  # some programs write a leading axis of one
        write(
            tmp_path / f"slide{i}.h5",
            shown,
            np.arange(2 * len(table)).reshape(-1, 2),
            compression="gzip" if i else None,
        )
    return tmp_path, tables


@pytest.mark.parametrize("cached", [False, True])
def test_a_folder_of_slides(slides, cached, tmp_path):
    folder, tables = slides
    cache = tmp_path / "rows.npy" if cached else None
    bags, places = read_hdf5(folder, cache=cache)
    assert bags.ids.tolist() == ["slide0", "slide1", "slide2"]
    for bag, table, place in zip(bags, tables, places):
        np.testing.assert_array_equal(bag, table)
        assert place.shape == (len(table), 2)
    if cached:
        assert isinstance(bags.instances.base, np.memmap) or isinstance(bags.instances, np.memmap)
        before = cache.stat().st_mtime_ns
        read_hdf5(folder, cache=cache)
        assert cache.stat().st_mtime_ns == before, "what is there is used"


def test_one_plain_file_is_mapped_and_not_read(tmp_path):
    table = np.random.RandomState(0).randn(50, 3).astype(np.float32)
    bags, places = read_hdf5(write(tmp_path / "a.h5", table), coords=None)
    np.testing.assert_array_equal(bags.instances, table)
    assert isinstance(bags.instances, np.memmap)
    assert places is None


def test_half_precision_becomes_single(tmp_path):
    bags, _ = read_hdf5(write(tmp_path / "a.h5", np.ones((3, 2), np.float16)))
    assert bags.dtype == np.float32


def test_a_model_reads_them(slides):
    folder, _ = slides
    bags, _ = read_hdf5(folder)
    model = RMISVC(lam=0.1, epochs=2, random_state=0).fit(bags, [0, 1, 1])
    assert model.instance_scores(bags).shape == (10,)


@pytest.mark.parametrize(
    ("features", "coords", "said"),
    [
        (np.zeros((0, 3)), None, "the shape"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "there are 2 patches"),
        (np.zeros(3), np.zeros((3, 2)), "the shape"),
        (np.array([[b"a", b"b"]]), None, "not numbers"),
    ],
)
def test_bad_files_are_said(tmp_path, features, coords, said):
    path = write(tmp_path / "bad.h5", features, np.zeros((1, 2)) if coords is None else coords)
    with pytest.raises(ValueError, match=said) as caught:
        read_hdf5(path)
    assert "bad.h5" in str(caught.value)


def test_other_bad_input_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"holds no \.h5 file"):
        read_hdf5(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_hdf5(tmp_path / "missing.h5")
    (tmp_path / "no.h5").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read as HDF5"):
        read_hdf5(tmp_path / "no.h5")
    write(tmp_path / "a.h5", np.zeros((2, 3)))
    write(tmp_path / "b.h5", np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"b\.h5 has 4 features a row but"):
        read_hdf5([tmp_path / "a.h5", tmp_path / "b.h5"])
    with pytest.raises(ValueError, match="has no data set 'embedding'"):
        read_hdf5(tmp_path / "a.h5", features="embedding")


def test_one_file_cannot_have_others_read(tmp_path):
    """Links, external storage and virtual data sets name other files, which need not be slides at all."""
    (tmp_path / "secret").write_bytes(bytes(range(96)))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["features"] = np.ones((6, 4), np.float32)
    layout = h5py.VirtualLayout((6, 4), np.float32)
    layout[:] = h5py.VirtualSource("other.h5", "features", (6, 4))
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["features"] = h5py.ExternalLink("other.h5", "features")
    with h5py.File(tmp_path / "stored.h5", "w") as file:
        file.create_dataset("features", (6, 4), np.float32, external=[("secret", 0, 96)])
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("features", layout)
    for name in ("link", "stored", "virtual"):
        with pytest.raises(ValueError, match="lies in another file"):
            read_hdf5([tmp_path / f"{name}.h5"], coords=None)


def test_a_small_file_that_promises_much_is_refused(tmp_path):
    with h5py.File(tmp_path / "bomb.h5", "w") as file:
        file.create_dataset("features", (1_000_000, 1_000_000), np.float32, chunks=(100, 100))
    with pytest.raises(ValueError, match="far more than the file can hold"):
        read_hdf5([tmp_path / "bomb.h5"], coords=None)
