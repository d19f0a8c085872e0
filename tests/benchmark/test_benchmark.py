"""The cross-validation protocol, and a benchmark that survives being killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV
from tests.problems import concept_problem

from bagwise import RMISVC
from bagwise.benchmark import measure as benchmark
from bagwise.benchmark import tables
from bagwise.benchmark.cross_validation import Repeat, cross_validate_once, folds, nested, p_value, seeded, summarise
from bagwise.benchmark.methods import METHODS, SETS, load_set
from bagwise.benchmark.published import TABLES, published
from bagwise.datasets import make_single_concept
from bagwise.metrics.probability import expected_calibration_error


def test_folds_are_a_partition_and_differ_between_repeats():
    parts = [test for _, test in folds(92, 0)]
    assert sorted(np.concatenate(parts)) == list(range(92))
    assert len(parts) == 10
    assert not np.array_equal(parts[0], next(folds(92, 1))[1])


def test_cross_validation_by_hand():
    bags, y = concept_problem(30)
    result = cross_validate_once(RMISVC(epochs=5), bags, y, repeat=2, n_folds=3)
    by_hand = [
        RMISVC(epochs=5, random_state=2000 + fold).fit(bags[train], y[train]).score(bags[test], y[test])
        for fold, (train, test) in enumerate(folds(30, 2, 3))
    ]
    assert result.accuracy == by_hand


def test_probabilities_are_judged_on_test_bags():
    bags, y = concept_problem(30)
    result = cross_validate_once(RMISVC(lam=1.0, epochs=5), bags, y, repeat=0, n_folds=3)
    parts = list(folds(30, 0, 3))
    p = np.empty(30)
    for fold, (train, test) in enumerate(parts):
        p[test] = (
            RMISVC(lam=1.0, epochs=5, random_state=fold).fit(bags[train], y[train]).predict_proba(bags[test])[:, 1]
        )
    by_hand = [log_loss(y[test], p[test], labels=[0, 1]) for _, test in parts]
    np.testing.assert_allclose(result.log_loss, by_hand)
    assert result.auc == roc_auc_score(y, p)
    assert result.calibration_error == expected_calibration_error(y, np.column_stack([1 - p, p]))


def test_a_fold_without_a_class_counts_it_as_impossible():
    bags, y = concept_problem(30)
    y = np.where(np.arange(30) == 0, 2, y)  # a class of one bag
    result = cross_validate_once(RMISVC(epochs=2), bags, y, repeat=0, n_folds=3)
    assert max(result.log_loss) > -np.log(1e-15) / 10
    assert result.auc is None


def test_nested_selection_is_reported():
    bags, y = concept_problem(30)
    result = cross_validate_once(nested(RMISVC(epochs=3), {"lam": [0.1, 0.001]}), bags, y, 0, n_folds=2)
    assert all(choice["lam"] in (0.1, 0.001) for choice in result.selected)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [([0.8, 0.8, 0.8, 0.8, 0.8], 1), ([0.9, 0.7, 0.9, 0.8, 0.8], 1), ([0.9, 0.9, 0.8, 0.9, 0.9], 0)],
    ids=["a tie", "better by luck", "clearly better"],
)
def test_own_parameters_stay_unless_others_are_clearly_better(others, chosen):
    search = nested(RMISVC(lam=0.1), {"lam": [0.5, 0.1]})
    assert search.refit.kept == 1
    inner = {f"split{i}_test_score": np.array([other, 0.8]) for i, other in enumerate(others)}
    assert search.refit({**inner, "mean_test_score": np.zeros(2)}) == chosen
    assert nested(RMISVC(lam=0.1), {"lam": [0.5, 0.2]}).refit is True, "own parameters that are not candidates"


def test_seed_reaches_inner_models():
    search = seeded(nested(RMISVC(), {"lam": [1]}), 5)
    assert isinstance(search, GridSearchCV)
    assert search.estimator.random_state == 5


def test_summary_is_the_papers():
    mean, std, seconds = summarise([Repeat([0.5, 1.0], [1, 3], [{}, {}]), Repeat([1.0, 1.0], [2, 9], [{}, {}])])
    assert (mean, std, seconds) == (0.875, 0.125, 2.5)


def test_paper_protocol_standardises_musk():
    assert abs(load_set("musk1", "paper")[0].instances.mean(axis=0)).max() < 1e-9
    assert load_set("musk1", "nested")[0].instances.std() > 10


def test_every_method_can_be_built_for_every_protocol():
    for method in METHODS.values():
        for dataset in SETS:
            for protocol in ("paper", "nested", "default"):
                if method.can_run(dataset, protocol):
                    assert method.model(dataset, protocol).get_params()


def test_published_figures():
    assert published("RMI-SVM", "musk2") == 82.4
    assert published("mi-SVM", "trec10") == 79.6
    assert published("MILES", "musk1") is None
    assert published("nobody", "musk1") is None
    assert sum(len(sets) for name, sets in TABLES.items() if name != "newsgroups") == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["RMI"], ["musk1"], "paper", 1), "there is no method 'RMI'"),
        ((["RMI-SVM"], ["musk3"], "paper", 1), "there is no data set 'musk3'"),
        ((["RMI-SVM"], ["musk1"], "fair", 1), "there is no protocol 'fair'"),
        ((["RMI-SVM"], ["news_sci_med"], "paper", 1), "try --protocol default"),
    ],
)
def test_unknown_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        benchmark.plan(*arguments)


def test_resumes_from_whole_lines_only(tmp_path):
    results = tmp_path / "results.jsonl"
    tasks = benchmark.plan(["RMI-SVM"], ["musk1"], "paper", 2)
    first = benchmark.run(tasks[:1], results, n_jobs=1)
    whole = results.read_text()
    results.write_text(whole + whole[: len(whole) // 2])  # as a crash in the middle of the second line leaves it
    both = benchmark.run(tasks, results, n_jobs=1)
    assert both[tasks[0]] == first[tasks[0]]
    assert len(benchmark.read_results(results)) == 2
    fresh = benchmark.run(tasks[1:], tmp_path / "fresh.jsonl", n_jobs=1)
    assert fresh[tasks[1]].accuracy == both[tasks[1]].accuracy


def test_a_missing_set_is_missed_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setenv("BAGWISE_DATA", str(tmp_path))
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BAGWISE_DATA_URL", raising=False)
    results = tmp_path / "bench" / "results.jsonl"
    tasks = benchmark.plan(["SIL"], ["musk1", "fox"], "paper", repeats=1)
    with pytest.raises(FileNotFoundError, match=r"fox\.npz is not on this machine"):
        benchmark.run(tasks, results, n_jobs=1)
    assert not results.exists() or not results.read_text()


def test_foreign_file_is_not_written_over(tmp_path):
    results = tmp_path / "results.jsonl"
    results.write_text('{"something": "else"}\n')
    with pytest.raises(ValueError, match="line 1, is not a benchmark result"):
        benchmark.run(benchmark.plan(["RMI-SVM"], ["musk1"], "paper", 1), results, n_jobs=1)
    assert results.read_text() == '{"something": "else"}\n'


@pytest.mark.slow
def test_killed_and_started_again(tmp_path):
    """The same command after kill -9 does only what is missing, and gives the same figures."""
    command = [
        sys.executable, "-m", "bagwise", "bench", "--sets", "musk1", "--methods", "RMI-SVM", "--repeats", "4",
        "--jobs", "1", "-o",
    ]  # fmt: skip
    process = subprocess.Popen([*command, str(tmp_path / "killed")], stderr=subprocess.DEVNULL)
    results = tmp_path / "killed" / "results.jsonl"
    deadline = time.monotonic() + 120
    while not (results.exists() and results.read_text().count("\n") >= 1):
        assert time.monotonic() < deadline
        assert process.poll() is None or results.exists()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run([*command, str(tmp_path / "killed")], check=True, capture_output=True)
    subprocess.run([*command, str(tmp_path / "through")], check=True, capture_output=True)
    rows = [json.loads((tmp_path / run / "paper.json").read_text())["rows"] for run in ("killed", "through")]
    for row in rows[0] + rows[1]:
        del row["fit_seconds"]
    assert rows[0] == rows[1]
    assert rows[0][0]["repeats"] == 4


def test_results_of_other_parameters_do_not_count(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    before = benchmark.plan(["RMI-SVM"], ["musk1"], "default", 1)
    benchmark.run(before, results, n_jobs=1)
    changed = replace(METHODS["RMI-SVM"], make=partial(RMISVC, lam=0.5, epochs=3))
    monkeypatch.setitem(METHODS, "RMI-SVM", changed)
    after = benchmark.plan(["RMI-SVM"], ["musk1"], "default", 1)
    assert after != before
    assert after[0] not in benchmark.read_results(results)


def test_kept_results_are_shown_however_many_there_are(tmp_path):
    results = tmp_path / "results.jsonl"
    benchmark.run(benchmark.plan(["RMI-SVM"], ["musk1"], "paper", 2), results, n_jobs=1)
    benchmark.run(benchmark.plan(["SIL"], ["musk1"], "paper", 1), results, n_jobs=1)
    kept = benchmark.kept(results, ["RMI-SVM", "SIL"], ["musk1"], "paper")
    rows = {row.method: row for row in benchmark.rows(kept)}
    assert {name: row.repeats for name, row in rows.items()} == {"RMI-SVM": 2, "SIL": 1}
    assert sorted(row.p_value is None for row in rows.values()) == [False, True]
    with pytest.raises(ValueError, match="holds no result"):
        benchmark.kept(results, ["RMI-SVM"], ["musk1"], "nested")


def test_instances_are_judged_where_the_truth_is_known():
    made = make_single_concept(40, random_state=0)
    result = cross_validate_once(RMISVC(epochs=20), made.bags, made.y, 0, n_folds=4, y_instance=made.y_instance)
    assert min(result.instance_auc) > 0.95
    alone = cross_validate_once(RMISVC(epochs=1), made.bags, made.y, 0, n_folds=40, y_instance=made.y_instance)
    assert None in alone.instance_auc


def test_chance_is_told_from_difference():
    rng = np.random.RandomState(0)
    same = [Repeat(list(0.8 + 0.05 * rng.randn(10)), [], []) for _ in range(10)]
    other = [Repeat(list(0.8 + 0.05 * rng.randn(10)), [], []) for _ in range(10)]
    worse = [Repeat(list(0.5 + 0.05 * rng.randn(10)), [], []) for _ in range(10)]
    assert p_value(same, other) > 0.05
    assert p_value(same, worse) < 0.001
    assert p_value(same, same) == 1.0


def test_table_marks_differences():
    row = benchmark.Row("RMI-SVM", "musk1", "paper", 80.9, 1.0, 0.01, 10)
    worse = benchmark.Row("RMI-SVM", "musk2", "paper", 50.0, 1.0, 0.01, 10)
    better = benchmark.Row("RMI-SVM", "fox", "paper", 70.0, 1.0, 0.01, 10)
    unknown = benchmark.Row("MILES", "musk1", "paper", 70.0, 1.0, 0.01, 10)
    text = tables.markdown([row, worse, better, unknown])
    assert "+0.1 =" in text
    assert "-32.4 ▼" in text
    assert "+6.4 ▲" in text
    assert "| - |" in text


def test_known_instances_get_a_column_for_each_method():
    def row(method, dataset, accuracy, auc):
        return benchmark.Row(method, dataset, "nested", accuracy, 0.0, 0.01, 1, instance_auc=auc)

    text = tables.markdown([row("SIL", "a", 50.0, 0.5), row("RMI-SVM", "a", 70.0, 0.9), row("RMI-SVM", "b", 80.0, 0.7)])
    judged, accuracy = text.split("Accuracy on bags")
    assert "| set | RMI-SVM | SIL |" in judged
    assert "| b | 0.70 | - |" in judged
    assert "| **mean** | 0.80 | 0.50 |" in judged
    assert "| **mean** | 75 | 50 |" in accuracy


def test_newsgroups_choose_their_scaling_and_reach_every_method(data, monkeypatch):
    monkeypatch.setenv("BAGWISE_DATA", str(data))
    name = "news_sci_med"
    assert METHODS["RMI-SVM"].model(name, "nested").param_grid == {"scaling": ["unit", "global"]}
    assert METHODS["MILBoost"].model(name, "nested").get_params() == METHODS["MILBoost"].make().get_params()
    csr, dense = (METHODS[method].data(name, "nested")[0].instances for method in ("RMI-SVM", "Multi-fold"))
    np.testing.assert_array_equal(csr.toarray(), dense)
