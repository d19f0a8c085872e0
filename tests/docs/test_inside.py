"""The traces on the page "How it works inside" are what really runs: every file they name is entered."""

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

import bagwise

PACKAGE = Path(bagwise.__file__).parent
LONGEST = {"RMISVC().fit(bags, y)": 9, "bagwise.discover(images)": 20, "bagwise bench": 7}


def told() -> dict[str, list[str]]:
    """The files of each trace, in their order."""
    text = (ROOT / "docs" / "inside.md").read_text()
    section = text[text.index("## Three traces") : text.index("## Bags")]
    parts = re.split(r"^\*\*`(.+)`\*\*$", section, flags=re.MULTILINE)[1:]
    return {title: re.findall(r"^\d+\. `(\S+)`", body, re.MULTILINE) for title, body in zip(parts[::2], parts[1::2])}


def entered(act: Callable[[], object]) -> list[str]:
    """Files of the package whose functions were called, in the order of the first call."""
    seen: dict[str, None] = {}

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            seen[frame.f_code.co_filename] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [str(path.relative_to(PACKAGE)) for path in map(Path, seen) if path.is_relative_to(PACKAGE)]


def test_traces_are_short_and_their_files_exist():
    traces = told()
    assert set(traces) == set(LONGEST)
    for title, files in traces.items():
        assert 0 < len(files) <= LONGEST[title]
        assert not [file for file in files if not (PACKAGE / file).is_file()]


def test_fit():
    from bagwise.testing import concept_problem

    bags, y = concept_problem()
    files = entered(lambda: bagwise.RMISVC(random_state=0).fit(bags, y))
    assert not set(told()["RMISVC().fit(bags, y)"]) - set(files)


def test_bench(tmp_path):
    from bagwise.cli import app

    words = ["bench", "--methods", "MI-SVM", "--sets", "musk1", "--repeats", "1", "-o", str(tmp_path)]
    files = entered(lambda: app([*words, "--protocol", "default"], standalone_mode=False))
    assert not set(told()["bagwise bench"]) - set(files)


def test_discover(tmp_path):
    pytest.importorskip("cv2", reason="discovery needs the extra vision")
    from tests.faults.small import make_photographs

    root = tmp_path / "images"
    settings = make_photographs(root, each=3)
    files = entered(
        lambda: bagwise.discover(
            root, tmp_path / "labels.csv", tmp_path / "run", backbone=settings.backbone, max_boxes=20, jobs=1
        )
    )
    assert not set(told()["bagwise.discover(images)"]) - set(files)
