"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from bagwise.cluster import Cluster

ClusterAddress = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this form on every Python
    typer.Option("--cluster", help="Run on the Dask cluster whose scheduler is here, such as tcp://host:8786."),
]
ClusterWorkers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--workers", min=1, help="Run on a Dask cluster of this many processes, started here."),
]


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
