"""bagwise fit, predict and bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from bagwise.cli.options import ClusterAddress, ClusterWorkers, cluster_or_none, one_of


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Tables of instances")(fit)
    app.command(rich_help_panel="Tables of instances")(predict)
    app.command(rich_help_panel="Benchmarks")(bench)


BagColumn = Annotated[str, typer.Option("--bag", help="Column that names the bag of each row.")]
Features = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads this form on every Python
    typer.Option("--feature", help="Column to learn from; repeat for several. Default: all others."),
]


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
        Optional[str],  # noqa: UP045
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


def predict(
    model: Annotated[Path, typer.Argument(help="A model that bagwise fit wrote.")],
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file with one row per instance.")],
    bag: BagColumn,
    output: Annotated[Path, typer.Option("-o", "--output", help="Predictions per bag, CSV or Parquet.")],
    instances: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Also write a score for every instance to this CSV or Parquet file."),
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


def bench(
    sets: Annotated[
        str, typer.Option(help="Data sets, separated by commas, such as musk1,fox. Default: the paper's twelve.")
    ] = "",
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas, such as RMI-SVM,mi-SVM. Default: all.")
    ] = "",
    table: Annotated[
        str,
        typer.Option(
            help="The data sets of one table: musk, corel, trec9 or newsgroups.",
            autocompletion=one_of("musk", "corel", "trec9", "newsgroups"),
        ),
    ] = "",
    protocol: Annotated[
        str,
        typer.Option(
            help="Parameters. paper: the published ones; nested: chosen on the training bags; default: none given.",
            autocompletion=one_of("paper", "nested", "default"),
        ),
    ] = "paper",
    repeats: Annotated[int, typer.Option(help="How often to repeat the 10-fold cross-validation.", min=1)] = 10,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results, summary and table.")] = Path(
        "bench"
    ),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    only_kept: Annotated[
        bool, typer.Option("--kept", help="Run nothing: the table of what the folder holds, however many repeats.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
) -> None:
    """Regenerate the paper's tables: ten times 10-fold cross-validation, resumable.

    Corel and TREC9 are read from the folder in the environment variable BAGWISE_DATA.

    Examples: `bagwise bench --sets musk1,musk2` · `bagwise bench --table corel --protocol nested` ·
    `bagwise bench --kept -o bench`
    """
    from bagwise.atomic import write_text
    from bagwise.evaluation import benchmark, published, tables
    from bagwise.evaluation.methods import METHODS, SETS

    if table and table not in published.TABLES:
        raise ValueError(f"there is no table {table!r}: choose from {', '.join(published.TABLES)}")
    chosen_sets = sets.split(",") if sets else list(published.TABLES[table] if table else SETS)
    chosen_methods = methods.split(",") if methods else list(METHODS)
    tasks = benchmark.plan(chosen_methods, chosen_sets, protocol, repeats)
    if only_kept:
        done = benchmark.kept(output / "results.jsonl", chosen_methods, chosen_sets, protocol)
    else:
        with cluster_or_none(cluster, workers) as on:
            done = benchmark.run(tasks, output / "results.jsonl", jobs, on)
    rows = sorted(benchmark.rows(done), key=lambda row: (chosen_sets.index(row.dataset), -row.mean))
    command = "bagwise " + " ".join(sys.argv[1:])
    tables.write_summary(rows, output / f"{protocol}.json", command)
    write_text(output / f"{protocol}.md", tables.markdown(rows))
    if as_json:
        typer.echo((output / f"{protocol}.json").read_text())
        return
    from rich.console import Console

    Console().print(tables.rich_table(rows, f"repeated 10-fold cross-validation, protocol {protocol}"))
    typer.echo(f"written to {output}/: results.jsonl, {protocol}.json, {protocol}.md")
