"""Tables of the report."""

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], text: bool = False) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f'<div class="scroll"><table{" class=text" if text else ""}>{top}<tbody>{body}</tbody></table></div>'
