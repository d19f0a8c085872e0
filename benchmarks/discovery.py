"""Object discovery on PASCAL VOC 2007: CorLoc of several methods on the same boxes and features, and their time.

    python benchmarks/discovery.py VOC_ROOT -o FOLDER [--split train] [--methods RMISVC MultiFoldSVC edge-boxes]
    python benchmarks/discovery.py VOC_ROOT -o FOLDER --ablation

Prints one table, class by class beside the paper's table 5, and writes FOLDER/discovery.json. The first run extracts
boxes and features; those that need no others share them. The ablation leaves out one step after the other.
"""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from bagwise._utils.atomic import write_text
from bagwise.discovery.evaluation.runs import evaluate_run
from bagwise.discovery.evaluation.tables import PUBLISHED_CLASSES, PUBLISHED_MEANS
from bagwise.discovery.learning.ranking import Ranking
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.run.pipeline import discover
from bagwise.discovery.run.settings import Settings
from bagwise.discovery.sources.reading import ImageSet, read_source

METHODS = ("RMISVC", "MultiFoldSVC", "edge-boxes")


def ablation() -> dict[str, Settings]:
    """The default, then one step less each time."""
    steps = {"default": Settings()}
    steps["no figure"] = replace(steps["default"], figure=False)
    without = steps["no figure"]
    steps["no evidence"] = replace(without, recipe=replace(without.recipe, ranking=Ranking.none()))
    steps["one scale"] = replace(steps["no evidence"], short_sides=(600,))
    steps["no competition"] = replace(steps["one scale"], rivalry=False)
    plain = steps["no competition"]
    steps["no refit"] = replace(plain, recipe=replace(plain.recipe, refit=False))
    steps["no contrast"] = replace(steps["no refit"], contrast=0.0)
    bare = steps["no contrast"]
    steps["no objectness"] = replace(bare, recipe=replace(bare.recipe, prior_weight=0.0))
    return steps


def content(settings: Settings) -> tuple[Any, ...]:
    """What the runs of this benchmark may differ in that changes the features."""
    return settings.figure, settings.short_sides, settings.contrast


def run_settings(source: Path, split: str, run: Path, settings: Settings, stores: dict[Any, Path]) -> RunFolder:
    """One run; hard links to the shards of an earlier one with the same features stand in for its own."""
    store = stores.get(content(settings))
    if store is not None and not (run / "store").exists():
        shutil.copytree(store, run / "store", copy_function=_link)
    return discover(source, run, split=split, settings=settings, say=lambda text: print(f"{run.name}: {text}"))


def _link(original: str, copy: str) -> None:
    Path(copy).hardlink_to(original)


def measure(run: RunFolder, truth: ImageSet) -> dict[str, Any]:
    """CorLoc in percent, mean and per class, and what the run cost."""
    rates = evaluate_run(run, truth, name="classes")["corloc"]
    corloc = rates["per-class"]
    disk = sum(file.stat().st_size for file in run.store_path.rglob("*") if file.is_file())
    return {
        "mean": round(100 * corloc["mean"]["value"], 2),
        "tight": round(100 * rates["per-class, IoU > .7"]["mean"]["value"], 2),
        "classes": {label: round(100 * rate["value"], 2) for label, rate in corloc["groups"].items()},
        "timings": run.manifest["timings"],
        "peak_memory_mb": run.manifest.get("peak_memory_mb"),
        "megabytes_per_image": round(disk / 1e6 / len(run.images), 4),
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    """Classes down, methods across."""
    lines = ["| class | paper | " + " | ".join(results) + " |", "| --- |" + " --- |" * (1 + len(results))]
    labels = next(iter(results.values()))["classes"]
    for label in labels:
        published = PUBLISHED_CLASSES.get(label)
        cells = [f"{published:.1f}" if published is not None else ""]
        cells += [f"{result['classes'][label]:.1f}" for result in results.values()]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    means = " | ".join(f"{result['mean']:.1f}" for result in results.values())
    lines.append(f"| mean | {PUBLISHED_MEANS['RMI-SVM']} | {means} |")
    tight = " | ".join(f"{result['tight']:.1f}" for result in results.values())
    lines.append(f"| mean at IoU > .7 | | {tight} |")
    seconds = " | ".join(f"{result['timings']['learning']:.0f}" for result in results.values())
    lines.append(f"| learning, seconds | 2100 | {seconds} |")
    return "\n".join(lines)


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--split", default="train")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--ablation", action="store_true")
    options = parser.parse_args()
    runs = ablation() if options.ablation else {name: Settings().changed(method=name) for name in options.methods}
    truth = read_source(options.source, split=options.split)
    results: dict[str, dict[str, Any]] = {}
    stores: dict[Any, Path] = {}
    for name, settings in runs.items():
        run = run_settings(options.source, options.split, options.output / name, settings, stores)
        stores.setdefault(content(settings), run.store_path)
        results[name] = measure(run, truth)
        write_text(options.output / "discovery.json", json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
