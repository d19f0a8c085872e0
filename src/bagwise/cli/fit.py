"""bagwise fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import BagColumn, Features


def fit(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file with one row per instance.")],
    bag: BagColumn,
    label: Annotated[str, typer.Option(help="Column with the label of the row's bag.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the model.")],
    feature: Features = None,
    method: Annotated[
        str, typer.Option(help="A classifier by its class name: RMISVC, MISVC, MiFV, EMDD, ...")
    ] = "RMISVC",
    positive: Annotated[
        str | None,
        typer.Option(help="Of two labels, the one that a single instance causes. Default: the one that sorts last."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.", min=0)] = 0,
) -> None:
    """Learn from a table of instances with a bag column.

    Examples: `bagwise fit molecules.csv --bag molecule --label musk -o musk.bagwise` ·
    `bagwise fit molecules.parquet --bag molecule --label activity --positive active --method MISVC -o misvc.bagwise`
    """
    import bagwise
    from bagwise.tabular import fit_table

    model, summary = fit_table(table, bag, label, feature, method, positive, seed)
    bagwise.save(model, output)
    typer.echo(f"{summary}\nmodel written to {output}")
