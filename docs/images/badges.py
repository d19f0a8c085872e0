"""Badges of the README, true without a network: licence, Python versions and the coverage that CI insists on.

.venv/bin/python docs/images/badges.py

They are made from pyproject.toml and .ci/run; a test compares the committed files with what this makes.
"""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#37474f"/>
<path d="M{left} 0h{right_less_corner}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right_less_corner}z" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left_middle}" y="14">{name}</text><text x="{right_middle}" y="14">{value}</text>
</g>
</svg>
"""


def badge(name: str, value: str, colour: str) -> str:
    """A name on dark ground and a value on coloured ground, as wide as they need."""
    left, right = (round(6.7 * len(text)) + 12 for text in (name, value))
    return BADGE.format(
        name=name, value=value, colour=colour, left=left, width=left + right, right_less_corner=right - 3,
        left_middle=left / 2, right_middle=left + right / 2,
    )  # fmt: skip


def badges() -> dict[str, str]:
    """File names and contents."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    least = re.search(r"test COVERAGE=(\d+)", (ROOT / ".ci" / "run").read_text())
    if least is None:
        raise SystemExit(".ci/run no longer says how much coverage it wants")
    return {
        "licence.svg": badge("licence", project["license"], "#1565c0"),
        "python.svg": badge("Python", " | ".join(versions), "#1565c0"),
        "coverage.svg": badge("coverage", f"at least {least.group(1)}%", "#2e7d32"),
    }


if __name__ == "__main__":
    for name, text in badges().items():
        (HERE / name).write_text(text)
        print(HERE / name)
