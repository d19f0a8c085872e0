"""bagwise bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import ClusterAddress, ClusterWorkers, cluster_or_none, one_of


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
        bool,
        typer.Option(
            "--kept",
            help="Run nothing: the table of what the folder holds, however many repeats; a part of it is only printed.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
) -> None:
    """Regenerate the paper's tables: ten times 10-fold cross-validation, resumable.

    `bagwise data convert` makes Corel, TREC9 and the newsgroups from public files, and `bagwise data list` finds them.

    Examples: `bagwise bench --sets musk1,musk2` · `bagwise bench --table corel --protocol nested` ·
    `bagwise bench --kept -o bench`
    """
    from bagwise.benchmark import bench as benchmark
    from bagwise.benchmark import tables

    asked = benchmark.Asked(_words(sets), _words(methods), table or None, protocol, repeats)
    if only_kept:
        rows = benchmark.kept_rows(asked, output)
    else:
        with cluster_or_none(cluster, workers) as on:
            rows = benchmark.measured_rows(asked, output, jobs, on)
    command = "bagwise " + " ".join(sys.argv[1:])
    written = [] if only_kept and asked.is_part else benchmark.keep_table(rows, asked, output, command)
    if as_json:
        typer.echo(tables.summary(rows, command))
        return
    from rich.console import Console

    Console().print(tables.rich_table(rows, f"repeated 10-fold cross-validation, protocol {protocol}"))
    if written:
        typer.echo(f"written to {output}/: results.jsonl, {', '.join(path.name for path in written)}")


def _words(text: str) -> list[str] | None:
    return text.split(",") if text else None
