"""Mapping over real worker processes, some of which are killed or stopped on the way."""

import signal
import threading
import time

import pytest
from tests.cluster import slow
from tests.cluster.conftest import ROOT, wait_until

from bagwise.cluster import ClusterError, open_cluster


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


def test_a_stopped_worker_is_given_up_and_may_come_back(cluster, processes, tmp_path):
    wait_until(lambda: len(cluster._client.scheduler_info()["workers"]) == 2, "two workers")
    sleeper = processes.workers[0]
    items = [(str(tmp_path), number, 0.2) for number in range(12)]
    threading.Timer(0.5, sleeper.send_signal, [signal.SIGSTOP]).start()
    found = dict(cluster.map(slow.square, items))
    sleeper.send_signal(signal.SIGCONT)
    assert found == {item: item[1] ** 2 for item in items}
    assert any("was lost" in line for line in cluster.said)
    # A worker that was taken for dead leaves by itself when it wakes up and is told so; replace it.
    time.sleep(1)
    processes.workers.remove(sleeper)
    sleeper.kill()
    processes.start_worker()


def test_a_task_that_ends_its_workers_is_named(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with open_cluster(workers=1) as cluster, pytest.raises(ClusterError, match="ended"):
        list(cluster.map(slow.end_worker, [0]))


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr("bagwise.cluster.SECONDS_TO_CONNECT", 1)
    sentence = r"no Dask scheduler answers at tcp://127.0.0.1:1 .*check the address"
    with pytest.raises(ClusterError, match=sentence), open_cluster("tcp://127.0.0.1:1"):
        pass
