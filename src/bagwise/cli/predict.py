"""bagwise predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import BagColumn, Features


def predict(
    model: Annotated[Path, typer.Argument(help="A model that bagwise fit wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file with one row per instance.")],
    bag: BagColumn,
    output: Annotated[Path, typer.Option("-o", "--output", help="Predictions per bag, CSV or Parquet.")],
    instances: Annotated[
        Path | None, typer.Option(help="Also write a score for every instance to this CSV or Parquet file.")
    ] = None,
    feature: Features = None,
) -> None:
    """Predict the bags of a table, and tell which instances decided.

    Example: `bagwise predict musk.bagwise new.csv --bag molecule -o predictions.csv --instances scores.csv`
    """
    import bagwise
    from bagwise.tabular import predict_table, write_table

    by_bag, by_instance = predict_table(bagwise.load(model), table, bag, feature)
    if instances is not None and by_instance.num_columns == 0:
        raise ValueError("this model's method has no instance scores: leave --instances out, or fit another method")
    write_table(by_bag, output)
    typer.echo(f"{by_bag.num_rows} bags written to {output}")
    if instances is not None:
        write_table(by_instance, instances)
        typer.echo(f"{by_instance.num_rows} instance scores written to {instances}")
