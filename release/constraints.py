"""Renew constraints.txt: the version of every package that a full environment installs today.

    python -m release.constraints

pip resolves everything for the Python that runs this, and installs nothing. Run the tests with the new file before
committing it. torch keeps the version that stands in the file: it is raised by hand, to one with a build for CPUs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE = ROOT / "constraints.txt"
HEADER = """\
# The versions that the tests last passed with, of all that bagwise and its tests may need (Python 3.11, Linux).
# Renew with `make constraints`; users need not install these, pyproject.toml says what works.
"""
# Parts of torch's builds for graphics cards: no test needs them, and each build brings its own.
CARDS = ("nvidia-", "cuda-")


def read_pins(path: Path = FILE) -> dict[str, str]:
    """The pinned version of every package, by its canonical name."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pins: dict[str, str] = {}
    for line in lines:
        requirement = Requirement(line)
        (pin,) = requirement.specifier
        if pin.operator != "==" or requirement.url or requirement.marker:
            raise ValueError(f"{path}: {line!r} is not of the form name==version")
        pins[canonicalize_name(requirement.name)] = pin.version
    return pins


def resolve(torch: str) -> dict[str, str]:
    """What pip would install into an empty environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(project["optional-dependencies"])
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    command += ["--group", "dev", f".[{extras}]", f"torch=={torch}", "triton", "pip"]
    report = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    found = {canonicalize_name(part["metadata"]["name"]): part["metadata"]["version"] for part in report["install"]}
    # A local version (2.13.0+cpu) exists in one place only; 2.13.0 admits it and the public one.
    return {
        name: version.partition("+")[0]
        for name, version in found.items()
        if name != "bagwise" and not name.startswith(CARDS)
    }


def main() -> None:
    before = read_pins()
    after = resolve(before["torch"])
    text = HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(after.items()))
    FILE.write_text(text, encoding="utf-8", newline="\n")
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            print(f"{name}: {before.get(name, 'new')} -> {after.get(name, 'gone')}")


if __name__ == "__main__":
    main()
