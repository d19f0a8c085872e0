"""Pictures for the page: made on demand, upright, never larger than a screen needs.

Everything is decoded and encoded again, so that a file which is not a picture can never be fetched through the page.
"""

import io
import os
import threading
from collections import OrderedDict
from pathlib import Path

from bagwise._utils.atomic import replacing
from bagwise._utils.optional import require
from bagwise.discovery.run.folder import RunFolder
from bagwise.discovery.sources.images import FORMATS, LARGEST_AREA, ImageError, read_image

THUMBNAIL_SIDE = 192
DISPLAY_SIDE = 1920
KEPT_IN_MEMORY = 48


class Pictures:
    """The images of a run as JPEG bytes in two sizes.

    Thumbnails are kept on disk under the run folder, display sizes in memory (the most recent ones).
    """

    def __init__(self, run: RunFolder, cache: Path):
        self._run = run
        self._root = run.source_root.resolve()
        self._files: list[str] = run.images["file"].to_pylist()
        self._cache = cache
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def path(self, image_id: int) -> Path:
        """The image's own file, after following links; one outside of the run's source folder is refused."""
        if not 1 <= image_id <= len(self._files):
            raise ImageError(f"this run has no image {image_id}")
        file = self._files[image_id - 1]
        path = self._run.image_path(file).resolve()
        if not path.is_relative_to(self._root):
            raise ImageError(f"{file} leads out of the run's image folder")
        return path

    def thumbnail(self, image_id: int) -> bytes:
        path = self.path(image_id)
        kept = self._cache / f"{image_id}.jpg"
        # A thumbnail carries its image's own time: with its own it would look fresh after a clock was set back.
        changed = path.stat().st_mtime_ns if path.exists() else 0
        if kept.exists() and kept.stat().st_mtime_ns == changed:
            return kept.read_bytes()
        data = render(path, THUMBNAIL_SIDE, quality=80)  # says so when the image is gone
        with replacing(kept) as aside:  # two requests may race: each writes its own, and the renames are whole
            aside.write_bytes(data)
            os.utime(aside, ns=(changed, changed))
        return data

    def display(self, image_id: int) -> bytes:
        with self._lock:
            if image_id in self._recent:
                self._recent.move_to_end(image_id)
                return self._recent[image_id]
        data = render(self.path(image_id), DISPLAY_SIDE, quality=90)
        with self._lock:
            self._recent[image_id] = data
            while len(self._recent) > KEPT_IN_MEMORY:
                self._recent.popitem(last=False)
        return data


def render(path: Path, side: int, *, quality: int) -> bytes:
    """JPEG of an image, upright, its longer side at most ``side`` pixels."""
    pil = require("PIL.Image", extra="vision")
    ops = require("PIL.ImageOps", extra="vision")
    image = None
    try:
        with pil.open(path, formats=FORMATS) as file:
            plain_jpeg = file.format == "JPEG" and file.mode in ("RGB", "L")
            if plain_jpeg and file.width * file.height <= LARGEST_AREA:
                # A JPEG can be decoded at an eighth of its size, which is many times faster for a large one.
                file.draft("RGB", (side, side))
                image = ops.exif_transpose(file).convert("RGB")
    except (OSError, pil.DecompressionBombError):
        image = None  # read_image below says in one sentence what is wrong
    if image is None:
        image = pil.fromarray(read_image(path))
    image.thumbnail((side, side), pil.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
