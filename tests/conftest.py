"""What all tests share: where the data sets are."""

import os
from pathlib import Path

import pytest


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
