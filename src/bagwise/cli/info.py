"""bagwise info."""

from __future__ import annotations

import json

import typer

from bagwise.cli.options import AsJson


def info(as_json: AsJson = False) -> None:
    """Print versions, devices and folders: what to send along with a question.

    Of each folder it says how much it holds and which environment variable moves it.

    Examples: `bagwise info` · `bagwise info --json > info.json`
    """
    from bagwise import installation

    facts = installation.collect()
    typer.echo(json.dumps(facts, indent=1) if as_json else installation.told(facts))
