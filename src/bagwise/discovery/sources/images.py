"""Images from disk, in one form: RGB, 8 bits, upright."""

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bagwise._utils.optional import require

HEIC = frozenset({".heic", ".heif"})  # what telephones write; read where pillow-heif is installed
# What counts as an image by its name. A GIF is none that is read, but it is named rather than passed over.
EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"}) | HEIC
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
SMALLEST_SIDE = 8  # pixels; below this there is nothing to find
LARGEST_AREA = 150_000_000  # pixels; a file that unpacks to more is taken for an attack


class ImageError(ValueError):
    """A image that cannot be used; the message is one sentence that says why."""


def read_image(path: str | Path) -> np.ndarray:
    """Read an image as it would be looked at.

    Parameters
    ----------
    path : path
        JPEG, PNG, WebP, BMP or TIFF, and HEIC where the extra ``heic`` is installed; grey, palette, alpha, CMYK
        or 16 bits.

    Returns
    -------
    uint8 array (height, width, 3)
        RGB, turned as its EXIF orientation says; transparent parts on white.

    Raises
    ------
    ImageError
        When the file is missing, empty, cut short, not an image, too small or dangerously large.
    """
    pil = require("PIL.Image", extra="vision")
    ops = require("PIL.ImageOps", extra="vision")
    path = Path(path)
    try:
        if path.stat().st_size == 0:
            raise ImageError(f"{path.name} is empty (zero bytes)")
        # Pillow warns about half the size it refuses, and about odd metadata; our own limit is below.
        with PILLOW_IGNORED, pil.open(path, formats=_formats(path)) as image:
            _check_size(path, *image.size)
            rgb = _to_rgb(ops.exif_transpose(image))
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{path.name} does not exist") from None
    except pil.DecompressionBombError:
        raise ImageError(f"{path.name} unpacks to too many pixels to be an image") from None
    except pil.UnidentifiedImageError:
        raise ImageError(f"{path.name} is not a JPEG, PNG, WebP, BMP or TIFF image") from None
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, RuntimeError) as error:
        # Pillow's decoders report damage through all of these.
        raise ImageError(f"{path.name} cannot be read: {str(error) or type(error).__name__}") from error
    return rgb


class _PillowIgnored:
    """Pillow's warnings are ignored while any thread reads an image; all others are heard.

    `warnings.catch_warnings` changes the filters of the whole process: of two threads inside it, the one that leaves
    last would bring back what the other had set, and the user would hear no warning any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._before = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._readers == 0:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.filterwarnings("ignore", module=r"(PIL|pillow_heif)\b")
            self._readers += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self._before.__exit__(None, None, None)


PILLOW_IGNORED = _PillowIgnored()


def _formats(path: Path) -> tuple[str, ...]:
    """What the file may be; an error for a kind that is known but not read."""
    kind = path.suffix.lower()
    if kind == ".gif":
        raise ImageError(f"{path.name} is a GIF, which may be a film and is not read: save it as PNG")
    if kind not in HEIC:
        return FORMATS
    try:
        from pillow_heif import register_heif_opener
    except ModuleNotFoundError:
        raise ImageError(f"{path.name} is a HEIC image: pip install 'bagwise[heic]' to read it") from None
    register_heif_opener()
    return (*FORMATS, "HEIF")


def _check_size(path: Path, width: int, height: int) -> None:
    if min(width, height) < SMALLEST_SIDE:
        raise ImageError(f"{path.name} is too small ({width} x {height}; at least {SMALLEST_SIDE} pixels a side)")
    if width * height > LARGEST_AREA:
        raise ImageError(f"{path.name} is too large ({width} x {height} pixels)")


def _to_rgb(image: Any) -> np.ndarray:
    """Any mode of Pillow's to uint8 (height, width, 3)."""
    if image.mode == "F" or image.mode.startswith("I"):
        grey = _to_bytes(np.asarray(image, dtype=np.float32))
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        pil = require("PIL.Image", extra="vision")
        white = pil.new("RGBA", image.size, "white")
        image = pil.alpha_composite(white, image)
    return np.array(image.convert("RGB"))


def _to_bytes(values: np.ndarray) -> np.ndarray:
    """Grey values of unknown range: 16 bits, 8 bits or fractions of one, told apart by the largest."""
    largest = float(np.nanmax(values, initial=0.0))
    scale = 255.0 if largest <= 1 else 1.0 if largest <= 255 else 255.0 / 65535.0
    return np.clip(np.nan_to_num(values) * scale, 0, 255).astype(np.uint8)
