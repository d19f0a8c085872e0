"""What a run found, in a few lines for a person."""

import numpy as np
import pyarrow.compute as pc

from .runfolder import RunFolder

PROBLEMS_SHOWN = 10


def summary(run: RunFolder) -> str:
    """A table of the classes, then what was left out, then how long it took."""
    width = max(len("class"), *(len(label) for label in run.classes))
    lines = [f"{'class':{width}}  photographs  objects  confidence"]
    objects = run.boxes.filter(pc.equal(run.boxes["kind"], "object"))
    labels = np.array(objects["label"].to_pylist(), dtype=object)
    confidence, image = objects["confidence"].to_numpy(), objects["image_id"].to_numpy()
    for label in run.classes:
        rows = labels == label
        mean = f"{confidence[rows].mean():10.2f}" if rows.any() else f"{'-':>10}"
        lines.append(f"{label:{width}}  {len(np.unique(image[rows])):11d}  {int(rows.sum()):7d}  {mean}")
    problems = run.manifest["problems"]
    if problems:
        lines.append(f"left out ({len(problems)}):")
        lines += [f"  {problem['file']}: {problem['reason']}" for problem in problems[:PROBLEMS_SHOWN]]
        if len(problems) > PROBLEMS_SHOWN:
            lines.append(f"  and {len(problems) - PROBLEMS_SHOWN} more, in {run.path / 'manifest.json'}")
    timings = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in run.manifest["timings"].items())
    lines.append(f"{run.path}: {len(run.images)} photographs; {timings}")
    return "\n".join(lines)
