"""Read a YOLO export with Ultralytics' own loader: prints [[file name, label, [x1, y1, x2, y2]]]."""

import json
import sys
from pathlib import Path

from ultralytics.data.dataset import YOLODataset
from ultralytics.data.utils import check_det_dataset

data = check_det_dataset(sys.argv[1], autodownload=False)
rows = []
for part in ("train", "val"):
    for item in YOLODataset(img_path=str(data[part]), data=data, augment=False, task="detect", imgsz=320).labels:
        height, width = item["shape"]
        for number, (x, y, w, h) in zip(item["cls"].ravel(), item["bboxes"].astype(float)):
            box = [(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height]
            rows.append([Path(item["im_file"]).name, data["names"][int(number)], box])
print(json.dumps(rows))
