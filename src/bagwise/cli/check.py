"""bagwise check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import AsJson, Labels, Negative, Split


def check(
    images: Annotated[
        Path, typer.Argument(help="A folder per class, a VOC or COCO folder, or the folder that --labels speaks of.")
    ],
    labels: Labels = None,
    split: Split = None,
    negative: Negative = None,
    as_json: AsJson = False,
) -> None:
    """Say before the long run what is wrong or doubtful about the images.

    Unreadable files, classes too small, nearly equal images, labels that look wrong, and, where there are boxes,
    how many objects the proposals reach. The exit code is 1 when something is wrong.

    Examples: `bagwise check photos` · `bagwise check VOC2007 --split train` · `bagwise check photos --json`
    """
    from bagwise.discovery.check.checks import as_document, check_images, told
    from bagwise.discovery.sources.reading import read_source

    source = read_source(images, labels, split, negative)
    findings = check_images(source)
    if as_json:
        typer.echo(json.dumps(as_document(source, findings), indent=1, ensure_ascii=False))
    else:
        typer.echo(told(source, findings))
    if any(finding.severity == "wrong" for finding in findings):
        raise typer.Exit(1)
