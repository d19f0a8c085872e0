"""The paper's tables, with what was measured beside what was published."""

import pytest
from tests.discovery.runs import FILES, make_run

from bagwise.discovery.evaluation.kept import keep_evaluation
from bagwise.discovery.evaluation.runs import evaluate_run
from bagwise.discovery.evaluation.tables import PUBLISHED_CLASSES, PUBLISHED_MEANS, discovery_tables
from bagwise.discovery.sources.imageset import ImageSet


@pytest.fixture
def run(tmp_path):
    run, truth = make_run(tmp_path)
    images = ImageSet(tmp_path / "images", list(FILES), [()] * len(FILES), truth)
    keep_evaluation(run, evaluate_run(run, images, name="classes"), truth)
    return run


def test_the_published_classes_have_the_published_mean():
    assert len(PUBLISHED_CLASSES) == 20
    assert sum(PUBLISHED_CLASSES.values()) / 20 == pytest.approx(PUBLISHED_MEANS["RMI-SVM"], abs=0.05)


def cells(text, first):
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {first} ")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_measured_figures_stand_beside_the_published(run):
    text = discovery_tables([run])
    corloc = evaluate_rates(run)
    published, measured = cells(text, "cat")[1:]
    assert published == "63.7"
    assert measured.startswith(f"{100 * corloc['cat']:.1f} (")
    assert cells(text, "dog")[2].startswith(f"{100 * corloc['dog']:.1f} (")
    assert cells(text, "boat")[1:] == ["4.7", "-"]
    assert cells(text, "**mean**")[1] == "40.2"
    assert cells(text, "RMI-SVM (run)") == ["RMI-SVM (run)", "classes", "2", "2100", "0.5", "6"]


def test_a_run_says_when_it_has_fewer_classes_and_one_on_other_classes_stays_out_of_table_5(run, tmp_path):
    assert "| RMI-SVM (run), measured, 2 of 20 classes |" in discovery_tables([run])
    files, labels = ("a/1.jpg", "b/2.jpg"), (("owl",), ("elk",))
    other, truth = make_run(tmp_path / "other", files=files, labels=labels)
    images = ImageSet(tmp_path / "other" / "images", list(files), [()] * 2, truth)
    keep_evaluation(other, evaluate_run(other, images, name="classes"), truth)
    text = discovery_tables([other])
    assert "owl" not in text
    assert cells(text, "**mean**") == ["**mean**", "40.2"]
    assert cells(text, "RMI-SVM (run)")[:3] == ["RMI-SVM (run)", "classes", "2"], "its time is a time"


def evaluate_rates(run):
    from bagwise.discovery.evaluation.kept import kept_evaluation

    groups = kept_evaluation(run)["corloc"]["per-class"]["groups"]
    return {label: rate["value"] for label, rate in groups.items()}


def test_without_runs_the_published_figures_remain():
    text = discovery_tables([])
    assert "| RMI-SVM | 53 | - | 37 | - |" in text
    assert "| mi-SVM | 30 | - | 20 | - |" in text
    assert "| RMI-SVM | pascal07-all | - | 854 | - | - |" in text


def test_a_run_must_have_been_evaluated(tmp_path):
    run, _ = make_run(tmp_path)
    with pytest.raises(ValueError, match="has not been evaluated: run `bagwise evaluate"):
        discovery_tables([run])
