"""Labelled images from folders, tables, COCO and VOC files."""
