"""Shell completion: bash, zsh and fish get the commands, the options and the values of some of them."""

import os
import shlex
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-c", "from bagwise.cli import app; app(prog_name='bagwise')"]


def completed(shell: str, line: str) -> str:
    """What the program answers to the script that `--install-completion` puts into a shell."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    fish = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked = {"_BAGWISE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run(PROGRAM, env=os.environ | asked | words | fish, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("bagwise di", "discover", "report"),
        ("bagwise bench --pro", "--protocol", "--sets"),
        ("bagwise bench --protocol n", "nested", "paper"),
        ("bagwise discover photos --normalise c", "caffe", "imagenet"),
    ],
)
def test_completes(shell, line, wanted, unwanted):
    answer = completed(shell, line)
    assert wanted in answer
    assert unwanted not in answer


def test_bash_completes_with_the_script_it_is_given(tmp_path):
    script = subprocess.run(
        PROGRAM, env=os.environ | {"_BAGWISE_COMPLETE": "source_bash"}, capture_output=True, text=True
    ).stdout
    program = tmp_path / "bagwise"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    typed = "COMP_WORDS=(bagwise ev); COMP_CWORD=1; _bagwise_completion bagwise; echo ${COMPREPLY[@]}"
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{typed}"], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["evaluate"], done.stderr
