"""A run on one page: a self-contained HTML file with figures, pictures and plots, readable without a network."""

from pathlib import Path

from bagwise._utils.atomic import write_text
from bagwise.discovery.run.folder import RunFolder
from bagwise.report.page import render

__all__ = ["write_report"]


def write_report(run: RunFolder, path: str | Path | None = None) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    run : RunFolder
        Where it was evaluated, the report shows the figures and the true boxes as well.
    path : path, optional
        The file; by default ``report.html`` in the run folder.
    """
    target = run.path / "report.html" if path is None else Path(path)
    write_text(target, render(run))
    return target
