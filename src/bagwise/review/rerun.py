"""A run that is made again after a refit: what the person's decisions brought is not lost on the way."""

import time
from collections.abc import Callable
from pathlib import Path

from bagwise._utils.words import counted
from bagwise.discovery.run.folder import RunFolder, write_parquet
from bagwise.review.decisions import read_decisions
from bagwise.review.refit import DISCOVERED, refit

Say = Callable[[str], None]


def was_refitted(folder: str | Path) -> bool:
    """Whether the boxes of a run folder come from a refit."""
    return (Path(folder) / DISCOVERED).exists()


def repeat_refit(run: RunFolder, say: Say) -> None:
    """Refit a run that was made again with the decisions that its boxes had been refitted with, and say so.

    New images profit as well, and models, boxes and confidences belong together, which boxes carried over would not.

    Parameters
    ----------
    run : RunFolder
        As `discover` wrote it just now, over a run that was refitted.
    say : callable
        Gets a line of text.
    """
    started = time.perf_counter()
    decisions = read_decisions(run.path)
    write_parquet(run.path / DISCOVERED, run.boxes)
    try:
        classes = refit(run, decisions)
    except ValueError as error:
        say(f"the boxes are as discovered: the refit on the review page could not be repeated, because {error}")
        return
    run.rewrite_manifest({"timings": {**run.manifest["timings"], "refit": round(time.perf_counter() - started, 3)}})
    decided = sum(state.status != "open" or state.added for state in decisions.values())
    say(
        f"refitted {', '.join(classes)} with {counted(decided, 'decision')} of the review, as before; "
        "--discard-refit keeps the boxes as discovered"
    )


def forget_refit(run: RunFolder, say: Say) -> None:
    """Say that the boxes are as discovered now, and what became of the decisions."""
    (run.path / DISCOVERED).unlink()
    say(
        "the boxes of the refit are discarded; decisions stay, count in exports, and Refit on the review page uses them"
    )
