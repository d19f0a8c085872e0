"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bagwise._utils.cluster import Cluster
    from bagwise.api import Discovery

CLUSTER_PANEL = "On a cluster"


def one_of(*values: str) -> Callable[[str], list[str]]:
    """What the shell completes an option's value to."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON, for scripts.")]
RunArgument = Annotated[Path, typer.Argument(help="The folder that bagwise discover wrote.", metavar="RUN")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
RunOutput = Annotated[Path, typer.Option("-o", "--output", help="The run folder; a run that was stopped resumes.")]
MinConfidence = Annotated[float, typer.Option(help="Leave out objects with less confidence.", min=0, max=1)]
Shown = Annotated[
    float,
    typer.Option("--min-confidence", help="Count and print no object with less; the run keeps all.", min=0, max=1),
]
Split = Annotated[str | None, typer.Option(help="Which part of a VOC, COCO or Hugging Face folder: train, val, ...")]
Negative = Annotated[
    list[str] | None,
    typer.Option(
        help="Label or folder that means none of the classes; repeat for several. Default: none, negative, background."
    ),
]
Labels = Annotated[
    Path | None, typer.Option(help="A table (.csv, .jsonl) of images and labels, or a COCO or FiftyOne file (.json).")
]
Lists = Annotated[Path | None, typer.Option(help="For voc07-6x2: the folder of image lists, CLASS_VIEW.txt each.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Threads. Default: one per core.")]
Device = Annotated[
    str,
    typer.Option(
        help="cpu, or cuda: the network and the learning run on an NVIDIA card.", autocompletion=one_of("cpu", "cuda")
    ),
]
BagColumn = Annotated[str, typer.Option("--bag", help="Column that names the bag of each row.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", help="Column to learn from; repeat for several. Default: all others."),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Run on the Dask cluster with this scheduler, such as tcp://host:8786.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
ClusterWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Run on a Dask cluster of this many processes, started here.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        help="Folder or URL (s3://...) that all workers see, for features. Default: the run folder.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]


@contextmanager
def cluster_or_none(address: str | None, workers: int | None, store: str | None = None) -> Iterator[Cluster | None]:
    """The cluster that the options name, or none."""
    if address is not None and workers is not None:
        raise ValueError("--cluster names a cluster and --workers starts one: give one of the two")
    if address is None and workers is None:
        if store is not None:
            raise ValueError("--store is where the workers of a cluster put features: give --cluster or --workers too")
        yield None
        return
    from bagwise._utils.cluster import open_cluster

    with open_cluster(address, workers) as cluster:
        yield cluster


def say(text: str) -> None:
    """Print progress, where it does not mix with results."""
    typer.echo(text, err=True)


def tell(found: Discovery, as_json: bool, min_confidence: float) -> None:
    """Print what was found, for a person or as JSON for a script."""
    if as_json:
        typer.echo(json.dumps(found.as_document(min_confidence=min_confidence), indent=1, ensure_ascii=False))
    else:
        typer.echo(found.summary(min_confidence=min_confidence))
