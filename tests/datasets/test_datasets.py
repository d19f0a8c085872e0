"""Loaders, fetchers and generators."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy import sparse

from bagwise import datasets
from bagwise.datasets.fetch import COREL, NEWSGROUPS, TREC9
from bagwise.datasets.files import CONVERTED, known_digests, read_problem


def test_musk():
    for load, n_bags, n_instances, n_musks, largest in (
        (datasets.load_musk1, 92, 476, 47, 40),
        (datasets.load_musk2, 102, 6598, 39, 1044),
    ):
        bags, y = load()
        assert (len(bags), bags.n_instances, bags.n_features) == (n_bags, n_instances, 166)
        assert y.sum() == n_musks
        assert bags.sizes.max() == largest


@pytest.mark.parametrize("name", ["musk1", "musk2"])
def test_musk_is_the_shared_copy(data, name):
    bags, y = getattr(datasets, f"load_{name}")()
    with np.load(data / "mil" / f"{name}.npz") as arrays:
        np.testing.assert_array_equal(bags.instances, arrays["X"])
        np.testing.assert_array_equal(y, arrays["y"])


def test_fetchers_read_the_folder(data, monkeypatch):
    monkeypatch.setenv("BAGWISE_DATA", str(data))
    for animal in COREL:
        bags, y = datasets.fetch_corel(animal)
        assert (bags.shape, y.sum()) == ((200, 230), 100)
    bags, y = datasets.fetch_trec9(TREC9[0])
    assert sparse.issparse(bags.instances)
    assert (len(bags), y.sum()) == (400, 200)
    bags, y, y_instance = datasets.fetch_newsgroups(NEWSGROUPS[0])
    assert len(y_instance) == bags.n_instances
    positive = np.maximum.reduceat(y_instance, bags.offsets[:-1])
    np.testing.assert_array_equal(positive, y)


def test_unknown_and_missing(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="there is no animal 'cat'"):
        datasets.fetch_corel("cat")
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    monkeypatch.delenv("BAGWISE_DATA_URL", raising=False)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match="is not on this machine: get the public files"):
        datasets.fetch_corel("fox")
    monkeypatch.setenv("BAGWISE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"lamda\.nju\.edu\.cn"):
        datasets.fetch_newsgroups("sci_space")
    (tmp_path / "fox.npz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="truncated or damaged"):
        datasets.fetch_corel("fox")
    np.savez(tmp_path / "fox.npz", X=np.eye(2), bag=[0, 1], y=[0, 1])
    with pytest.raises(ValueError, match="damaged or another version"):
        datasets.fetch_corel("fox")
    assert CONVERTED not in np.load(tmp_path / "fox.npz"), "only what was converted here may differ"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A real server on loopback that serves the folder ``files``."""
    folder = tmp_path / "files"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    monkeypatch.setenv("BAGWISE_DATA_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    yield folder
    server.shutdown()
    server.server_close()


def test_download_is_checked_and_cached(data, mirror, tmp_path):
    content = (data / "mil" / "fox.npz").read_bytes()
    (mirror / "fox.npz").write_bytes(content[:-100])
    with pytest.raises(ValueError, match="truncated or damaged"):
        datasets.fetch_corel("fox")
    assert not list((tmp_path / "cache").rglob("*.npz"))
    (mirror / "fox.npz").write_bytes(content)
    assert len(datasets.fetch_corel("fox")[0]) == 200
    (mirror / "fox.npz").unlink()
    assert len(datasets.fetch_corel("fox")[0]) == 200
    cached = next((tmp_path / "cache").rglob("fox.npz"))
    assert read_problem(cached).digest() == known_digests()["fox.npz"]


def test_download_that_is_not_there(mirror):
    with pytest.raises(OSError, match="could not be downloaded"):
        datasets.fetch_corel("tiger")


def test_single_concept_is_what_it_says():
    made = datasets.make_single_concept(50, 4, bag_size=(3, 5), random_state=0)
    assert set(made.bags.sizes) <= {3, 4, 5}
    np.testing.assert_array_equal(np.add.reduceat(made.y_instance, made.bags.offsets[:-1]), made.y)
    again = datasets.make_single_concept(50, 4, bag_size=(3, 5), random_state=0)
    np.testing.assert_array_equal(again.bags.instances, made.bags.instances)


def test_tests_turn_the_false_trail_round():
    train, test = datasets.make_single_concept_test(60, random_state=0)
    for part, carrier in ((train, 0), (test, 1)):
        trail = np.minimum.reduceat(part.bags.instances[:, 1], part.bags.offsets[:-1]) < -7
        np.testing.assert_array_equal(trail, part.y == carrier)
    train, test = datasets.make_threshold_test(60, needed=3, random_state=0)
    for part in (train, test):
        counts = np.add.reduceat(part.y_instance, part.bags.offsets[:-1])
        np.testing.assert_array_equal(counts >= 3, part.y == 1)
    assert train.bags.sizes[train.y == 1].min() > train.bags.sizes[train.y == 0].max()
    train, _ = datasets.make_presence_test(60, random_state=0)
    both = np.add.reduceat(train.y_instance, train.bags.offsets[:-1])
    np.testing.assert_array_equal(both == 2, train.y == 1)


def test_too_few_features():
    with pytest.raises(ValueError, match="n_features must be at least 3"):
        datasets.make_presence_test(10, 2)
