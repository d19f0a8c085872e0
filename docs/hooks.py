"""What the site is built with beside plain Markdown.

Formulas become MathML, which browsers show without a script and without a network. A table that no command has written
yet is said to be missing, where the page would include it.
"""

import html
import re
from pathlib import Path

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
INCLUDED = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
MISSING = '!!! note "Not measured yet"\n    The command above makes this table.\n'


def on_page_markdown(markdown: str, **_: object) -> str:
    """Say which included files are not there."""
    return INCLUDED.sub(lambda match: match.group(0) if Path(match.group(1)).is_file() else MISSING, markdown)


def on_page_content(content: str, **_: object) -> str:
    """Replace every formula of a page."""

    def mathml(match: re.Match[str]) -> str:
        display = "block" if match.group(1) == "div" else "inline"
        return convert(html.unescape(match.group(2)), display=display)

    return FORMULA.sub(mathml, content)
