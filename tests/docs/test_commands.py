"""Every command that a page shows exists with the options it shows, and every command has help worth reading."""

from typing import Any

import pytest
import typer.main
from tests.docs.pages import PAGES, name, shown_commands

from bagwise.cli import app

# Options that act while they are parsed; the last ones would write into the shell's own files.
AT_ONCE = {"--help", "-h", "--version", "--install-completion", "--show-completion"}
SHOWN = [(page, words) for page in PAGES for words in shown_commands(page) if words and not AT_ONCE & set(words)]


def parse(command: Any, words: list[str], parent: Any = None) -> Any:
    """Parse words as the program would, without running anything; give the command that they name."""
    context = command.make_context(command.name or "bagwise", list(words), parent=parent)
    left = [*getattr(context, "_protected_args", ()), *context.args]
    if hasattr(command, "commands") and left:
        _, inner, rest = command.resolve_command(context, left)
        return parse(inner, rest, context)
    return command


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """All commands that do something, with their names."""
    if hasattr(command, "commands"):
        return [leaf for key, inner in command.commands.items() for leaf in leaves(inner, (*path, key))]
    return [(" ".join(path), command)]


PROGRAM = typer.main.get_command(app)
COMMANDS = leaves(PROGRAM)


@pytest.mark.parametrize(("page", "words"), SHOWN, ids=[f"{name(page)}: {' '.join(words)}" for page, words in SHOWN])
def test_command_exists(page, words):
    assert parse(PROGRAM, words) in [command for _, command in COMMANDS]


def test_wrong_option_is_noticed():
    with pytest.raises(Exception, match="No such option"):
        parse(PROGRAM, ["export", "run", "--colour", "red", "-o", "x"])
    with pytest.raises(Exception, match="No such command"):
        parse(PROGRAM, ["discovr", "photos"])
    with pytest.raises(Exception, match="Missing"):
        parse(PROGRAM, ["check"])


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_help_is_complete(path, command):
    assert command.help, f"bagwise {path} says nothing about itself"
    assert f"`bagwise {path}" in command.help, f"the help of bagwise {path} shows no example"
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"bagwise {path}: {parameter.name} has no help"
