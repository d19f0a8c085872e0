"""Hugging Face's image folders: ``metadata.csv`` or ``metadata.jsonl`` beside the images, with a ``file_name``."""

from pathlib import Path

from bagwise.discovery.sources.rows import Rows
from bagwise.discovery.sources.tables import JSON_LINES, json_rows, text_rows

NAMES = ("metadata.csv", "metadata.jsonl")
FILE_NAME = "file_name"


def find_metadata(root: Path, split: str | None) -> Path | None:
    """The metadata of an image folder: of the split's folder, or of the folder itself, or of its only part.

    A file of that name without the column ``file_name`` is something else.
    """
    folders = [root / split] if split else [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    files = [folder / name for folder in folders for name in NAMES if (folder / name).is_file()]
    files = [file for file in files if FILE_NAME in metadata_rows(file).columns]
    if len(files) > 1 and files[0].parent != root:
        splits = ", ".join(file.parent.name for file in files)
        raise ValueError(f"{root} has {len(files)} metadata files: choose one with --split ({splits})")
    return files[0] if files else None


def metadata_rows(file: Path) -> Rows:
    """The rows of a metadata file."""
    return json_rows(file) if file.suffix.lower() in JSON_LINES else text_rows(file)
