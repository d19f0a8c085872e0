"""Discovery on a cluster gives what one machine gives, whatever happens to workers and client on the way."""

import pickle
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.cluster.conftest import Processes, wait_until
from tests.faults.small import make_photographs, results

from bagwise._utils.cluster import open_cluster
from bagwise.cli import main
from bagwise.discovery.features.remote import RemoteStore, place_of, publish_shard
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.run import pipeline, shards, tasks


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Eight photographs, one file that is none, and the settings."""
    root = tmp_path_factory.mktemp("pictures") / "photographs"
    settings = make_photographs(root)
    (root / "ball" / "broken.png").write_bytes(b"not a picture")
    return root, settings


def labels_of(photographs):
    return photographs[0].parent / "labels.csv"


@pytest.fixture(scope="module")
def alone(photographs, tmp_path_factory):
    """A run on one machine."""
    folder = tmp_path_factory.mktemp("runs") / "alone"
    pipeline.discover(photographs[0], folder, labels=labels_of(photographs), settings=photographs[1], jobs=1)
    return folder


@pytest.fixture(scope="module")
def expected(alone):
    """The bytes of a run on one machine."""
    return results(alone)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "IMAGES_PER_SHARD", 1)
    monkeypatch.setattr(tasks, "FILES_AT_ONCE", 3)  # several tasks a class


def discover_on(processes, photographs, folder, store_at=None):
    said = []
    with open_cluster(processes.address, say=said.append) as cluster:
        run = pipeline.discover(
            photographs[0],
            folder,
            labels=labels_of(photographs),
            settings=photographs[1],
            say=said.append,
            cluster=cluster,
            store_at=store_at,
        )
    return run, said


def assert_each_photograph_once(store):
    import pyarrow.parquet as pq

    files = [file for index in store.glob("shard-*/index.parquet") for file in pq.read_table(index)["file"].to_pylist()]
    assert len(files) == len(set(files)) == 8
    assert not list(store.glob(".writing-*"))


def test_same_bytes_as_one_machine(processes, photographs, expected, tmp_path):
    run, _ = discover_on(processes, photographs, tmp_path / "run")
    assert results(tmp_path / "run") == expected
    assert [problem["file"] for problem in run.manifest["problems"]] == ["ball/broken.png"]
    assert_each_photograph_once(tmp_path / "run" / "store")


def test_images_that_come_later_are_added(processes, photographs, tmp_path, monkeypatch):
    """Their places in the list are those of shards that are there already."""
    monkeypatch.setattr(shards, "IMAGES_PER_SHARD", 3)
    root = tmp_path / "photographs"
    shutil.copytree(photographs[0], root)
    shutil.copy(labels_of(photographs), tmp_path / "labels.csv")
    later = [root / "ball" / name for name in ("0.png", "1.png")]
    for path in later:
        path.rename(tmp_path / path.name)
    table = (tmp_path / "labels.csv").read_text().splitlines()
    fewer = [line for line in table if not line.startswith(("ball/0", "ball/1"))]
    (tmp_path / "labels.csv").write_text("\n".join(fewer) + "\n")
    store = tmp_path / "run" / "store"
    discover_on(processes, (root, photographs[1]), tmp_path / "run")
    assert len(FeatureStore(store)) == 6
    for path in later:
        (tmp_path / path.name).rename(path)
    (tmp_path / "labels.csv").write_text("\n".join(table) + "\n")
    run, _ = discover_on(processes, (root, photographs[1]), tmp_path / "run")
    assert_each_photograph_once(store)
    assert len(run.images) == 8


def when_shards(folder, count, act):
    """Do something once so many shards are there."""

    def watch():
        wait_until(lambda: len(list(folder.glob("shard-*"))) >= count, f"shard {count}")
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_worker_killed_in_mid_run(processes, photographs, expected, tmp_path):
    victim = processes.workers.pop()
    thread = when_shards(tmp_path / "run" / "store", 2, victim.kill)
    _, said = discover_on(processes, photographs, tmp_path / "run")
    thread.join()
    victim.wait(10)
    processes.start_worker()
    assert results(tmp_path / "run") == expected
    assert_each_photograph_once(tmp_path / "run" / "store")
    assert any("was lost" in line for line in said)


CLIENT = """
import pickle, sys
from bagwise._utils.cluster import open_cluster
from bagwise.discovery.run import pipeline
from bagwise.discovery.run import shards
shards.IMAGES_PER_SHARD = 1
with open_cluster(sys.argv[1]) as cluster:
    settings = pickle.load(open(sys.argv[4], "rb"))
    pipeline.discover(sys.argv[2], sys.argv[3], labels=sys.argv[5], settings=settings, cluster=cluster)
