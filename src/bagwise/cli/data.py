"""bagwise data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

data = typer.Typer(
    help="The data sets of the tables: what is on this machine, and how to get the rest.", no_args_is_help=True
)


@data.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="The folder that the public MATLAB files were unpacked to.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to write. Default: the folder in BAGWISE_DATA, else the cache."),
    ] = None,
) -> None:
    """Convert the public files of MUSK, Corel, TREC9 and the newsgroups, for `bagwise bench`.

    It says which are the very data that the published tables were made with.

    Example: `bagwise data convert MIL-Data-2002-Musk-Corel-Trec9-MATLAB`
    """
    from bagwise.datasets import convert_folder

    for done in convert_folder(folder, output):
        verdict = "as in the tables" if done.known else "NOT the data of the tables: expect other figures"
        typer.echo(f"{done.source.name} -> {done.path} ({verdict})")


@data.command("list")
def list_sets() -> None:
    """List the data sets that `bagwise bench` can run on, and where those that are missing can be had.

    Example: `bagwise data list`
    """
    from bagwise.datasets.fetch import available

    for name, where in available().items():
        typer.echo(f"{name:34} {where}")
