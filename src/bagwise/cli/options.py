"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from bagwise.cluster import Cluster

CLUSTER_PANEL = "On a cluster"
ClusterAddress = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this form on every Python
    typer.Option(
        "--cluster",
        help="Run on the Dask cluster with this scheduler, such as tcp://host:8786.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]
ClusterWorkers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--workers",
        min=1,
        help="Run on a Dask cluster of this many processes, started here.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]


def one_of(*values: str) -> Callable[[str], list[str]]:
    """What the shell completes an option's value to."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


@contextmanager
def cluster_or_none(address: str | None, workers: int | None) -> Iterator[Cluster | None]:
    """The cluster that the options name, or none."""
    if address is not None and workers is not None:
        raise ValueError("--cluster names a cluster and --workers starts one: give one of the two")
    if address is None and workers is None:
        yield None
        return
    from bagwise.cluster import open_cluster

    with open_cluster(address, workers) as cluster:
        yield cluster
