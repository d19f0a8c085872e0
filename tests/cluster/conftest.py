"""A real Dask cluster of processes that tests may kill, and small work for it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra [cluster] is not installed")

SECONDS = 90
ROOT = Path(__file__).parents[2]


def wait_until(true, what, seconds=SECONDS):
    """Look ten times a second until something holds."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {seconds} seconds")
        time.sleep(0.1)


class Processes:
    """A scheduler and workers, each a process of its own, all ended at the end."""

    def __init__(self, folder, environment, lost_after="5s"):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.environment = {
            **os.environ,
            **environment,
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": lost_after,  # a silent worker
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),  # for tests.cluster.slow
        }
        self.workers = []
        self.everything = []

    def start(self, module, *options, prefix=()):
        name = f"{module}-{len(self.everything)}"
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", f"distributed.cli.{module}", *options],
                env=self.environment, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        self.everything.append(process)
        return process

    def start_scheduler(self, host="127.0.0.1"):
        self.start("dask_scheduler", "--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", self.file)
        wait_until(self.file.exists, "the scheduler's start")

    def start_worker(self, host="127.0.0.1", prefix=()):
        worker = self.start(
            "dask_worker", "--host", host, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--scheduler-file", self.file, "--local-directory", self.folder, "--death-timeout", "60", prefix=prefix,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    @property
    def address(self):
        import json

        return json.loads(self.file.read_text())["address"]

    def stop(self):
        for process in self.everything:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.everything:
            process.wait(30)


# Of the package, not of the session: what nobody uses any more would tick on beside all other tests.
@pytest.fixture(scope="package")
def s3():
    """An S3 server on this machine with an empty bucket; gives its URL and what processes need to find it."""
    pytest.importorskip("moto", reason="moto, a stand-in for S3, is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
    }
    former = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    yield environment
    for name, value in former.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    server.stop()


@pytest.fixture(scope="package")
def processes(tmp_path_factory, s3):
    """A scheduler and two workers."""
    # A loaded machine may keep a healthy worker from answering for long, while it opens a network.
    cluster = Processes(tmp_path_factory.mktemp("cluster"), s3, lost_after="120s")
    cluster.start_scheduler()
    cluster.start_worker()
    cluster.start_worker()
    yield cluster
    cluster.stop()
