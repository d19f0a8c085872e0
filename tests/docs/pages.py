"""The pages of the documentation and the blocks of code in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|bash|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (bagwise .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Python, commands that can be run (bash), or commands that are only shown (console)."""

    kind: str
    text: str
    line: int

    def commands(self) -> Iterator[list[str]]:
        """The bagwise commands of a shell block, as words."""
        for line in self.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "bagwise":
                yield words[1:]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [Block(m.group(1), m.group(2), text[: m.start(2)].count("\n")) for m in BLOCK.finditer(text)]


def shown_commands(page: Path) -> list[list[str]]:
    """Every bagwise command of a page: in shell blocks, and in indented ones."""
    fenced = [words for block in blocks(page) if block.kind != "python" for words in block.commands()]
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return fenced + [shlex.split(match.group(1), comments=True)[1:] for match in INDENTED.finditer(prose)]


def name(page: Path) -> str:
    """A page's name in test ids."""
    return str(page.relative_to(ROOT))
