"""bagwise export."""

from __future__ import annotations

from typing import Annotated

import typer

from bagwise.cli.options import MinConfidence, Output, RunArgument, one_of


def export(
    run: RunArgument,
    output: Output,
    format: Annotated[
        str,
        typer.Option(
            "-f",
            "--format",
            help="coco, voc, yolo, yolo-seg, labelstudio or fiftyone.",
            autocompletion=one_of("coco", "voc", "yolo", "yolo-seg", "labelstudio", "fiftyone"),
        ),
    ] = "coco",
    min_confidence: MinConfidence = 0.0,
    checked_only: Annotated[
        bool, typer.Option("--checked-only", help="Leave out images that were not checked on the review page.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the output folder.")] = False,
    background: Annotated[
        bool,
        typer.Option("--background", help="For training: images in which nothing was found show none of the classes."),
    ] = False,
) -> None:
    """Write the boxes of a run for other tools; what was decided on the review page counts.

    Examples: `bagwise export run --format yolo -o dataset` ·
    `bagwise export run --format coco --checked-only -o checked`
    """
    from bagwise.api import Discovery

    done = Discovery(run).export(
        format, output, min_confidence=min_confidence, checked_only=checked_only, force=force, background=background
    )
    typer.echo(done.told())
