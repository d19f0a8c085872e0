"""What the examples share: where their figures go, and the colours."""

import argparse
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
POSITIVE, NEGATIVE = "#d1603d", "#4f7cac"
HEAT = "YlOrRd"


def output_folder(description: str) -> Path:
    """The folder that the command line names; by default that of the documentation's gallery."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=GALLERY, help="folder for the figure")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save(figure: Figure, path: Path) -> None:
    """Write a figure with few colours, so that it is small enough to be kept with the documentation."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(128).save(path, optimize=True)
    print(f"written to {path}")
