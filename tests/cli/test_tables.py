"""The command line for tables and benchmarks, run as a user runs it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.problems import concept_problem


def bagwise(*arguments):
    return subprocess.run([sys.executable, "-m", "bagwise", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def table(tmp_path):
    bags, y = concept_problem()
    frame = pd.DataFrame(bags.instances, columns=list("abcde"))
    frame.insert(0, "molecule", [f"m{i}" for i in bags.bag_of_instance])
    frame["active"] = np.where(y == 1, "active", "inactive")[bags.bag_of_instance]
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fit_and_predict(table, kind):
    run = bagwise(
        "fit", table / f"table.{kind}", "--bag", "molecule", "--label", "active", "--positive", "active",
        "-o", table / "m.bagwise",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "positive class (the one that a single instance causes): active" in run.stdout
    run = bagwise(
        "predict", table / "m.bagwise", table / f"table.{kind}", "--bag", "molecule",
        "-o", table / f"p.{kind}", "--instances", table / f"i.{kind}",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    predictions, scores = read(table / f"p.{kind}"), read(table / f"i.{kind}")
    truth = read(table / f"table.{kind}").groupby("molecule", sort=False)["active"].first()
    assert (predictions.set_index("molecule")["prediction"] == truth).mean() > 0.9
    assert len(scores) == len(read(table / f"table.{kind}"))
    best = scores.loc[scores.groupby("molecule")["score"].idxmax()].set_index("molecule")["row"]
    moved = read(table / f"table.{kind}").groupby("molecule")["a"].apply(lambda a: int(np.argmax(a.to_numpy())))
    positive = truth.index[truth == "active"]
    assert (best[positive] == moved[positive]).mean() > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--bag": "mol"}, "there is no bag column 'mol'"),
        ({"--label": "act"}, "there is no label column 'act'"),
        ({"--method": "SVM"}, "there is no method 'SVM'"),
        ({"--positive": "maybe"}, "--positive maybe must be one of"),
    ],
)
def test_bad_options_of_fit(table, change, message):
    options = {"--bag": "molecule", "--label": "active", "-o": table / "m.bagwise"} | change
    run = bagwise("fit", table / "table.csv", *(part for pair in options.items() for part in pair))
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (table / "m.bagwise").exists()


def test_bad_files(table):
    (table / "broken.bagwise").write_bytes(b"PK junk")
    run = bagwise("predict", table / "broken.bagwise", table / "table.csv", "--bag", "molecule", "-o", table / "p.csv")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "not a bagwise model or is damaged" in run.stderr
    run = bagwise("fit", table / "absent.csv", "--bag", "m", "--label", "y", "-o", table / "m.bagwise")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert f"there is no table {table / 'absent.csv'}" in run.stderr
    assert "Errno" not in run.stderr
    (table / "text.parquet").write_text("no table")
    run = bagwise("fit", table / "text.parquet", "--bag", "m", "--label", "y", "-o", table / "m.bagwise")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert not (table / "p.csv").exists()


def test_bench_prints_a_table_and_json(tmp_path):
    arguments = ("bench", "--sets", "musk1", "--methods", "RMI-SVM", "--repeats", "1", "-o", tmp_path)
    run = bagwise(*arguments)
    assert run.returncode == 0, run.stderr
    assert "80.8" in run.stdout
    run = bagwise(*arguments, "--json")
    assert json.loads(run.stdout)["rows"][0]["dataset"] == "musk1"
    run = bagwise("bench", "--kept", "--sets", "musk1", "--json", "-o", tmp_path)
    assert [(row["method"], row["repeats"]) for row in json.loads(run.stdout)["rows"]] == [("RMI-SVM", 1)]
    assert bagwise("bench", "--table", "nothing").returncode == 2


def test_a_part_of_what_is_kept_does_not_replace_the_whole_table(tmp_path):
    run = bagwise("bench", "--sets", "musk1", "--methods", "RMI-SVM,SIL", "--repeats", "1", "-o", tmp_path)
    assert run.returncode == 0, run.stderr
    whole = {name: (tmp_path / name).read_bytes() for name in ("paper.json", "paper.md")}
    run = bagwise("bench", "--kept", "--methods", "SIL", "-o", tmp_path)
    assert "SIL" in run.stdout
    assert "written" not in run.stdout
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole


def test_version():
    assert bagwise("--version").stdout.startswith("bagwise 0.")


def test_import_is_light():
    """The package must load without what only some of its users need."""
    heavy = {"numba", "torch", "cv2", "matplotlib", "dask"}
    code = f"import bagwise, sys; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
