"""bagwise report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import RunArgument


def report(
    run: RunArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file; by default RUN/report.html.")] = None,
) -> None:
    """Write a page about a run: one HTML file with figures, galleries and plots, readable without a network.

    Example: `bagwise report run`
    """
    from bagwise.api import Discovery

    typer.echo(f"report written to {Discovery(run).report(output)}")
