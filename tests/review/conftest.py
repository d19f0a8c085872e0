"""A server in its own process, and pages in a real browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the review page needs bagwise[review]")

from tests.review.support import ServerInProcess, ServerInThread, paint_all, write_run

from bagwise.discovery.run.folder import RunFolder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the servers' tokens out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def small(folder: Path) -> RunFolder:
    run = write_run(folder / "run", [(160, 120)] * 6)
    paint_all(run)
    return run


@pytest.fixture
def small_run(tmp_path: Path) -> RunFolder:
    return small(tmp_path)


@pytest.fixture
def serve() -> Iterator[Callable[[RunFolder], ServerInThread]]:
    servers: list[ServerInThread] = []

    def start(run: RunFolder) -> ServerInThread:
        servers.append(ServerInThread(run))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def quiet_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    """A server shared by the tests that must not change anything."""
    server = ServerInThread(small(tmp_path_factory.mktemp("quiet")))
    yield server
    server.stop()


@pytest.fixture
def process(small_run: RunFolder) -> Iterator[ServerInProcess]:
    server = ServerInProcess(small_run)
    yield server
    server.kill()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A fresh browser profile; errors on any page fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    yield context
    context.close()
    assert not problems, problems
