"""bagwise check, evaluate, report, export, protocol and tables: is it any good, and out with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from bagwise.cli.options import one_of

PANEL = "Objects in photographs"
RunArgument = Annotated[Path, typer.Argument(help="The folder that bagwise discover wrote.", metavar="RUN")]
Split = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this form on every Python
    typer.Option(help="Which list of a VOC or COCO folder: train, val, ..."),
]
Lists = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="For voc07-6x2: the folder of image lists, CLASS_VIEW.txt each."),
]
Labels = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="A table (.csv) of images and labels, or a COCO file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON, for scripts.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (check, evaluate, report, export):
        app.command(rich_help_panel=PANEL)(command)
    app.command(rich_help_panel="Benchmarks")(protocol)
    tables = typer.Typer(help="The paper's tables, published figures beside measured ones.", no_args_is_help=True)
    tables.command("discovery")(tables_discovery)
    tables.callback()(lambda: None)  # so that "discovery" has to be named, though it is the only one
    app.add_typer(tables, name="tables", rich_help_panel="Benchmarks")


def check(
    images: Annotated[Path, typer.Argument(help="A folder per class, or a VOC or COCO folder.")],
    labels: Labels = None,
    split: Split = None,
    as_json: AsJson = False,
) -> None:
    """Say before the long run what is wrong or doubtful about the images.

    Unreadable files, classes too small, nearly equal images, labels that look wrong, and, where there are boxes,
    how many objects the proposals reach. The exit code is 1 when something is wrong.

    Examples: `bagwise check photos` · `bagwise check VOC2007 --split train` · `bagwise check photos --json`
    """
    from bagwise.discovery.check import as_document, check_images, told
    from bagwise.discovery.sources import read_source

    source = read_source(images, labels, split)
    findings = check_images(source)
    if as_json:
        typer.echo(json.dumps(as_document(source, findings), indent=1, ensure_ascii=False))
    else:
        typer.echo(told(source, findings))
    if any(finding.severity == "wrong" for finding in findings):
        raise typer.Exit(1)


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
        Optional[list[Path]],  # noqa: UP045
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
    from bagwise.discovery.runfolder import RunFolder
    from bagwise.discovery.sources import read_source
    from bagwise.evaluation.kept import keep_evaluation
    from bagwise.evaluation.runs import evaluate_run, summary, truth_of

    folder, source = RunFolder(run), read_source(truth, split=split)
    others = [RunFolder(path) for path in against or []]
    figures = evaluate_run(folder, source, name=protocol, lists=lists, against=others)
    path, _ = keep_evaluation(folder, figures, truth_of(folder, source))
    typer.echo(path.read_text(encoding="utf-8") if as_json else f"{summary(figures)}\nkept in {path}")


def report(
    run: RunArgument,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("-o", "--output", help="The file; by default RUN/report.html."),
    ] = None,
) -> None:
    """Write a page about a run: one HTML file with figures, galleries and plots, readable without a network.

    Example: `bagwise report run`
    """
    from bagwise.discovery.runfolder import RunFolder
    from bagwise.report import write_report

    typer.echo(f"report written to {write_report(RunFolder(run), output)}")


def export(
    run: RunArgument,
    output: Output,
    format: Annotated[
        str,
        typer.Option(
            "-f",
            "--format",
            help="coco, voc, yolo or labelstudio.",
            autocompletion=one_of("coco", "voc", "yolo", "labelstudio"),
        ),
    ] = "coco",
    min_confidence: Annotated[float, typer.Option(help="Leave out objects with less confidence.", min=0, max=1)] = 0.0,
    checked_only: Annotated[
        bool, typer.Option("--checked-only", help="Leave out images that were not checked on the review page.")
    ] = False,
) -> None:
    """Write the boxes of a run for other tools; what was decided on the review page counts.

    Examples: `bagwise export run --format yolo -o dataset` ·
    `bagwise export run --format coco --checked-only -o checked`
    """
    from bagwise.discovery.runfolder import RunFolder
    from bagwise.discovery.words import counted
    from bagwise.review.decisions import read_decisions
    from bagwise.review.export import export_reviewed

    folder = RunFolder(run)
    done = export_reviewed(
        folder,
        read_decisions(folder.path),
        format,
        output,
        checked_only=checked_only,
        min_confidence=min_confidence,
    )
    what = f"{counted(done.boxes, 'box', 'boxes')} in {counted(done.images, 'image')}"
    typer.echo("\n".join([f"{what} written to {done.path}", *done.notes]))


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
    from bagwise.discovery.sources import read_source
    from bagwise.evaluation.protocols import protocol as make_protocol
    from bagwise.evaluation.protocols import write_labels

    chosen = make_protocol(name, read_source(truth, split=split).truth or {}, lists=lists)
    write_labels(chosen, output)
    typer.echo(f"{chosen}\nlabels written to {output}")


def tables_discovery(
    runs: Annotated[Optional[list[Path]], typer.Argument(help="Runs that were evaluated.", metavar="[RUN]...")] = None,  # noqa: UP045
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("-o", "--output", help="A Markdown file to write as well."),
    ] = None,
) -> None:
    """The paper's tables 4, 5 and 6: published and measured CorLoc, and time.

    Example: `bagwise tables discovery run-voc07 run-pascal07-all -o tables.md`
    """
    from bagwise.atomic import write_text
    from bagwise.discovery.runfolder import RunFolder
    from bagwise.evaluation.discovery_tables import discovery_tables

    text = discovery_tables([RunFolder(path) for path in runs or []])
    typer.echo(text)
    if output is not None:
        write_text(output, text)
