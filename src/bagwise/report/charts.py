"""Line charts as inline SVG: they take the page's colours, so they are right in dark mode and on paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from bagwise.report.text import escape

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 40, 20, 12, 40
MARKERS = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True)
class Line:
    """A named curve; points are (x, y) with y from 0 to 1."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    ticks: Sequence[float],
    logarithmic: bool = False,
    diagonal: bool = False,
) -> str:
    """Curves of percentages.

    Parameters
    ----------
    lines : sequence of Line
    title : str
        What a screen reader says of the chart.
    x_label, y_label : str
    ticks : sequence of float
        Marks of the horizontal axis; its range is from the first to the last.
    logarithmic : bool
        Whether the horizontal axis is.
    diagonal : bool
        Draw the line from corner to corner.
    """
    scale = log10 if logarithmic else float
    first, last = scale(ticks[0]), scale(ticks[-1])

    def across(x: float) -> float:
        return round(LEFT + (scale(x) - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        *_axes(ticks, across, x_label, y_label),
    ]
    if diagonal:
        parts.append(f'<path class="diagonal" d="M{LEFT} {_down(0)}L{WIDTH - RIGHT} {_down(1)}"/>')
    for number, line in enumerate(lines):
        points = [(across(x), _down(y)) for x, y in line.points]
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        marks = "".join(_marker(number, x, y) for x, y in points)
        parts.append(f'<g class="series s{number % len(MARKERS)}"><path class="curve" d="{path}"/>{marks}</g>')
    return "".join([*parts, "</svg>", _legend(lines) if len(lines) > 1 else ""])


def histogram(counts: Sequence[int], *, title: str, x_label: str) -> str:
    """Bars of counts over ten equal parts of 0 to 100%."""
    width = (WIDTH - LEFT - RIGHT) / len(counts)
    most = max([*counts, 1])
    bars = "".join(
        f'<rect x="{LEFT + i * width + 1:.1f}" y="{_down(count / most):.1f}" width="{width - 2:.1f}" '
        f'height="{_down(0) - _down(count / most):.1f}"><title>{count}</title></rect>'
        for i, count in enumerate(counts)
    )
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    axis = "".join(
        _text(LEFT + tick * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM + 16, f"{tick:.0%}", "middle") for tick in ticks
    )
    top = _text(LEFT - 6, TOP + 8, f"{most}", "end") + _text(LEFT - 6, _down(0), "0", "end")
    label = _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle")
    base = f'<path class="axis" d="M{LEFT} {_down(0)}H{WIDTH - RIGHT}"/>'
    return (
        f'<svg class="chart bars" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{bars}{base}{axis}{top}{label}</svg>"
    )


def _down(y: float) -> float:
    return round(TOP + (1 - y) * (HEIGHT - TOP - BOTTOM), 1)


def _axes(ticks: Sequence[float], across, x_label: str, y_label: str) -> list[str]:  # type: ignore[no-untyped-def]
    parts = []
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        parts.append(f'<path class="grid" d="M{LEFT} {_down(share)}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 6, _down(share) + 4, f"{share:.0%}", "end"))
    for tick in ticks:
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 16, f"{tick:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{_down(0)}H{WIDTH - RIGHT}"/>')
    parts.append(f"<title>{escape(y_label)}</title>")
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _marker(number: int, x: float, y: float) -> str:
    """Each curve has its own shape, so that colour is not all that tells them apart."""
    shape = MARKERS[number % len(MARKERS)]
    if shape == "circle":
        return f'<circle cx="{x}" cy="{y}" r="3.5"/>'
    if shape == "square":
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
    if shape == "triangle":
        return f'<path d="M{x} {y - 4.5:.1f}l4 7.5h-8z"/>'
    return f'<path d="M{x} {y - 4.5:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5z"/>'


def _legend(lines: Sequence[Line]) -> str:
    items = "".join(
        f'<li><svg class="key" viewBox="0 0 24 12" aria-hidden="true"><g class="series s{i % len(MARKERS)}">'
        f'<path class="curve" d="M0 6H24"/>{_marker(i, 12, 6)}</g></svg>{escape(line.name)}</li>'
        for i, line in enumerate(lines)
    )
    return f'<ul class="legend">{items}</ul>'
