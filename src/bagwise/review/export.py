"""Exports of a run as a person left it: their boxes in place of the model's, and only what they checked if wished."""

from dataclasses import replace
from pathlib import Path

from bagwise._utils.words import counted
from bagwise.discovery.run.export import Exported, export_run
from bagwise.discovery.run.folder import RunFolder
from bagwise.review.decisions import ItemState, Pair, ReviewError
from bagwise.review.items import Items
from bagwise.review.reviewed import reviewed_run


def export_reviewed(
    run: RunFolder,
    decisions: dict[Pair, ItemState],
    format: str,
    out: str | Path,
    *,
    checked_only: bool = False,
    min_confidence: float = 0.0,
    force: bool = False,
    background: bool = False,
) -> Exported:
    """Write the boxes of a run for other tools; see `export_run`.

    A label that a person called wrong is no label any more: an image without others is background, which is what a
    detector must learn of it. One that a person added counts like any other.

    Parameters
    ----------
    decisions : dict
        (file, label) -> state.
    checked_only : bool
        Whether to leave out the images that were not checked. An image of which only some labels were is one of
        them: in a data set, an object that nobody decided about would count as background.
    force, background : bool
        See `export_run`.
    """
    reviewed = reviewed_run(run, decisions)
    if not len(reviewed.boxes):
        raise ReviewError("there is nothing to export: every box was rejected, or none was found")
    if not checked_only:
        return export_run(reviewed, format, out, min_confidence=min_confidence, force=force, background=background)
    whole, in_part = checked_files(run, decisions)
    if not whole:
        partly = f" ({in_part} in part)" if in_part else ""
        raise ReviewError(f"there is nothing to export yet: no image has been checked with all its labels{partly}")
    done = export_run(
        reviewed, format, out, files=whole, min_confidence=min_confidence, force=force, background=background
    )
    if not in_part:
        return done
    note = f"{counted(in_part, 'image')} left out, of which only some labels are checked"
    return replace(done, notes=[note, *done.notes])


def checked_files(run: RunFolder, decisions: dict[Pair, ItemState]) -> tuple[set[str], int]:
    """The images whose every label was decided, and how many others have some that were."""
    decided: dict[str, list[bool]] = {}
    for pair in Items(run, [pair for pair, state in decisions.items() if state.added]).pairs:
        decided.setdefault(pair[0], []).append(pair in decisions and decisions[pair].status != "open")
    whole = {file for file, each in decided.items() if all(each)}
    return whole, sum(any(each) and not all(each) for each in decided.values())
