"""What all tests share: where the data sets are, and a real browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.not_tested import not_tested

# What is slow on a busy machine is not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        _deal_out(items)
    # In CI, where nobody watches, a browser on a busy machine gets a second chance; elsewhere a flaw is to be seen.
    if os.environ.get("CI") and config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))


# Their tests need nothing of one another: dealt out one by one, and last, they fill what time the others leave.
FILLING = Path(__file__).parent / "contract"


def _deal_out(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, so that what they share is made once; start the longest files first."""
    groups: dict[str, list[pytest.Item]] = {}
    filling = []
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is None and item.path.is_relative_to(FILLING):
            filling.append(item)
            continue
        name = mark.args[0] if mark else item.path.relative_to(Path(__file__).parent).as_posix()
        if mark is None:
            item.add_marker(pytest.mark.xdist_group(name))
        groups.setdefault(name, []).append(item)

    def slow(group: list[pytest.Item]) -> int:
        return sum(item.get_closest_marker("slow") is not None for item in group)

    items[:] = [*(item for group in sorted(groups.values(), key=slow, reverse=True) for item in group), *filling]


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
