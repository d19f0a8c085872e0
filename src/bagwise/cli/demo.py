"""bagwise demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for pictures and results.")] = Path("demo-out"),
) -> None:
    """See what bagwise does, offline, on embedded data, in about two minutes.

    Example: `bagwise demo -o demo-out`
    """
    from bagwise import demo as stories

    output.mkdir(parents=True, exist_ok=True)
    typer.echo("Which shapes make a molecule smell of musk?")
    for line in stories.molecules(output):
        typer.echo(f"  {line}")
    typer.echo("\nWhere are the objects in images?")
    for line in stories.objects(output, lambda text: typer.echo(f"  {text}")):
        typer.echo(f"  {line}")
