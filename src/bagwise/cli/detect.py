"""bagwise detect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import (
    AsJson,
    ClusterAddress,
    ClusterWorkers,
    Device,
    Jobs,
    RunArgument,
    RunOutput,
    Shown,
    Store,
    cluster_or_none,
    say,
    tell,
)


def detect(
    run: RunArgument,
    images: Annotated[Path, typer.Argument(help="An image, or a folder of images; no labels are needed.")],
    output: RunOutput = Path("bagwise-found"),
    threshold: Annotated[
        float, typer.Option(min=0.01, max=1, help="Probability of a class from which an image gets its boxes.")
    ] = 0.9,
    jobs: Jobs = None,
    device: Device = "cpu",
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
    store: Store = None,
    min_confidence: Shown = 0.0,
    as_json: AsJson = False,
) -> None:
    """Find the classes of an earlier run in images without labels.

    Examples: `bagwise detect run inbox -o found`, where `bagwise discover photos -o run` learned the classes ·
    `bagwise detect run new.jpg --json`
    """
    from bagwise import api

    with cluster_or_none(cluster, workers, store) as on:
        found = api.detect(
            run, images, output, threshold=threshold, jobs=jobs, device=device, say=say, cluster=on, store=store
        )
    tell(found, as_json, min_confidence)
