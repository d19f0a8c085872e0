"""Public MATLAB files to the files that fetch_* read: made here in the form of the originals."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from bagwise import datasets
from bagwise.datasets.convert import set_name
from bagwise.datasets.fetch import COREL, NEWSGROUPS, TREC9, available, find_file
from bagwise.datasets.files import known_digests, read_problem
from bagwise.datasets.matlab import read_matlab

ALL = [*COREL, *(f"trec{number}" for number in TREC9), *(f"news_{group}" for group in NEWSGROUPS)]


def andrews(path, instances, bag, y, first_id=1):
    """Write a problem as Andrews' MATLAB files have it: a sparse matrix, ids and labels of the instances as rows."""
    labels = np.where(y == 1, 1.0, -1.0)[bag]
    savemat(
        path,
        {
            "features": sparse.csc_matrix(instances),
            "bag_ids": (bag + first_id)[None, :].astype(np.uint8 if bag.max() < 200 else np.uint16),
            "labels": sparse.csc_matrix(labels[None, :]),
        },
        do_compression=True,
    )


def cell(rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    return array


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    bag = np.repeat([0, 1, 2, 3], [3, 1, 2, 4])
    instances = rng.normal(size=(10, 6)) * (rng.random((10, 6)) < 0.5)
    return instances, bag, np.array([1, 0, 1, 0])


@pytest.fixture
def away(tmp_path, monkeypatch):
    """No data set on this machine."""
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    monkeypatch.delenv("BAGWISE_DATA_URL", raising=False)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))


def test_names():
    names = {
        "musk1norm_matlab.mat": "musk1_norm",
        "elephant_100x100_matlab.mat": "elephant",
        "trec_10_200x200_matlab.mat": "trec10",
        "trec1_200x200_matlab.mat": "trec1",
        "comp.os.ms-windows.misc.mat": "news_comp_os_ms-windows_misc",
        "sci_space.mat": "news_sci_space",
        "results.mat": None,
    }
    from pathlib import Path

    assert {name: set_name(Path(name)) for name in names} == names


def test_what_was_converted_is_fetched_with_a_warning_when_it_is_not_the_tables_own(problem, away, tmp_path):
    (tmp_path / "files" / "deeper").mkdir(parents=True)
    andrews(tmp_path / "files" / "deeper" / "fox_100x100_matlab.mat", *problem)
    with pytest.raises(FileNotFoundError, match=r"columbia\.edu.*`bagwise data convert FOLDER`"):
        datasets.fetch_corel("fox")
    assert available()["fox"].startswith("missing; from MIL-Data-2002")
    (done,) = datasets.convert_folder(tmp_path / "files")
    assert (done.name, done.known) == ("fox", False)
    assert available()["fox"] == str(done.path) == str(find_file("fox"))
    with pytest.warns(UserWarning, match=r"another version of the public files \(fox_100x100_matlab\.mat sha256:"):
        bags, y = datasets.fetch_corel("fox")
    np.testing.assert_array_equal(bags.instances, problem[0])
    np.testing.assert_array_equal(bags.sizes, [3, 1, 2, 4])
    np.testing.assert_array_equal(y, problem[2])


def test_rows_of_a_bag_come_together_in_the_order_of_ids(problem, tmp_path):
    instances, bag, y = problem
    order = np.random.default_rng(1).permutation(len(bag))
    andrews(tmp_path / "tiger_100x100_matlab.mat", instances[order], bag[order], y, first_id=7)
    found = read_matlab(tmp_path / "tiger_100x100_matlab.mat")
    np.testing.assert_array_equal(found.bag, bag)
    np.testing.assert_array_equal(found.y, y)
    for number in range(4):
        rows = found.instances[found.bag == number]
        np.testing.assert_array_equal(rows, instances[order][bag[order] == number])


@pytest.mark.parametrize("columns", [2, 3])
def test_newsgroups(problem, away, tmp_path, columns):
    instances, bag, y = problem
    inside = np.array([0, 1, 0, 0, 1, 1, 0, 0, 0, 0])
    rows = []
    for number in range(4):
        part, labels = instances[bag == number], inside[bag == number][:, None]
        if columns == 3:
            rows.append((sparse.csc_matrix(part), y[number], labels))
        else:
            rows.append((np.hstack([part, labels]), y[number]))
    savemat(tmp_path / "sci.space.mat", {"data": cell(rows)})
    datasets.convert_folder(tmp_path)
    with pytest.warns(UserWarning, match="another version"):
        bags, found, of_instances = datasets.fetch_newsgroups("sci_space")
    assert bags.instances.dtype == np.float32
    np.testing.assert_array_equal(bags.instances.toarray(), instances.astype(np.float32))
    np.testing.assert_array_equal(found, y)
    np.testing.assert_array_equal(of_instances, inside)


@pytest.mark.parametrize("name", ["elephant", "trec1", "news_sci_space"])
def test_the_originals_content_survives_matlab_and_back(data, away, tmp_path, name):
    """The very data of the tables, written in the public form and converted, are recognised."""
    known = read_problem(data / "mil" / f"{name}.npz")
    if name.startswith("news"):
        dense = known.instances.toarray().astype(np.float64)
        rows = [(dense[known.bag == i], known.y[i], known.y_instance[known.bag == i][:, None]) for i in range(100)]
        savemat(tmp_path / "sci.space.mat", {"data": cell(rows)})
    else:
        number = name.removeprefix("trec")
        file = f"trec_{number}_200x200_matlab.mat" if name.startswith("trec") else f"{name}_100x100_matlab.mat"
        andrews(tmp_path / file, known.instances, known.bag, known.y)
    (done,) = datasets.convert_folder(tmp_path, tmp_path / "out")
    assert done.known
    again = read_problem(done.path)
    assert again.digest() == known.digest()
    assert type(again.instances) is type(known.instances)


