"""COCO: one JSON file; ids from 1, file names relative to the images' folder, scores kept."""

import json
from pathlib import Path
from typing import Any

from bagwise._utils.atomic import write_text
from bagwise._utils.words import counted
from bagwise.discovery.run.export.collect import ExportImage
from bagwise.discovery.run.export.polygons import area_of
from bagwise.discovery.run.folder import RunFolder


def write_coco(run: RunFolder, images: list[ExportImage], folder: Path, target: Path) -> list[str]:
    """Write ``annotations.json``; image ids are those of the run, category ids the positions of its classes from 1.

    Sizes and boxes are those of the upright image, as its EXIF orientation says. Masks are polygons, because not every
    reader of COCO knows run lengths for objects that are no crowd.
    """
    category = {label: number for number, label in enumerate(run.classes, start=1)}
    annotations: list[dict[str, Any]] = []
    for image in images:
        objects = zip(image.names, image.boxes.tolist(), image.confidence, image.polygons(), strict=True)
        for name, (x1, y1, x2, y2), score, outlines in objects:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image.image_id,
                    "category_id": category[name],
                    "bbox": [round(value, 2) for value in (x1, y1, x2 - x1, y2 - y1)],
                    "area": round(sum(map(area_of, outlines)) or (x2 - x1) * (y2 - y1), 2),
                    "segmentation": [outline.round(2).ravel().tolist() for outline in outlines],
                    "iscrowd": 0,
                    "score": round(float(score), 6),
                }
            )
    document = {
        "info": {
            "description": "Objects found from image-level labels",
            "contributor": f"bagwise {run.manifest['bagwise']}",
            "date_created": run.manifest["created"],
        },
        "licenses": [],
        "images": [
            {"id": image.image_id, "file_name": image.file, "width": image.width, "height": image.height}
            for image in images
        ],
        "annotations": annotations,
        "categories": [{"id": number, "name": label, "supercategory": ""} for label, number in category.items()],
    }
    write_text(folder / "annotations.json", json.dumps(document, ensure_ascii=False))
    notes = [f"file names in {target / 'annotations.json'} are relative to {run.source_root.resolve()}"]
    bare = sum(image.lacks_a_box for image in images)
    if bare:
        notes.append(f"{counted(bare, 'image')} with a label but no box for it: training would take it for background")
    return notes
