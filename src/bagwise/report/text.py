"""Names from files as HTML: markup is text, and marks that nobody sees are shown."""

import html

from bagwise._utils.words import visible


def escape(text: str) -> str:
    """HTML that shows the text as it is, with hidden marks as ⟨U+202E⟩."""
    return html.escape(visible(text))