def test_the_registry_knows_every_set(data):
    digests = known_digests()
    assert set(digests) == {f"{name}.npz" for name in ALL} | {"musk1_norm.npz"}
    for name in ("fox", "trec9", "news_misc_forsale"):
        assert read_problem(data / "mil" / f"{name}.npz").digest() == digests[f"{name}.npz"]


def test_the_digest_knows_every_change(problem):
    from dataclasses import replace

    from bagwise.datasets.files import Problem

    instances, bag, y = problem
    made = Problem(instances, bag, y)
    changed = instances.copy()
    changed[0, 0] += 1e-12
    others = [
        replace(made, instances=changed),
        replace(made, y=np.array([1, 1, 1, 0])),
        replace(made, y_instance=np.zeros(10, dtype=np.int64)),
        replace(made, bag=np.repeat([0, 1, 2, 3], [3, 2, 1, 4])),
        replace(made, instances=instances.astype(np.float32)),
        replace(made, instances=np.hstack([instances, np.zeros((10, 1))])),
    ]
    assert len({made.digest(), *(other.digest() for other in others)}) == 7
    order = np.array([2, 0, 3, 1])  # other bags first
    rows = np.concatenate([np.flatnonzero(bag == number) for number in order])
    moved = Problem(instances[rows], np.repeat(np.arange(4), np.bincount(bag)[order]), y[order])
    assert moved.digest() == made.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no MATLAB file", "is not readable as a MATLAB file"),
        ({"features": np.eye(3)}, "holds features, not features, bag_ids and labels"),
        ({"features": np.eye(3), "bag_ids": [[1, 2]], "labels": [[1, -1, 1]]}, "3 instances, 2 bag ids and 3 labels"),
        ({"features": np.eye(3), "bag_ids": [[1, 2, 2]], "labels": [[1, 1, 1]]}, "not 1 and 0 or -1"),
        (
            {"data": cell([(np.eye(3), 1, np.zeros(2)), (np.eye(3), 0, np.zeros(3))])},
            "bag 0 has 3 instances and 2 labels",
        ),
    ],
)
def test_other_files_get_a_sentence(tmp_path, content, message):
    path = tmp_path / "fox_100x100_matlab.mat"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        savemat(path, content)
    with pytest.raises(ValueError, match=message):
        datasets.convert_folder(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_crashes_scipys_reader_gets_a_sentence(problem, tmp_path):
    """The length of the sparse matrix's values is said to be more than a thousand million bytes."""
    path = tmp_path / "fox_100x100_matlab.mat"
    content = {"features": sparse.csc_matrix(np.eye(4)), "bag_ids": [[1, 1, 2, 2]], "labels": [[1, 1, -1, -1]]}
    savemat(path, content)
    data = bytearray(path.read_bytes())
    data[238:242] = b"true"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"fox_100x100_matlab\.mat is (damaged|not readable)"):
        datasets.convert_folder(tmp_path, tmp_path / "out")


def test_the_reader_of_files_answers_line_by_line(problem, tmp_path, monkeypatch, capsys):
    """What runs in a process of its own: each file's digest, or what is wrong with it."""
    import io
    import json

    from bagwise.datasets import matlab

    good, bad = tmp_path / "good.mat", tmp_path / "bad.mat"
    andrews(good, *problem)
    bad.write_bytes(b"")
    tasks = [[str(path), "a note", str(tmp_path / f"{path.stem}.npz")] for path in (good, bad)]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(tasks)))
    matlab.main()
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"digest": read_problem(tmp_path / "good.npz").digest()}
    assert read_problem(tmp_path / "good.npz").converted_from == "a note"
    assert "is not readable" in second["error"]
    assert not (tmp_path / "bad.npz").exists()


@pytest.mark.parametrize("columns", [2, 3])
def test_cells(problem, tmp_path, columns):
    instances, bag, y = problem
    inside = np.arange(10) % 3 == 0
    parts = [(instances[bag == i], y[i], inside[bag == i][:, None]) for i in range(4)]
    rows = parts if columns == 3 else [(np.hstack([part, labels]), label) for part, label, labels in parts]
    savemat(tmp_path / "sci_med.mat", {"anything": cell(rows)})
    found = read_matlab(tmp_path / "sci_med.mat")
    np.testing.assert_array_equal(found.instances.toarray(), instances.astype(np.float32))
    np.testing.assert_array_equal(found.y_instance, inside)
    np.testing.assert_array_equal(found.y, y)


def test_a_folder_without_files_gets_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="holds no file such as"):
        datasets.convert_folder(tmp_path)
    with pytest.raises(ValueError, match="unpack the archive"):
        datasets.convert_folder(tmp_path / "nowhere")


def test_the_command_tells_what_it_made(problem, away, tmp_path):
    from typer.testing import CliRunner

    from bagwise.cli import app

    andrews(tmp_path / "fox_100x100_matlab.mat", *problem)
    result = CliRunner().invoke(app, ["data", "convert", str(tmp_path)])
    assert "NOT the data of the tables" in result.stdout
    told = CliRunner().invoke(app, ["data", "list"]).stdout.splitlines()
    assert len(told) == len(ALL) + 2
    (fox,) = [line for line in told if line.startswith("fox")]
    assert "missing" not in fox
