"""bagwise discover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from bagwise.cli.options import ClusterAddress, ClusterWorkers, cluster_or_none


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Objects in photographs")(discover)


def discover(
    images: Annotated[
        Path, typer.Argument(help="A folder per class, a VOC or COCO folder, or the folder that --labels speaks of.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run folder; a run that was stopped goes on.")],
    labels: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads this form on every Python
        typer.Option(help="Table of image and labels (.csv), or a COCO file (.json)."),
    ] = None,
    split: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Which list of a VOC or COCO folder: train, val, ..."),
    ] = None,
    model: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="An earlier run: find its classes in images without labels."),
    ] = None,
    preset: Annotated[str, typer.Option(help="default, or paper: the published recipe to the letter.")] = "default",
    method: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="RMISVC, any other classifier of bagwise that scores instances, or edge-boxes."),
    ] = None,
    max_objects: Annotated[int, typer.Option(min=1, help="Most objects of a class in one image.")] = 1,
    max_boxes: Annotated[int, typer.Option(min=1, help="Most boxes to consider in one image.")] = 400,
    edges: Annotated[str, typer.Option(help="network, gradient, or a structured forest (model.yml.gz).")] = "network",
    backbone: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="ONNX model to take features from. Default: EfficientNet-Lite0."),
    ] = None,
    layer: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Tensor or node of the ONNX model whose output is used."),
    ] = None,
    normalise: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="How the ONNX model wants its pixels: imagenet, caffe or centred. Default: imagenet."),
    ] = None,
    crop: Annotated[bool, typer.Option("--crop", help="Run the network on every box by itself.")] = False,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Also keep the answers after 0, 100, 500, 1000 and 2000 steps.")
    ] = False,
    jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Threads. Default: one per core."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="With a cluster: folder or URL (s3://...) that all workers see. Default: the run folder."),
    ] = None,
) -> None:
    """Find objects in images that carry only image-level labels.

    Example: `bagwise discover photos -o run`, where photos has one folder per class.
    """
    from bagwise.discovery import pipeline
    from bagwise.discovery.settings import Settings
    from bagwise.discovery.summary import summary

    if model is None:
        settings = Settings.preset(preset, str(backbone) if backbone else None, layer).changed(
            method=method,
            max_objects=max_objects,
            max_boxes=max_boxes,
            edges=edges,
            normalise=normalise,
            crop=crop or None,
            seed=seed,
        )
    with cluster_or_none(cluster, workers) as on:
        if model is not None:
            run = pipeline.discover_unlabelled(model, images, output, jobs=jobs, say=_say, cluster=on, store_at=store)
        else:
            run = pipeline.discover(
                images, output, labels=labels, split=split, settings=settings, snapshots=snapshots, jobs=jobs,
                say=_say, cluster=on, store_at=store,
            )  # fmt: skip
    typer.echo(summary(run))


def _say(text: str) -> None:
    typer.echo(text, err=True)
