"""Plain words: what a scikit-learn reader would stumble over does not occur in the documentation or the source.

Only text that people read is looked at: pages, and in the source the docstrings, comments and messages.
"""

import io
import re
import tokenize
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, name

# What must not occur, and what to write.
WORDS = {
    r"photograph": "image",
    r"\blearnt\b": "learned",
    r"\b(?:goes|went|going) on\b": "resumes, continues",
    r"\bas (?:they come|it comes)\b": "with default settings",
    r"\bby heart\b": "say what is memorised",
    r"\ban eye on\b": "say what the page holds",
    r"\bdearer\b": "takes longer, costs more",
    r"\bwhilst\b|\bthereof\b|\bhitherto\b": "a common word",
    r"; gives? (?:the|those|a)\b": "return",
    r"\b(?:call|function|method|layer|seed|fit|index) gives\b": "returns",
}
# "learnt" is a key of a run's manifest, a format.
KEYS = re.compile(r"""["']learnt["']""")
TOKENS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
TEXTS = [page for page in (*PAGES, ROOT / "CONTRIBUTING.md") if "results" not in page.relative_to(ROOT).parts]
SOURCES = [
    path
    for folder in ("src", "examples", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".html", ".js")
]


def odd_words(text: str) -> list[str]:
    """What should be said otherwise."""
    text = KEYS.sub("", text)
    return [
        f"{match.group()!r}: write {better}"
        for word, better in WORDS.items()
        for match in re.finditer(word, text, re.IGNORECASE)
    ]


def readable(path: Path) -> str:
    """Docstrings, comments and messages of a Python file; all of any other."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type in TOKENS)


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_pages(page):
    assert not odd_words(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_sources(path):
    assert not odd_words(readable(path))


def test_odd_words_are_noticed():
    assert odd_words("instances told apart by heart") == ["'by heart': write say what is memorised"]
    assert odd_words("The run goes on with the learnt models")
    assert not odd_words('manifest["learnt"]')
