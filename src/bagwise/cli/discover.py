"""bagwise discover."""

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
    Labels,
    Negative,
    RunOutput,
    Shown,
    Split,
    Store,
    cluster_or_none,
    one_of,
    say,
    tell,
)

NETWORK_PANEL = "A network of your own"


def discover(
    images: Annotated[
        Path, typer.Argument(help="A folder per class, a VOC or COCO folder, or the folder that --labels speaks of.")
    ],
    output: RunOutput = Path("bagwise-run"),
    labels: Labels = None,
    split: Split = None,
    negative: Negative = None,
    preset: Annotated[
        str,
        typer.Option(
            help="default, or paper: the published recipe to the letter.", autocompletion=one_of("default", "paper")
        ),
    ] = "default",
    method: Annotated[
        str | None, typer.Option(help="RMISVC, any other classifier of bagwise that scores instances, or edge-boxes.")
    ] = None,
    max_objects: Annotated[int, typer.Option(min=1, help="Most objects of a class in one image.")] = 1,
    max_boxes: Annotated[int, typer.Option(min=1, help="Most boxes to consider in one image.")] = 400,
    edges: Annotated[
        str,
        typer.Option(
            help="Edges that boxes are proposed from: network, gradient, or the file of a structured forest.",
            autocompletion=one_of("network", "gradient"),
        ),
    ] = "network",
    figure: Annotated[
        str,
        typer.Option(
            help="on, or off: do without the map of what stands out, whose teacher once learned from drawn masks.",
            autocompletion=one_of("on", "off"),
        ),
    ] = "on",
    backbone: Annotated[
        Path | None,
        typer.Option(
            help="ONNX file to describe boxes with. Default: EfficientNet-Lite0.", rich_help_panel=NETWORK_PANEL
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(help="Tensor or node of the ONNX file whose output is used.", rich_help_panel=NETWORK_PANEL),
    ] = None,
    normalise: Annotated[
        str | None,
        typer.Option(
            help="How the network wants its pixels: imagenet, caffe or centred. Default: imagenet.",
            autocompletion=one_of("imagenet", "caffe", "centred"),
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = None,
    crop: Annotated[
        bool,
        typer.Option(
            "--crop", help="Run the network on every box by itself: much slower.", rich_help_panel=NETWORK_PANEL
        ),
    ] = False,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Also keep the answers after 0, 100, 500, 1000 and 2000 steps.")
    ] = False,
    discard_refit: Annotated[
        bool, typer.Option("--discard-refit", help="Do not repeat the refit that was made on the review page.")
    ] = False,
    jobs: Jobs = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
    store: Store = None,
    min_confidence: Shown = 0.0,
    as_json: AsJson = False,
) -> None:
    """Find objects in images that carry only image-level labels.

    The run folder gets a box for every image and label, ranked alternatives and a model of each class. Continue with
    `bagwise report`, `bagwise review` and `bagwise export`, or find the classes in other images with `bagwise detect`.

    Examples: `bagwise discover photos -o run`, where photos has one folder per class ·
    `bagwise discover photos --labels labels.csv -o run` · `bagwise discover VOC2007 --split train -o run` ·
    `bagwise discover photos --json --min-confidence .8`
    """
    from bagwise import api

    if figure not in ("on", "off"):
        raise ValueError(f"--figure is on or off, not {figure!r}")
    with cluster_or_none(cluster, workers, store) as on:
        found = api.discover(
            images, labels, output, split=split, negative=negative, preset=preset, method=method,
            max_objects=max_objects, max_boxes=max_boxes, edges=edges, figure=figure == "on",
            backbone=backbone, layer=layer, normalise=normalise, crop=crop, snapshots=snapshots,
            discard_refit=discard_refit, jobs=jobs,
            device=device, seed=seed, cluster=on, store=store, say=say,
        )  # fmt: skip
    tell(found, as_json, min_confidence)
