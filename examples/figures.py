"""What the examples share: where their figures go, and the colours."""

import argparse
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
POSITIVE, NEGATIVE = "#d1603d", "#4f7cac"
HEAT = "YlOrRd"


def command_line(description: str, **numbers: int) -> argparse.Namespace:
    """The folder for the figure, by default that of the documentation's gallery, and numbers with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=GALLERY, help="folder for the figure")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def output_folder(description: str) -> Path:
    """The folder for the figure."""
    return command_line(description).output


def save(figure: Figure, path: Path, colours: int = 128) -> None:
    """Write a figure with few colours, so that it is small enough to be kept with the documentation."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(colours).save(path, optimize=True)
    print(f"written to {path}")
