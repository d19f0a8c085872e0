"""The command line: one file per command, which reads options and calls the library; no logic here."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Annotated

import typer

app = typer.Typer(
    name="bagwise",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Multiple-instance learning, and object discovery in images with image-level labels.",
    epilog="Begin with `bagwise demo`. `bagwise COMMAND --help` explains a command and shows examples.",
)

# The command NAME is the function or the group of commands called so in cli/NAME.py.
COMMANDS = {
    "Start here": ("demo",),
    "Objects in images": ("check", "discover", "detect", "review", "report", "evaluate", "export"),
    "Tables of instances": ("compare", "fit", "predict"),
    "Benchmarks": ("bench", "data", "protocol", "tables"),
    "About": ("info",),
}

for _panel, _names in COMMANDS.items():
    for _name in _names:
        _command = getattr(import_module(f"bagwise.cli.{_name}"), _name)
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


def _version(wanted: bool) -> None:
    if wanted:
        from bagwise import __version__

        typer.echo(f"bagwise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; what the user can mend becomes one line and exit code 2."""
    # joblib starts a worker anew when it has grown: nothing is lost, and nothing is to be done about it.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"bagwise: {_one_line(error)}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("bagwise: interrupted; the same command resumes from here", err=True)
        sys.exit(130)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
