"""bagwise evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bagwise.cli.options import AsJson, Lists, RunArgument, Split, one_of


def evaluate(
    run: RunArgument,
    truth: Annotated[Path, typer.Option(help="Boxes that people drew: a VOC or COCO folder, or a COCO file.")],
    split: Split = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="Which images are asked: labels, classes, pascal06-all, pascal07-all or voc07-6x2.",
            autocompletion=one_of("labels", "classes", "pascal06-all", "pascal07-all", "voc07-6x2"),
        ),
    ] = "labels",
    lists: Lists = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Another run on the same images, for the detection rates; repeat for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how good the boxes of a run are.

    CorLoc by the paper's and by the any-class definition with intervals, detection rates by number of boxes, and how
    far the confidence can be trusted. The figures are kept in RUN/evaluation.json, for the report.

    Examples: `bagwise evaluate run --truth VOC2007 --split train` ·
    `bagwise evaluate run --truth instances.json --against run-misvm --json`
    """
    import json

    from bagwise.api import Discovery
    from bagwise.discovery.evaluation.runs import summary

    found, others = Discovery(run), [Discovery(path) for path in against or []]
    figures = found.evaluate(truth, split=split, protocol=protocol, lists=lists, against=others)
    if as_json:
        typer.echo(json.dumps(figures, indent=1, ensure_ascii=False))
    else:
        typer.echo(f"{summary(figures)}\nkept in {found.path / 'evaluation.json'}")
