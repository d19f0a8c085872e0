"""Bags from CSV and Parquet tables, and predictions back into them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bagwise._utils.atomic import replacing
from bagwise.bags import Bags
from bagwise.base import BagClassifier, InstanceScorer
from bagwise.registry import find


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file."""
    if not path.is_file():
        raise ValueError(f"there is no table {path}: check its name and the folder you are in")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            return pq.read_table(path)
        import pyarrow.csv as csv

        return csv.read_csv(path)
    except pa.ArrowException as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def write_table(table: pa.Table, path: Path) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    with replacing(path) as aside:
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            pq.write_table(table, aside)
        else:
            import pyarrow.csv as csv

            csv.write_csv(table, aside)


def bags_of_table(path: Path, bag: str, label: str, features: list[str] | None = None) -> tuple[Bags, NDArray]:
    """Bags of a table with one row per instance, and one label for each."""
    return cast(tuple[Bags, NDArray], Bags.from_frame(_mapping(path), bag=bag, label=label, features=features or None))


def fit_table(
    path: Path, bag: str, label: str, features: list[str] | None, method: str, positive: str | None, seed: int
) -> tuple[BagClassifier, str]:
    """Fit a classifier to a table with one row per instance.

    Parameters
    ----------
    method : name of a method of bagwise, that of its class or that in papers
    positive : of two labels, the one that a single instance causes; by default the one that sorts last

    Returns
    -------
    The fitted model, which remembers its columns, and a sentence or two about it.
    """
    kind = find(method).load()
    bags, y = bags_of_table(path, bag, label, features)
    model = kind(positive=_label_named(positive, y))
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    model.fit(bags, y)
    lines = f"{bags}: {np.mean(model.predict(bags) == y):.1%} of the training bags are classified as labelled"
    if len(model.classes_) == 2:
        lines += f"\npositive class (the one that a single instance causes): {model.positive_class_}"
    return model, lines


def _label_named(positive: str | None, y: NDArray) -> Any:
    """The label that was given on the command line, as a value of y."""
    if positive is None:
        return None
    labels = np.unique(y)
    chosen = [label for label in labels.tolist() if str(label) == positive]
    if len(labels) != 2 or len(chosen) != 1:
        raise ValueError(
            f"--positive {positive} must be one of exactly two labels, but the labels are {labels.tolist()}"
        )
    return chosen[0]


def predict_table(model: BagClassifier, path: Path, bag: str, features: list[str] | None) -> tuple[pa.Table, pa.Table]:
    """Predict the bags of a table.

    Returns
    -------
    A table with one row per bag (name, prediction, one probability per class), and one with one row per instance
    (name of the bag, row in the bag, score), which is empty for methods without instance scores.
    """
    columns = _mapping(path)
    if not features and hasattr(model, "feature_names_in_"):
        features = list(model.feature_names_in_)
    bags = cast(Bags, Bags.from_frame(columns, bag=bag, features=features))
    proba = model.predict_proba(bags)
    by_bag = {bag: bags.ids, "prediction": model.predict(bags)}
    by_bag |= {f"probability of {name}": proba[:, k] for k, name in enumerate(model.classes_)}
    by_instance: dict[str, Any] = {}
    if isinstance(model, InstanceScorer):
        ids = bags.ids if bags.ids is not None else np.arange(len(bags))
        scores = model.instance_scores(bags)
        by_instance = {bag: ids[bags.bag_of_instance], "row": np.concatenate([np.arange(m) for m in bags.sizes])}
        if scores.ndim == 1:
            by_instance["score"] = scores
        else:
            by_instance |= {f"score of {name}": scores[:, k] for k, name in enumerate(model.classes_)}
    return pa.table(by_bag), pa.table(by_instance)


def _mapping(path: Path) -> dict[str, NDArray]:
    table = read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}