"""


def test_client_killed_and_started_again(processes, photographs, expected, tmp_path):
    root, settings = photographs
    (tmp_path / "settings").write_bytes(pickle.dumps(settings))
    arguments = (processes.address, str(root), str(tmp_path / "run"), str(tmp_path / "settings"))
    arguments = (*arguments, str(labels_of(photographs)))
    command = [sys.executable, "-c", CLIENT, *arguments]
    client = subprocess.Popen(command, env=processes.environment, stderr=subprocess.DEVNULL)
    wait_until(lambda: list((tmp_path / "run").glob("store/shard-*")), "the first shard")
    client.send_signal(signal.SIGKILL)
    client.wait(10)
    assert not (tmp_path / "run" / "boxes.parquet").exists()
    discover_on(processes, photographs, tmp_path / "run")
    assert results(tmp_path / "run") == expected
    assert_each_photograph_once(tmp_path / "run" / "store")


def test_a_run_goes_on_between_one_machine_and_a_cluster(processes, photographs, expected, tmp_path):
    """Shards of both kinds live in one store."""
    discover_on(processes, photographs, tmp_path / "run")
    shutil.rmtree(next(iter((tmp_path / "run" / "store").glob("shard-*"))))
    pipeline.discover(photographs[0], tmp_path / "run", labels=labels_of(photographs), settings=photographs[1], jobs=1)
    assert results(tmp_path / "run") == expected


UNLABELLED = ("images.parquet", "boxes.parquet", "boxes.json")
SHOWN_FROM = 0.3  # eight images are never sure enough for the default


@pytest.fixture(scope="module")
def unlabelled(alone, photographs, tmp_path_factory):
    """The bytes of what one machine finds in photographs without labels."""
    folder = tmp_path_factory.mktemp("runs") / "unlabelled"
    found = pipeline.discover_unlabelled(alone, photographs[0], folder, jobs=1, threshold=SHOWN_FROM)
    assert len(found.boxes) > 0
    return {name: (folder / name).read_bytes() for name in UNLABELLED}


@pytest.mark.parametrize("store", [None, "s3://unlabelled/run"])
def test_photographs_without_labels(processes, alone, photographs, unlabelled, store, tmp_path, monkeypatch):
    """By the command, so that it is sure that the command passes the cluster on."""
    if store is not None:
        import s3fs

        s3fs.S3FileSystem().mkdir("unlabelled")
    options = ["--threshold", SHOWN_FROM, "--cluster", processes.address, *(["--store", store] if store else [])]
    command = ["bagwise", "detect", alone, photographs[0], "-o", tmp_path / "new", *options]
    monkeypatch.setattr(sys, "argv", [str(part) for part in command])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert {name: (tmp_path / "new" / name).read_bytes() for name in UNLABELLED} == unlabelled
    made = [int(path.name[6:]) for path in (tmp_path / "new" / "store").glob("shard-*")]
    assert len(made) == 8
    assert min(made) >= shards.FIRST_SHARD  # by workers
    reductions = [(folder / "store" / "reduction.npz").read_bytes() for folder in (alone, tmp_path / "new")]
    assert reductions[0] == reductions[1]


def test_shards_in_s3(processes, photographs, expected, tmp_path):
    import s3fs

    system = s3fs.S3FileSystem()
    system.mkdir("features")
    discover_on(processes, photographs, tmp_path / "run", store_at="s3://features/run")
    assert results(tmp_path / "run") == expected
    shards = system.ls("features/run")
    assert sum("shard-" in name for name in shards) == 8
    # All from the store at the URL: the same command again has nothing left to do but learn.
    before = {name: system.info(name)["LastModified"] for name in system.find("features/run")}
    shutil.rmtree(tmp_path / "run")
    discover_on(processes, photographs, tmp_path / "run", store_at="s3://features/run")
    assert results(tmp_path / "run") == expected
    system.invalidate_cache()
    assert {name: system.info(name)["LastModified"] for name in system.find("features/run")} == before


def test_paths_reach_workers_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of("features") == place_of(f"file://{tmp_path}/features") == str(tmp_path.resolve() / "features")
    assert place_of("s3://bucket/features") == "s3://bucket/features"


def test_a_file_url_is_a_folder(processes, photographs, expected, tmp_path):
    discover_on(processes, photographs, tmp_path / "run", store_at=f"file://{tmp_path}/all features")
    assert results(tmp_path / "run") == expected
    assert_each_photograph_once(tmp_path / "all features")


def test_a_mirror_goes_with_its_store(tmp_path):
    (tmp_path / "scratch").mkdir()
    FeatureStore(tmp_path / "features", {})
    store = RemoteStore.for_now(f"file://{tmp_path}/features", tmp_path / "scratch")
    assert [path.name for path in store.path.iterdir()] == ["manifest.json"]
    assert store.path.parent == tmp_path / "scratch"
    del store
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(ValueError, match="no manifest"):
        RemoteStore.for_now(f"file://{tmp_path}/nothing", tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


def test_workers_leave_nothing_behind(s3, photographs, expected, tmp_path):
    """Neither those that are told to end nor those that are killed, once another one starts in their place."""
    import s3fs

    places = [tmp_path / "workers", tmp_path / "temporary"]
    for place in places:
        place.mkdir()
    own = Processes(places[0], {**s3, "TMPDIR": str(places[1])}, lost_after="120s")

    def mirrors():
        return [path for place in places for path in place.rglob("bagwise-store-*")]

    try:
        own.start_scheduler()
        told, killed = own.start_worker(), own.start_worker()
        s3fs.S3FileSystem().mkdir("tidy")
        discover_on(own, photographs, tmp_path / "run", store_at="s3://tidy/run")
        assert results(tmp_path / "run") == expected
        assert 1 <= len(mirrors()) <= 2  # one a worker, while it may need it
        killed.kill()
        told.terminate()
        assert told.wait(60) == 0
        own.start_worker()
        wait_until(lambda: not mirrors(), "the end of the mirrors")
    finally:
        own.stop()


def test_two_workers_publish_one_shard(tmp_path):
    """A worker that was taken for dead finishes after all."""
    store = FeatureStore(tmp_path / "private", {})
    with store:
        store.write("a.png", (4, 4), np.ones((1, 4)), np.ones(1), np.ones((1, 3)))
    (tmp_path / "store").mkdir()
    for _ in range(2):
        publish_shard(tmp_path / "private" / "shard-00000", str(tmp_path / "store"), "shard-1000000")
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["shard-1000000"]
