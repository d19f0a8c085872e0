"""A run folder judged from end to end."""

import json

import numpy as np
import pytest
from tests.discovery.runs import FILES, make_run

from bagwise.discovery.evaluation.kept import keep_evaluation, kept_evaluation, kept_truth
from bagwise.discovery.evaluation.runs import evaluate_run, summary, truth_of
from bagwise.discovery.features.store import FeatureStore
from bagwise.discovery.sources.imageset import ImageSet
from bagwise.discovery.sources.reading import read_source


@pytest.fixture
def judged(tmp_path):
    run, truth = make_run(tmp_path)
    return run, ImageSet(tmp_path / "images", list(FILES), [()] * len(FILES), truth, kind="voc")


def overlap(a, b):
    common = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def test_figures_are_those_of_a_plain_count(judged):
    run, truth = judged
    evaluation = evaluate_run(run, truth)
    hits = {"cat": [], "dog": []}
    deep = {"cat": {}, "dog": {}}
    for row in run.boxes.to_pylist():
        file = FILES[row["image_id"] - 1]
        (true,) = [thing.box for thing in truth.truth[file] if thing.label == row["label"]]
        right = overlap([row[side] for side in ("x1", "y1", "x2", "y2")], true) > 0.5
        if row["rank"] == 0:
            hits[row["label"]].append(right)
        if row["rank"] < 5:
            deep[row["label"]][file] = deep[row["label"]].get(file, False) or right
    corloc = evaluation["corloc"]["per-class"]
    assert {name: rate["hits"] for name, rate in corloc["groups"].items()} == {k: sum(v) for k, v in hits.items()}
    assert corloc["mean"]["value"] == pytest.approx((sum(hits["cat"]) + sum(hits["dog"])) / 10)  # five images each
    rates = dict(zip(evaluation["detection_rate"]["counts"], evaluation["detection_rate"]["methods"]["RMI-SVM"]))
    assert rates[1] == pytest.approx(corloc["mean"]["value"])
    assert rates[5] == pytest.approx(sum(sum(found.values()) / 5 for found in deep.values()) / 2)
    assert rates[10] is None  # the run kept five boxes
    assert evaluation["confidence"]["answers"] == 10
    assert evaluation["confidence"]["share_right"] == pytest.approx((sum(hits["cat"]) + sum(hits["dog"])) / 10)
    assert evaluation["corloc"]["any-class"]["mean"]["of"] == len(FILES)
    assert "any-class, easy objects" not in evaluation["corloc"]  # nothing is marked hard


def test_the_evaluation_is_kept_and_told(judged):
    run, truth = judged
    evaluation = evaluate_run(run, truth)
    assert kept_evaluation(run) is None
    assert kept_truth(run) is None
    figures, _ = keep_evaluation(run, evaluation, truth.truth)
    assert kept_evaluation(run) == json.loads(figures.read_text(encoding="utf-8")) == evaluation
    assert kept_truth(run) == truth.truth
    text = summary(evaluation)
    assert "CorLoc, per-class" in text
    assert "CorLoc, any-class" in text
    assert "average precision" in text


def test_other_runs_are_put_beside(judged, tmp_path):
    run, truth = judged
    other, _ = make_run(tmp_path / "other", seed=1, settings={"recipe": {"method": "MiSVC"}})
    methods = evaluate_run(run, truth, against=[other])["detection_rate"]["methods"]
    assert list(methods) == ["RMI-SVM", "mi-SVM"]


def test_edge_boxes_alone_come_from_the_store(judged):
    run, truth = judged
    random = np.random.default_rng(0)
    with FeatureStore(run.store_path, {"of": "test"}) as store:
        for file, (width, height) in zip(FILES, zip(*(run.images[side].to_pylist() for side in ("width", "height")))):
            wrong = np.tile([0, 0, 5, 5], (11, 1))
            boxes = np.vstack([wrong, truth.truth[file][0].box])
            objectness = np.linspace(1, 0.1, 12)
            shuffled = random.permutation(12)
            store.write(file, (width, height), boxes[shuffled], objectness[shuffled], np.ones((12, 3), np.float32))
    rates = evaluate_run(run, truth)["detection_rate"]
    curve = dict(zip(rates["counts"], rates["methods"]["Edge Boxes"]))
    assert curve[10] == 0  # the right box is the twelfth, of twelve
    assert curve[20] == curve[400] == 1


def test_unique_names_match_across_folders(judged):
    run, truth = judged
    moved = {f"JPEGImages/{file.split('/')[-1]}": things for file, things in truth.truth.items() if "one" not in file}
    known = truth_of(run, ImageSet(truth.root, list(moved), [()] * len(moved), moved))
    assert sorted(known) == sorted(file for file in FILES if "one" not in file)
    strange = ImageSet(truth.root, ["x.jpg"], [()], {"x.jpg": []})
    with pytest.raises(ValueError, match="the names have nothing in common"):
        truth_of(run, strange)
    with pytest.raises(ValueError, match="has no boxes to compare with"):
        truth_of(run, ImageSet(truth.root, [], []))


def test_images_of_the_protocol_outside_the_run_are_misses(judged):
    run, truth = judged
    more = truth.truth | {"cat/absent.jpg": truth.truth[FILES[0]]}
    wider = ImageSet(truth.root, list(more), [()] * len(more), more)
    evaluation = evaluate_run(run, wider, name="classes")
    assert evaluation["protocol"]["not_in_run"] == 1
    assert evaluation["corloc"]["per-class"]["unanswered"] == 1
    assert evaluation["corloc"]["per-class"]["groups"]["cat"]["of"] == 6
    assert "not in the run and count as misses" in summary(evaluation)


def test_any_coco_truth_will_do(judged):
    run, truth = judged
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}]
    images = [{"id": 10 + i, "file_name": file, "width": 999, "height": 999} for i, file in enumerate(FILES)]
    annotations = [
        {
            "id": len(FILES) * i + j,
            "image_id": 10 + i,
            "category_id": 7 if thing.label == "cat" else 9,
            "bbox": [thing.box[0], thing.box[1], thing.box[2] - thing.box[0], thing.box[3] - thing.box[1]],
            "iscrowd": 0,
        }
        for i, file in enumerate(FILES)
        for j, thing in enumerate(truth.truth[file])
    ]
    path = truth.root / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    assert evaluate_run(run, read_source(path))["corloc"] == evaluate_run(run, truth)["corloc"]
