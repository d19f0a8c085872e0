"""Bags from CSV and Parquet tables, and predictions back into them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bagwise.all_estimators import classifiers, deep_classifiers
from bagwise.atomic import replacing
from bagwise.bags import Bags
from bagwise.base import BagClassifier, InstanceScorer


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file."""
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


def fit_table(
    path: Path, bag: str, label: str, features: list[str] | None, method: str, positive: str | None, seed: int
) -> tuple[BagClassifier, str]:
    """Fit a classifier to a table with one row per instance.

    Parameters
    ----------
    method : class name of a classifier of bagwise
    positive : of two labels, the one that a single instance causes; by default the one that sorts last

    Returns
    -------
    The fitted model, which remembers its columns, and a sentence or two about it.
    """
    kinds = {kind.__name__: kind for kind in [*classifiers(), *deep_classifiers()]}
    if method not in kinds:
        raise ValueError(f"there is no method {method!r}: choose from {', '.join(sorted(kinds))}")
    columns = _mapping(path)
    bags, y = cast(tuple[Bags, NDArray], Bags.from_frame(columns, bag=bag, label=label, features=features or None))
    names = features or [name for name in columns if name not in (bag, label)]
    model = kinds[method]()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    _fit_with_positive(model, bags, y, positive)
    model.feature_names_in_ = np.array(names)
    lines = f"{bags}: {np.mean(model.predict(bags) == y):.1%} of the training bags are classified as labelled"
    if len(model.classes_) == 2:
        lines += f"\npositive class (the one that a single instance causes): {model.classes_[1]}"
    return model, lines


def _fit_with_positive(model: BagClassifier, bags: Bags, y: NDArray, positive: str | None) -> None:
    if positive is None:
        model.fit(bags, y)
        return
    labels = np.unique(y)
    chosen = labels[[str(name) == positive for name in labels]]
    if len(labels) != 2 or len(chosen) != 1:
        raise ValueError(
            f"--positive {positive} must be one of exactly two labels, but the labels are {labels.tolist()}"
        )
    model.fit(bags, y == chosen[0])
    model.classes_ = np.array([labels[labels != chosen[0]][0], chosen[0]])


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
