"""Mapping over real worker processes, some of which are killed or stopped on the way."""

import os
import shutil
import signal
import subprocess
import threading

import dask
import pytest
from tests.cluster import slow
from tests.cluster.conftest import ROOT, Processes, wait_until

from bagwise._utils.cluster import ClusterError, open_cluster


@pytest.fixture
def cluster(processes):
    """A connection, with what it says."""
    said = []
    with open_cluster(processes.address, say=said.append) as connection:
        wait_until(lambda: len(connection._client.scheduler_info()["workers"]) == 2, "two workers")
        connection.said = said
        yield connection


def test_every_item_once(cluster, tmp_path):
    items = [(str(tmp_path), number, 0.0) for number in range(40)]
    found = dict(cluster.map(slow.square, items))
    assert found == {item: item[1] ** 2 for item in items}
    assert len(list(tmp_path.iterdir())) == 40


def test_an_error_of_the_work_is_an_error_here(cluster):
    with pytest.raises(ValueError, match="item 3 is not wanted"):
        list(cluster.map(slow.refuse, [3]))


def test_nothing_to_do(cluster):
    assert list(cluster.map(slow.square, [])) == []


def test_a_killed_worker_costs_no_result(cluster, processes, tmp_path):
    items = [(str(tmp_path), number, 0.3) for number in range(14)]
    victim = processes.workers[-1]
    threading.Timer(1.0, victim.kill).start()
    found = dict(cluster.map(slow.square, items))
    assert found == {item: item[1] ** 2 for item in items}
    victim.wait(10)
    processes.workers.remove(victim)
    processes.start_worker()
    wait_until(lambda: cluster._look() or any("was lost" in line for line in cluster.said), "word of the loss")


@pytest.fixture
def impatient(tmp_path_factory):
    """A scheduler that gives up a worker after five seconds of silence, and two workers."""
    processes = Processes(tmp_path_factory.mktemp("impatient"), {})
    processes.start_scheduler()
    processes.start_worker()
    processes.start_worker()
    yield processes
    processes.stop()


def map_while(processes, folder, happens):
    """Map over slow items while something happens to the workers; the results must be right; give what was said."""
    items = [(str(folder), number, 0.2) for number in range(12)]
    said = []
    with open_cluster(processes.address, say=said.append) as cluster:
        wait_until(lambda: len(cluster._client.scheduler_info()["workers"]) == 2, "two workers")
        threading.Timer(0.5, happens).start()
        found = dict(cluster.map(slow.square, items))
    assert found == {item: item[1] ** 2 for item in items}
    return said


def test_a_stopped_worker_is_given_up(impatient, tmp_path):
    sleeper = impatient.workers[0]
    said = map_while(impatient, tmp_path, lambda: sleeper.send_signal(signal.SIGSTOP))
    # When it wakes up it may finish what it had in hand, which changes nothing any more.
    sleeper.send_signal(signal.SIGCONT)
    assert any("was lost" in line for line in said), said


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@pytest.fixture
def cable(tmp_path_factory):
    """A scheduler, a worker beside it, and one at the other end of a cable (a veth pair into a network namespace)."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    space, near, far = f"bagwise{os.getpid()}", f"bwa{os.getpid()}", f"bwb{os.getpid()}"
    if ip("netns", "add", space).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    processes = Processes(tmp_path_factory.mktemp("cable"), {})
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


def test_network_cut_and_mended(cable, tmp_path):
    processes, name = cable
    said = map_while(processes, tmp_path, lambda: ip("link", "set", name, "down"))
    assert any("was lost" in line for line in said), said
    # With the cable in again, a worker at its other end is as good as any.
    assert ip("link", "set", name, "up").returncode == 0
    processes.workers[1].kill()
    processes.workers[0].kill()
    processes.start_worker(host="10.213.77.2", prefix=("ip", "netns", "exec", f"bagwise{os.getpid()}"))
    with open_cluster(processes.address) as cluster:
        assert [value for _, value in cluster.map(slow.square, [(str(tmp_path), 5, 0.0)])] == [25]


def test_a_task_that_ends_its_workers_is_named(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first_death = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with first_death, open_cluster(workers=1) as cluster, pytest.raises(ClusterError, match="ended"):
        list(cluster.map(slow.end_worker, [0]))


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr("bagwise._utils.cluster.SECONDS_TO_CONNECT", 1)
    sentence = r"no Dask scheduler answers at tcp://127.0.0.1:1 .*check the address"
    with pytest.raises(ClusterError, match=sentence), open_cluster("tcp://127.0.0.1:1"):
        pass
