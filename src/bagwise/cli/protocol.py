"""bagwise protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import Lists, Output, Split


def protocol(
    name: Annotated[str, typer.Argument(help="classes, pascal06-all, pascal07-all or voc07-6x2.")],
    truth: Annotated[Path, typer.Option(help="The annotated VOC or COCO folder.")],
    output: Output,
    split: Split = None,
    lists: Lists = None,
) -> None:
    """Write the images and labels of one of the literature's protocols, for discover --labels.

    Example: `bagwise protocol pascal07-all --truth VOC2007 --split trainval -o labels.csv`
    """
    from bagwise.discovery.evaluation.protocols import protocol as make_protocol
    from bagwise.discovery.evaluation.protocols import write_labels
    from bagwise.discovery.sources.reading import read_source

    chosen = make_protocol(name, read_source(truth, split=split).truth or {}, lists=lists)
    write_labels(chosen, output)
    typer.echo(f"{chosen}\nlabels written to {output}")
