"""bagwise compare."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import BagColumn, Features


def compare(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file with one row per instance.")],
    bag: BagColumn,
    label: Annotated[str, typer.Option(help="Column with the label of the row's bag.")],
    feature: Features = None,
    methods: Annotated[str, typer.Option(help="Methods, separated by commas. Default: all that suit.")] = "",
    positive: Annotated[
        str | None,
        typer.Option(help="Of two labels, the one that a single instance causes. Default: the one that sorts last."),
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    repeats: Annotated[int, typer.Option(help="How often to repeat it.", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="Leave out methods that need longer in all.", min=0)] = 120.0,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder that keeps results, so that the command resumes.")
    ] = Path("bagwise-compare"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON, for scripts.")] = False,
) -> None:
    """Find the method that suits a table of instances: accuracy, log loss, AUC and time of all of them.

    Examples: `bagwise compare molecules.csv --bag molecule --label musk` ·
    `bagwise compare molecules.csv --bag molecule --label musk --methods RMISVC,MILBoost -o compared`
    """
    from bagwise.benchmark.compare import compare as compare_methods
    from bagwise.tabular import bags_of_table

    bags, y = bags_of_table(table, bag, label, feature)
    chosen = [name.strip() for name in methods.split(",")] if methods else None
    found = compare_methods(
        bags,
        y,
        methods=chosen,
        positive=positive,
        n_folds=folds,
        n_repeats=repeats,
        seconds_per_method=seconds,
        output=output,
        n_jobs=jobs,
    )
    typer.echo(json.dumps(asdict(found), indent=1) if as_json else str(found))
