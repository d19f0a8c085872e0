"""bagwise discover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from bagwise.cli.options import CLUSTER_PANEL, ClusterAddress, ClusterWorkers, cluster_or_none, one_of

NETWORK_PANEL = "A network of your own"
# What an earlier run has settled; giving one of these beside --model would be forgotten without a word.
OF_LEARNING = (
    "labels", "split", "preset", "method", "max_objects", "max_boxes", "edges", "backbone", "layer", "normalise",
    "crop", "snapshots", "seed",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Objects in photographs")(discover)


def discover(
    context: typer.Context,
    images: Annotated[
        Path, typer.Argument(help="A folder per class, a VOC or COCO folder, or the folder that --labels speaks of.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run folder; a run that was stopped goes on.")],
    labels: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads this form on every Python
        typer.Option(help="A table (.csv) of images and labels, or a COCO file (.json)."),
    ] = None,
    split: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Which list of a VOC or COCO folder: train, val, ..."),
    ] = None,
    model: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="An earlier run: find its classes in these images, which need no labels."),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="default, or paper: the published recipe to the letter.", autocompletion=one_of("default", "paper")
        ),
    ] = "default",
    method: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="RMISVC, any other classifier of bagwise that scores instances, or edge-boxes."),
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
    backbone: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="ONNX file to describe boxes with. Default: EfficientNet-Lite0.", rich_help_panel=NETWORK_PANEL
        ),
    ] = None,
    layer: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Tensor or node of the ONNX file whose output is used.", rich_help_panel=NETWORK_PANEL),
    ] = None,
    normalise: Annotated[
        Optional[str],  # noqa: UP045
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
    jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Threads. Default: one per core."),
    ] = None,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda: the network and the learning run on an NVIDIA card.")
    ] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    cluster: ClusterAddress = None,
    workers: ClusterWorkers = None,
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Folder or URL (s3://...) that all workers see, for features. Default: the run folder.",
            rich_help_panel=CLUSTER_PANEL,
        ),
    ] = None,
) -> None:
    """Find objects in images that carry only image-level labels.

    The run folder gets a box for every image and label, ranked alternatives and a model of each class. Go on with
    `bagwise report`, `bagwise review` and `bagwise export`.

    Examples: `bagwise discover photos -o run`, where photos has one folder per class ·
    `bagwise discover photos --labels labels.csv -o run` · `bagwise discover VOC2007 --split train -o run` ·
    `bagwise discover inbox --model run -o found`
    """
    from bagwise.discovery import pipeline
    from bagwise.discovery.settings import Settings
    from bagwise.discovery.summary import summary

    if store is not None and cluster is None and workers is None:
        raise ValueError("--store is where the workers of a cluster put features: give --cluster or --workers too")
    if model is not None:
        _refuse_learning_options(context, model)
    else:
        settings = Settings.preset(preset, str(backbone) if backbone else None, layer).changed(
            method=method,
            max_objects=max_objects,
            max_boxes=max_boxes,
            edges=edges,
            normalise=normalise,
            crop=crop or None,
            device=device,
            seed=seed,
        )
    with cluster_or_none(cluster, workers) as on:
        if model is not None:
            run = pipeline.discover_unlabelled(
                model, images, output, jobs=jobs, device=device, say=_say, cluster=on, store_at=store
            )
        else:
            run = pipeline.discover(
                images, output, labels=labels, split=split, settings=settings, snapshots=snapshots, jobs=jobs,
                say=_say, cluster=on, store_at=store,
            )  # fmt: skip
    typer.echo(summary(run))


def _refuse_learning_options(context: typer.Context, model: Path) -> None:
    sources = {name: context.get_parameter_source(name) for name in OF_LEARNING}
    given = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"--model uses what {model} was made with: leave out {options}")


def _say(text: str) -> None:
    typer.echo(text, err=True)
