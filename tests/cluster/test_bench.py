"""The benchmark on a cluster gives the figures of one machine."""

from tests.cluster.conftest import wait_until

from bagwise._utils.cluster import open_cluster
from bagwise.benchmark import measure as benchmark


def test_same_figures_and_goes_on(processes, tmp_path):
    tasks = benchmark.plan(["RMI-SVM"], ["musk1"], "paper", 2)
    alone = benchmark.run(tasks, tmp_path / "alone" / "results.jsonl", n_jobs=1)
    with open_cluster(processes.address) as cluster:
        wait_until(lambda: len(cluster._client.scheduler_info()["workers"]) == 2, "two workers")
        first = benchmark.run(tasks[:1], tmp_path / "run" / "results.jsonl", cluster=cluster)
        both = benchmark.run(tasks, tmp_path / "run" / "results.jsonl", cluster=cluster)
    assert {task: repeat.accuracy for task, repeat in both.items()} == {t: r.accuracy for t, r in alone.items()}
    assert both[tasks[0]] == first[tasks[0]]  # not done again: even the times are those of the first run
    assert len((tmp_path / "run" / "results.jsonl").read_text().splitlines()) == 2
