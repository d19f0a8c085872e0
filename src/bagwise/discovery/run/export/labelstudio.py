"""Label Studio: tasks with predictions, in per cent of the image, to be imported and corrected there."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from shlex import quote as shell_quote
from typing import Any
from urllib.parse import quote

from bagwise._utils.atomic import write_text
from bagwise.discovery.run.export.collect import ExportImage
from bagwise.discovery.run.folder import RunFolder


def write_label_studio(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``tasks.json`` and the labelling interface ``config.xml``."""
    root = run.source_root.resolve()
    tasks = [_task(image, root.name, f"bagwise {run.manifest['bagwise']}") for image in images]
    write_text(folder / "tasks.json", json.dumps(tasks, ensure_ascii=False))
    write_text(folder / "config.xml", _config(run.classes))
    return [
        "start Label Studio so that it may serve the images from this disk:",
        "  export LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true",
        f"  export LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={shell_quote(str(root.parent))}",
        "  label-studio start",
        f"in the new project: Settings > Labeling Interface > Code: paste {target / 'config.xml'}",
        f"  Settings > Cloud Storage > Add Source Storage > Local files, absolute path {root} (no need to sync)",
        f"  Import: {target / 'tasks.json'}",
    ]


def _task(image: ExportImage, root: str, model: str) -> dict[str, Any]:
    results = []
    percent = (100 * image.boxes / [image.width, image.height, image.width, image.height]).round(4).tolist()
    for number, (name, (x1, y1, x2, y2)) in enumerate(zip(image.names, percent, strict=True)):
        results.append(
            {
                "id": f"{image.image_id}-{number}",
                "type": "rectanglelabels",
                "from_name": "label",
                "to_name": "image",
                "original_width": image.width,
                "original_height": image.height,
                "image_rotation": 0,
                "score": round(float(image.confidence[number]), 6),
                "value": {
                    "x": x1,
                    "y": y1,
                    "width": round(x2 - x1, 4),
                    "height": round(y2 - y1, 4),
                    "rotation": 0,
                    "rectanglelabels": [name],
                },
            }
        )
    for number, (name, outlines) in enumerate(zip(image.names, image.polygons(), strict=True)):
        for part, outline in enumerate(outlines):
            results.append(
                {
                    "id": f"{image.image_id}-{number}-mask-{part}",
                    "type": "polygonlabels",
                    "from_name": "mask",
                    "to_name": "image",
                    "original_width": image.width,
                    "original_height": image.height,
                    "image_rotation": 0,
                    "score": round(float(image.confidence[number]), 6),
                    "value": {
                        "points": (100 * outline / [image.width, image.height]).clip(0, 100).round(4).tolist(),
                        "closed": True,
                        "polygonlabels": [name],
                    },
                }
            )
    # The prediction's own score orders tasks in active learning; the weakest object is what needs a look.
    score = round(float(min(image.confidence, default=0.0)), 6)
    return {
        "data": {"image": f"/data/local-files/?d={quote(f'{root}/{image.file}')}", "file": image.file},
        "predictions": [{"model_version": model, "score": score, "result": results}],
    }


def _config(classes: list[str]) -> str:
    view = ET.Element("View")
    ET.SubElement(view, "Image", name="image", value="$image", zoom="true")
    for kind, name in (("RectangleLabels", "label"), ("PolygonLabels", "mask")):
        labels = ET.SubElement(view, kind, name=name, toName="image")
        for label in classes:
            ET.SubElement(labels, "Label", value=label)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"
