"""Read Label Studio tasks with its own SDK: ``python label_studio.py FOLDER`` prints what it makes of them."""

import json
import sys
from pathlib import Path

from label_studio_sdk.label_interface import LabelInterface

folder = Path(sys.argv[1])
interface = LabelInterface((folder / "config.xml").read_text(encoding="utf-8"))
interface.validate()
tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
errors, regions = [], 0
for task in tasks:
    if not interface.validate_task({"data": task["data"]}):
        errors.append(f"task refused: {task['data']}")
    for prediction in task["predictions"]:
        regions += len(prediction["result"])
        said = interface.validate_prediction(prediction, return_errors=True)
        errors += said if isinstance(said, list) else [] if said else [f"prediction refused: {task['data']}"]
print(json.dumps({"tasks": len(tasks), "regions": regions, "errors": errors}))
