"""The demonstration: which shapes make a molecule smell of musk, and where the objects are in images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, cross_val_predict

from bagwise._utils.atomic import replacing
from bagwise.bags import Bags
from bagwise.datasets import load_demo_photos, load_musk1
from bagwise.rmi import RMISVC

MOLECULES_SHOWN = 24


def molecules(folder: Path) -> list[str]:
    """Cross-validate RMI-SVM on MUSK 1, and draw which conformations it holds responsible.

    Parameters
    ----------
    folder : where ``molecules.png`` is written

    Returns
    -------
    Lines that tell the story.
    """
    bags, y = load_musk1()
    model = RMISVC(random_state=0)
    held_out = cross_val_predict(model, bags, y, cv=KFold(10, shuffle=True, random_state=0))
    model.fit(bags, y)
    chosen = _first_of_each(y, MOLECULES_SHOWN)
    picture = folder / "molecules.png"
    _draw(bags[chosen], y[chosen], bags.split(model.instance_proba(bags)), chosen, picture)
    decisive = int((model.instance_proba(bags) >= 0.5).sum())
    return [
        f"MUSK 1: {len(bags)} molecules (bags) in {bags.n_instances} shapes (instances); only molecules are labelled.",
        f"10-fold cross-validation: {np.mean(held_out == y):.1%} of the molecules classified correctly.",
        f"{decisive} of the {bags.n_instances} shapes are held responsible for a musky smell: see {picture}",
    ]


def objects(folder: Path, say: Callable[[str], None]) -> list[str]:
    """Find the objects in the embedded images, judge them by boxes drawn by eye, and write it all down.

    Parameters
    ----------
    folder : where the run folder ``run`` with its report and the contact sheet are written
    say : gets a line now and then

    Returns
    -------
    Lines that tell the result.
    """
    from bagwise.discovery.evaluation.kept import keep_evaluation
    from bagwise.discovery.evaluation.runs import evaluate_run, truth_of
    from bagwise.discovery.run.pipeline import discover
    from bagwise.discovery.sources.reading import read_source
    from bagwise.report import write_report
    from bagwise.report.contact_sheet import write_contact_sheet

    photos = load_demo_photos()
    run = discover(photos.root, folder / "run", snapshots=True, say=say)
    boxes = read_source(photos.truth)
    figures, truth = evaluate_run(run, boxes), truth_of(run, boxes)
    keep_evaluation(run, figures, truth)
    sheet = write_contact_sheet(run, folder / "contact-sheet.jpg", truth)
    corloc = figures["corloc"]["per-class"]
    by_class = ", ".join(f"{name} {rate['hits']} of {rate['of']}" for name, rate in corloc["groups"].items())
    return [
        f"Objects found in {len(run.images)} images that only say what they show: see {sheet}",
        f"CorLoc (share of images with the right box, per cent): {100 * corloc['mean']['value']:.0f} ({by_class})",
        f"The report: {write_report(run)}",
        f"Check and correct the boxes: bagwise review {folder / 'run'}",
    ]


def _first_of_each(y: NDArray, n: int) -> NDArray[np.int64]:
    return np.concatenate([np.flatnonzero(y == label)[: n // 2] for label in (1, 0)])


def _draw(bags: Bags, y: NDArray, proba: list[NDArray], chosen: NDArray[np.int64], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for position, (molecule, label) in enumerate(zip(chosen, y)):
        p = np.sort(proba[molecule])
        colour = "tab:orange" if label else "tab:blue"
        axes.scatter(np.full(len(p), position), p, s=30, alpha=0.7, color=colour, edgecolor="none")
    axes.axhline(0.5, color="grey", linewidth=1, linestyle="--")
    axes.axvline(len(chosen) / 2 - 0.5, color="grey", linewidth=1)
    axes.set_ylim(-0.05, 1.05)
    axes.set_xticks(range(len(chosen)), [str(i) for i in np.asarray(bags.ids)], fontsize=8)
    axes.set_xlabel("molecule (orange: musk, blue: not)")
    axes.set_ylabel("probability that this shape makes it musky")
    axes.set_title("A musk has at least one musky shape; the others have none")
    with replacing(path) as aside:
        figure.savefig(aside, dpi=130)
