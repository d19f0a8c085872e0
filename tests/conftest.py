"""What all tests share: where the data sets are, and a real browser."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.not_tested import not_tested

# What is slow on a busy machine is not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


# Dealt out one by one, and last: nothing is shared by these, so they fill what time the files leave to a worker.
ONE_BY_ONE = "tests/contract/"
# What all files of a folder share: a cluster, a wheel.
TOGETHER = ("tests/cluster/", "tests/packaging/")


def dealt_with(nodeid: str) -> str:
    """What goes to the same worker as this test: its file, as a rule, so that what its tests share is made once."""
    if nodeid.startswith(ONE_BY_ONE):
        return nodeid
    return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.split("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Dealer(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return dealt_with(nodeid)

    return Dealer(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        _longest_first(items)
    # In CI, where nobody watches, a browser on a busy machine gets a second chance; elsewhere a flaw is to be seen.
    if os.environ.get("CI") and config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def _longest_first(items: list[pytest.Item]) -> None:
    """What holds slow tests goes to the workers first: at the end one of them would work alone."""
    slow = Counter(dealt_with(item.nodeid) for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (item.nodeid.startswith(ONE_BY_ONE), -slow[dealt_with(item.nodeid)]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the end what was not tested, and how to install what was missing."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = not_tested(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    if lines:
        terminalreporter.section("not tested here")
        for line in lines:
            terminalreporter.write_line(line)


def data_folder() -> Path | None:
    """The folder of data sets that are not part of the project, if there is one."""
    named = os.environ.get("BAGWISE_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("the data sets are not here: name their folder in BAGWISE_DATA")
    return folder


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests: Playwright cannot be started twice in a process."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
