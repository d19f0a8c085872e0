"""Comparing methods on the user's own bags."""

import json
import time

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from tests.problems import concept_problem
from typer.testing import CliRunner

import bagwise
from bagwise import RMISVC, Bags, SingleInstance
from bagwise.benchmark import compare as module
from bagwise.benchmark.compare import GUESSING, Compared, compare
from bagwise.cli import app

QUICK = ["RMISVC", "SingleInstance"]


@pytest.fixture(scope="module")
def problem():
    return concept_problem(40)


def test_figures_by_hand(problem):
    bags, y = problem
    found = compare(bags, y, methods=["SingleInstance"], n_folds=3, n_repeats=2)
    scores = []
    for repeat in range(2):
        for train, test in StratifiedKFold(3, shuffle=True, random_state=repeat).split(np.zeros(len(y)), y):
            scores.append(SingleInstance().fit(bags[train], y[train]).score(bags[test], y[test]))
    single, guess = found.rows
    assert single.accuracy == pytest.approx(np.mean(np.reshape(scores, (2, 3)).mean(axis=1)))
    assert (guess.method, guess.accuracy) == (GUESSING, max(np.mean(y == 0), np.mean(y == 1)))
    assert single.p_value is None
    assert "SingleInstance" in str(found)


def test_resumes_from_its_folder(problem, tmp_path, monkeypatch):
    bags, y = problem
    first = compare(bags, y, methods=QUICK, n_folds=2, n_repeats=1, output=tmp_path)
    with (tmp_path / "compare.jsonl").open("a") as log:
        log.write('{"data": "cut sho')  # as a crash leaves it
    ran = []
    run = module._run
    monkeypatch.setattr(module, "_run", lambda *args: ran.append(args[0]) or run(*args))
    assert compare(bags, y, methods=QUICK, n_folds=2, n_repeats=1, output=tmp_path) == first
    assert ran == []
    compare(bags, 1 - y, methods=QUICK, n_folds=2, n_repeats=1, output=tmp_path)
    assert sorted(ran) == sorted(QUICK), "other labels are another comparison"


def test_slow_methods_are_left_out_with_a_note(problem):
    bags, y = problem
    found = compare(bags, y, methods=QUICK, n_folds=2, n_repeats=1, seconds_per_method=0.0)
    notes = {row.method: row.note for row in found.rows if row.note}
    assert set(notes) == set(QUICK)
    assert "left out" in notes["RMISVC"]


class SlowAtFirst(SingleInstance):
    """Takes a while at its first fit, as what is compiled then does."""

    fits = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        if not self.fits:
            until = time.process_time() + 0.5
            while time.process_time() < until:
                pass
        self.fits.append(len(X))
        return super().fit(X, y, sample_weight)


def test_what_is_compiled_at_first_counts_against_nobody(problem):
    bags, y = problem
    found = compare(bags, y, methods=[SlowAtFirst(calibrate=False)], n_folds=2, n_repeats=1, seconds_per_method=0.4)
    assert found.rows[0].note == ""
    assert SlowAtFirst.fits[0] == 12


def test_what_was_too_slow_is_not_tried_again(problem, tmp_path, monkeypatch):
    bags, y = problem
    call = {"methods": QUICK, "n_folds": 2, "n_repeats": 1, "output": tmp_path}
    first = compare(bags, y, **call, seconds_per_method=0.0)
    tried = []
    judge = module._too_slow
    monkeypatch.setattr(module, "_too_slow", lambda *args: tried.append(args[-1]) or judge(*args))
    assert compare(bags, y, **call, seconds_per_method=0.0) == first
    assert tried == [[]]
    assert all(not row.note for row in compare(bags, y, **call, seconds_per_method=600.0).rows), "with more time, it is"
    assert all(not row.note for row in compare(bags, y, **call, seconds_per_method=0.0).rows), "and then it is known"


def test_recommends_the_lowest_log_loss_of_equals():
    def repeat(accuracy, loss):
        return [module.Repeat([accuracy] * 5, [0.1] * 5, [{}] * 5, log_loss=[loss] * 5, auc=0.9) for _ in range(3)]

    y = np.array([0, 1] * 10)
    told = module._comparison({"a": repeat(0.9, 0.8), "b": repeat(0.9, 0.3)}, {}, y, 5, 3)
    assert told.recommended == "b"
    poor = module._comparison({"a": repeat(0.4, 0.8)}, {}, y, 5, 3)
    assert poor.recommended == GUESSING
    assert "better than guessing" in poor.reason
    assert [row.method for row in told.rows] == ["a", "b", GUESSING]
    assert told.rows[-1] == Compared(GUESSING, 0.5, pytest.approx(np.log(2)), 0.5, 0.0, 0.0)


def test_sparse_bags_leave_out_methods_that_cannot_read_them(problem):
    from scipy import sparse

    bags, _ = problem
    csr = Bags.from_arrays(sparse.csr_array(bags.instances), bags.offsets)
    names = module._models(csr, None)
    assert "RMISVC" in names
    assert all(model.accepts_sparse for model in names.values())
    assert set(names) < set(module._models(bags, None))


@pytest.mark.parametrize(
    ("methods", "labels", "said"),
    [
        (["Nonsense"], None, "no method 'Nonsense'"),
        ([], None, "names no method"),
        (QUICK, np.zeros(40), "only one class"),
        (QUICK, np.arange(40) == 0, "has a single bag"),
    ],
)
def test_bad_input_is_said(problem, methods, labels, said):
    bags, y = problem
    with pytest.raises(ValueError, match=said):
        compare(bags, y if labels is None else labels, methods=methods)


def test_an_estimator_of_ones_own(problem):
    bags, y = problem
    found = bagwise.compare(list(bags), y, methods=[RMISVC(lam=0.1, epochs=2)], n_folds=2, n_repeats=1)
    assert found.rows[0].method == "RMISVC"
    assert "accuracy" in found.to_pandas().columns


def test_command_line(problem, tmp_path, monkeypatch):
    bags, y = problem
    monkeypatch.chdir(tmp_path)
    rows = [",".join(["bag", "label", *(f"x{k}" for k in range(bags.n_features))])]
    for i, bag in enumerate(bags):
        rows += [",".join([f"b{i}", str(int(y[i])), *(f"{value:.4f}" for value in row)]) for row in bag]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    command = [tmp_path / "table.csv", "--bag", "bag", "--label", "label", "--folds", 2, "--repeats", 1, "--jobs", 1]
    result = CliRunner().invoke(app, ["compare", *map(str, command), "--methods", "SingleInstance,RMISVC", "--json"])
    document = json.loads(result.stdout)
    assert {row["method"] for row in document["rows"]} == {*QUICK, GUESSING}
    (tmp_path / "bagwise-compare" / "compare.jsonl").stat()
    again = CliRunner().invoke(app, ["compare", *map(str, command), "--methods", "SingleInstance,RMISVC", "--json"])
    assert json.loads(again.stdout) == document, "resumed without an option"
