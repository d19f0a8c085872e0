"""Read an export with datumaro: ``python datumaro_boxes.py FOLDER FORMAT`` prints [[id, label, [x1, y1, x2, y2]]]."""

import json
import sys

from datumaro.components.annotation import AnnotationType
from datumaro.components.dataset import Dataset

folder, name = sys.argv[1:]
data = Dataset.import_from(folder, {"coco": "coco_instances", "voc": "voc", "yolo": "yolo"}[name])
labels = data.categories()[AnnotationType.label]
rows = {
    (item.id, labels[box.label].name, tuple(box.points))
    for item in data
    for box in item.annotations
    if box.type == AnnotationType.bbox
}
print(json.dumps(sorted(rows)))
