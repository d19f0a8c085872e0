"""MATLAB files of multiple-instance problems; run as a program, it converts the files that it is told to.

A damaged file can crash scipy's reader, and with it the process: `bagwise.datasets.convert` therefore reads in a
process of its own.

Andrews' files (``elephant_100x100_matlab.mat``, ``trec_1_200x200_matlab.mat``, ``musk1norm_matlab.mat``; also in the
release of RMI-SVM's authors) hold ``features`` (a sparse matrix, one row per instance), ``bag_ids`` and ``labels``, of
the instances, which all instances of a bag share. Zhou's newsgroup files (``alt.atheism.mat``) hold one cell array with
a row per bag: instances, label, labels of the instances; or, as others pass them on (``alt_atheism.mat``), instances
with their labels in the last column, label.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bagwise.datasets.files import Problem, write_problem

DENSE_COLUMNS = 1000  # wider than this stays sparse


def read_matlab(path: Path) -> Problem:
    """Read a multiple-instance problem from a MATLAB file of one of the known forms."""
    from scipy.io import loadmat

    try:
        found = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    except Exception as error:  # scipy's reader reports a damaged file by errors of every kind
        raise ValueError(f"{path} is not readable as a MATLAB file: {error}") from error
    try:
        if {"features", "bag_ids", "labels"} <= set(found):
            return _from_rows(found["features"], _flat(found["bag_ids"]), _flat(found["labels"]))
        cells = [
            value
            for value in found.values()
            if isinstance(value, np.ndarray) and value.dtype.hasobject and value.ndim == 2
        ]
        if len(cells) == 1 and cells[0].shape[1] in (2, 3):
            return _from_cells(cells[0])
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} does not hold bags, instances and labels: {error}") from error
    held = ", ".join(found) or "nothing"
    raise ValueError(f"{path} holds {held}, not features, bag_ids and labels, nor one cell array of bags")


def _flat(values: Any) -> np.ndarray:
    return np.asarray(values.todense() if sparse.issparse(values) else values).ravel()


def _from_rows(features: Any, ids: np.ndarray, labels: np.ndarray) -> Problem:
    """Bags in the order of their ids, and their rows in the order of the file, as the authors' own code has them."""
    rows = sparse.csr_array(features)
    if not len(ids) == len(labels) == rows.shape[0] > 0:
        raise ValueError(f"{rows.shape[0]} instances, {len(ids)} bag ids and {len(labels)} labels")
    _check_two_values(labels)
    order = np.argsort(ids, kind="stable")
    _, bag = np.unique(ids[order], return_inverse=True)
    positive = np.zeros(bag[-1] + 1, dtype=np.int64)
    np.maximum.at(positive, bag, (labels[order] > 0).astype(np.int64))
    rows = rows[order].astype(np.float64)
    return Problem(_dense_if_narrow(rows), bag.astype(np.int64), positive)


def _from_cells(cells: np.ndarray) -> Problem:
    bags: list[Any] = []
    labels, of_instances = [], []
    for row in cells:
        instances = sparse.csr_array(row[0])
        if cells.shape[1] == 2:  # the labels of the instances are the last column
            instances, inside = instances[:, :-1], _flat(instances[:, [-1]])
            label = row[1]
        else:
            label, inside = row[1], _flat(row[2])
        if len(inside) != instances.shape[0]:
            raise ValueError(
                f"bag {len(bags)} has {instances.shape[0]} instances and {len(inside)} labels of instances"
            )
        bags.append(instances)
        labels.append(float(_flat(label)[0]))
        of_instances.append(inside)
    values = np.array(labels)
    _check_two_values(values)
    rows = sparse.csr_array(sparse.vstack(bags)).astype(np.float32)
    bag = np.repeat(np.arange(len(bags)), [part.shape[0] for part in bags])
    inside = np.concatenate(of_instances)
    return Problem(rows, bag, (values > 0).astype(np.int64), (inside > 0).astype(np.int64))


def _check_two_values(labels: np.ndarray) -> None:
    if not {float(value) for value in np.unique(labels)} <= {-1.0, 0.0, 1.0} or len(np.unique(labels)) != 2:
        raise ValueError(f"the labels are {np.unique(labels)[:5].tolist()}, not 1 and 0 or -1")


def _dense_if_narrow(rows: Any) -> Any:
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows.toarray() if rows.shape[1] <= DENSE_COLUMNS else rows


def main() -> None:
    """Convert the files of a JSON list of (file, note, output) on standard input; tell each one's digest or error."""
    for path, note, output in json.load(sys.stdin):
        try:
            problem = read_matlab(Path(path))
            write_problem(replace(problem, converted_from=note), Path(output))
            answer = {"digest": problem.digest()}
        except (ValueError, OSError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
