"""A benchmark folder: its results, and the table and summary made of them. What `bagwise bench` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bagwise._utils.atomic import write_text
from bagwise._utils.cluster import Cluster
from bagwise.benchmark import measure, published, tables
from bagwise.benchmark.measure import Row
from bagwise.benchmark.methods import METHODS, SETS, row_of


@dataclass(frozen=True)
class Asked:
    """What is to be measured.

    Attributes
    ----------
    sets, methods : list of str or None
        By name; None for the sets of the table, and for all methods.
    table : {"musk", "corel", "trec9", "newsgroups"} or None
        Whose sets are meant; None for the paper's twelve.
    protocol : {"paper", "nested", "default"}
    repeats : int
        How often the 10-fold cross-validation is repeated.
    """

    sets: list[str] | None = None
    methods: list[str] | None = None
    table: str | None = None
    protocol: str = "paper"
    repeats: int = 10

    def __post_init__(self) -> None:
        if self.table is not None and self.table not in published.TABLES:
            raise ValueError(f"there is no table {self.table!r}: choose from {', '.join(published.TABLES)}")
        self.plan()

    @property
    def every_set(self) -> list[str]:
        """The names of the sets."""
        return self.sets or list(published.TABLES[self.table] if self.table else SETS)

    @property
    def every_method(self) -> list[str]:
        """The names of the methods."""
        return [row_of(name) for name in self.methods] if self.methods else list(METHODS)

    @property
    def is_part(self) -> bool:
        """Whether some sets or methods were left out by name."""
        return bool(self.sets or self.methods or self.table)

    def plan(self) -> list[measure.Task]:
        """The tasks; an error when a name is unknown or there is nothing to do."""
        return measure.plan(self.every_method, self.every_set, self.protocol, self.repeats)


def measured_rows(asked: Asked, folder: Path, jobs: int = -1, cluster: Cluster | None = None) -> list[Row]:
    """Run what the folder does not hold yet, here or on a cluster; the rows of the table."""
    return _sorted(measure.run(asked.plan(), folder / "results.jsonl", jobs, cluster), asked)


def kept_rows(asked: Asked, folder: Path) -> list[Row]:
    """The rows of the table of what the folder holds, however many repeats."""
    return _sorted(measure.kept(folder / "results.jsonl", asked.every_method, asked.every_set, asked.protocol), asked)


def keep_table(rows: list[Row], asked: Asked, folder: Path, command: str) -> list[Path]:
    """Write PROTOCOL.json and PROTOCOL.md into the folder.

    Parameters
    ----------
    command : str
        What made the rows, for the summary.
    """
    summary, table = (folder / f"{asked.protocol}.{kind}" for kind in ("json", "md"))
    write_text(summary, tables.summary(rows, command))
    write_text(table, tables.markdown(rows))
    return [summary, table]


def _sorted(done: dict[measure.Task, measure.Repeat], asked: Asked) -> list[Row]:
    order = asked.every_set
    return sorted(measure.rows(done), key=lambda row: (order.index(row.dataset), -row.mean))
