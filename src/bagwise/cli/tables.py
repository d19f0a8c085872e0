"""bagwise tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

tables = typer.Typer(help="The paper's tables, published figures beside measured ones.", no_args_is_help=True)


@tables.callback()
def _named() -> None:
    """So that "discovery" has to be named, though it is the only one."""


@tables.command("discovery")
def discovery(
    runs: Annotated[list[Path] | None, typer.Argument(help="Runs that were evaluated.", metavar="[RUN]...")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A Markdown file to write as well.")] = None,
) -> None:
    """The paper's tables 4, 5 and 6: published and measured CorLoc, and time.

    Example: `bagwise tables discovery run-voc07 run-pascal07-all -o tables.md`
    """
    from bagwise._utils.atomic import write_text
    from bagwise.discovery.evaluation.tables import discovery_tables
    from bagwise.discovery.run.folder import RunFolder

    text = discovery_tables([RunFolder(path) for path in runs or []])
    typer.echo(text)
    if output is not None:
        write_text(output, text)
