"""The demonstration: the molecules' story, and the contact sheet of the images' story."""

import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from tests.discovery.runs import make_run

from bagwise import demo
from bagwise.datasets import load_demo_photos
from bagwise.report.contact_sheet import write_contact_sheet


def test_molecules(tmp_path):
    lines = demo.molecules(tmp_path)
    assert "92 molecules" in lines[0]
    accuracy = float(lines[1].split("%")[0].split()[-1])
    assert 70 < accuracy < 100
    with Image.open(tmp_path / "molecules.png") as picture:
        assert picture.width > 800


@pytest.mark.parametrize(("judged", "name"), [(True, "sheet.png"), (False, "sheet.jpg")])
def test_contact_sheet_draws_every_class(tmp_path, judged, name):
    run, truth = make_run(tmp_path / "run")
    path = write_contact_sheet(run, tmp_path / name, truth if judged else None, per_class=3)
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    assert pixels.shape[1] > 3 * 240
    colours = {"right": (61, 220, 132), "found": (255, 176, 0)}
    wanted = colours["right" if judged else "found"]
    near = np.abs(pixels - wanted).sum(axis=2) < 60
    assert near.sum() > 100


def test_contact_sheet_of_some_classes(tmp_path):
    run, truth = make_run(tmp_path / "run")
    heights = []
    for classes in (None, run.classes[:1]):
        path = write_contact_sheet(run, tmp_path / "sheet.png", truth, classes=classes)
        with Image.open(path) as picture:
            heights.append(picture.height)
    assert len(run.classes) > 1
    assert heights[0] - 8 == len(run.classes) * (heights[1] - 8)  # a margin, and rows of one height


@pytest.mark.slow
def test_objects(tmp_path):
    """The whole pipeline on real images: boxes, evaluation, report, contact sheet."""
    said = []
    lines = demo.objects(tmp_path, said.append)
    assert "81 images" in lines[0]
    corloc = int(lines[1].split("per cent): ")[1].split()[0])
    assert corloc > 70  # the mean of nine classes
    counts = re.findall(r"(\w+) (\d+) of (\d+)", lines[1])
    shown = Counter(row["file"].split("/")[0] for row in load_demo_photos().credits)
    assert {name: int(of) for name, _, of in counts} == shown
    assert all(int(hits) > int(of) / 2 for name, hits, of in counts if name in {"fish", "hammer", "windmill"})
    assert said
    assert (tmp_path / "contact-sheet.jpg").stat().st_size > 50_000
    assert (tmp_path / "run" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "run" / "boxes.parquet").exists()
