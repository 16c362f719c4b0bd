"""Charts as SVG text: no script, colours from the page's style sheet, the same bytes for the same figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from truekernel.audit.scores import Rate
from truekernel.report import wording

WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 14, 42
_ROW = 15
"""Height of a line of text."""
_LETTER = 6.3
"""Width of a letter, on the safe side."""
Point = tuple[float, float]


def interval_bar(rate: Rate, colour: int, *, largest: float = 1.0) -> Markup:
    """A bar with its interval as a whisker, as wide as its cell. `largest`: the share at the right edge."""
    if rate.value is None:
        return Markup("")
    ends = wording.shown(rate)
    width, low, high = (_share(v / largest) for v in (rate.value, ends.low, ends.high))
    return Markup(
        f'<svg class="bar" role="img" aria-label="{escape(wording.explained(rate))}"><title>{escape(wording.explained(rate))}</title>'
        f'<rect class="track" width="100%" height="14" y="4" rx="2"/>'
        f'<rect class="fill c{colour}" width="{width}" height="14" y="4" rx="2"/>'
        f'<line class="whisker" x1="{low}" x2="{high}" y1="11" y2="11"/>'
        f'<line class="whisker" x1="{low}" x2="{low}" y1="7" y2="15"/>'
        f'<line class="whisker" x1="{high}" x2="{high}" y1="7" y2="15"/></svg>'
    )


def stacked_bar(parts: Sequence[tuple[str, float, str]]) -> Markup:
    """One bar divided in parts: (name, amount, CSS class)."""
    total = sum(amount for _, amount, _ in parts) or 1
    pieces, at = [], 0.0
    for name, amount, css in parts:
        if amount > 0:
            label = escape(f"{name}: {wording.count(amount)}")
            pieces.append(
                f'<rect class="part {css}" x="{_share(at / total)}" width="{_share(amount / total)}" height="26"><title>{label}</title></rect>'
            )
            at += amount
    words = "; ".join(f"{name} {wording.count(amount)}" for name, amount, _ in parts)
    return Markup(f'<svg class="stack" role="img" aria-label="{escape(words)}">{"".join(pieces)}</svg>')


def range_bar(start: float, end: float, css: str, *, largest: float) -> Markup:
    """A bar between two shares, for steps from one figure to another."""
    low, high = sorted((start, end))
    return Markup(
        f'<svg class="bar" aria-hidden="true"><rect class="track" width="100%" height="14" y="4" rx="2"/>'
        f'<rect class="fill {css}" x="{_share(low / largest)}" width="{_share((high - low) / largest)}" height="14" y="4"/></svg>'
    )


@dataclass(frozen=True, slots=True)
class Series:
    """A line. `points`: (x, y, tooltip); `band`: (x, low, high); `labels`: texts written beside some of the points, by index."""

    name: str
    points: Sequence[tuple[float, float, str]]
    css: str
    band: Sequence[tuple[float, float, float]] = ()
    labels: Sequence[tuple[int, str]] = ()
    dots: bool = True


@dataclass(frozen=True, slots=True)
class XAxis:
    """Horizontal axis. `ticks`: (value, text)."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Pixel of a value."""
        low, high, x = (math.log10(v) if self.logarithmic else v for v in (self.low, self.high, value))
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (x - low) / ((high - low) or 1)


@dataclass(frozen=True, slots=True)
class YAxis:
    """Vertical axis of shares."""

    title: str
    low: float
    high: float
    top: float = _TOP
    """Pixel of the frame's upper edge."""

    def at(self, share: float) -> float:
        """Pixel of a share, kept inside the frame."""
        inside = min(max(share, self.low), self.high)
        return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - self.top) * (inside - self.low) / ((self.high - self.low) or 1)


def line_chart(
    label: str,
    x: XAxis,
    series: Sequence[Series],
    *,
    y_title: str,
    bottom: float = 0.0,
    top: float = 1.0,
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Lines over a common axis; the vertical axis holds shares from `bottom` to `top`. `marks`: vertical lines with a name above the frame, (x, name)."""
    out = [f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    y = YAxis(y_title, bottom, top, _TOP + _ROW * len(marks))
    out += _frame(x, y)
    out += _marks(marks, x)
    for line in series:
        out += _line(line, x, y)
    return Markup("".join([*out, "</svg>"]))


def _marks(marks: Sequence[tuple[float, str]], x: XAxis) -> list[str]:
    """Each name in a row of its own above the frame, beside the upper end of its line. The rightmost stands highest, so that a name that runs to the left
    meets no line; it runs to the right where the picture and the lines there leave room."""
    out = []
    right = float(WIDTH)
    for row, (value, name) in enumerate(sorted(marks, reverse=True)):
        at, base = x.at(value), _TOP + _ROW * row - 3
        width = 5 + _LETTER * len(name)
        rightwards = at + width <= right or at < width
        anchor, shift = ("start", 5) if rightwards else ("end", -5)
        right = at
        out.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{base - 8}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<text class="marktext" x="{at + shift:.1f}" y="{base}" text-anchor="{anchor}">{escape(name)}</text>'
        )
    return out


def _frame(x: XAxis, y: YAxis) -> list[str]:
    base = HEIGHT - _BOTTOM
    out = []
    for step in range(5):
        share = y.low + (y.high - y.low) * step / 4
        at = y.at(share)
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        digits = 0 if y.high - y.low >= 0.2 else 1
        out.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{share * 100:.{digits}f}%</text>'
        )
    for value, text in x.ticks:
        at = x.at(value)
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{base}" y2="{base + 4}"/>')
        out.append(f'<text class="tick" x="{at:.1f}" y="{base + 17}" text-anchor="middle">{escape(text)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    out.append(f'<text class="axis" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x.title)}</text>')
    out.append(
        f'<text class="axis" transform="translate(12 {(base + y.top) / 2:.1f}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'
    )
    return out


def _line(line: Series, x: XAxis, y: YAxis) -> list[str]:
    out = []
    if line.band:
        upper = [f"{x.at(v):.1f},{y.at(high):.1f}" for v, _, high in line.band]
        lower = [f"{x.at(v):.1f},{y.at(low):.1f}" for v, low, _ in reversed(line.band)]
        out.append(f'<polygon class="band {line.css}" points="{" ".join(upper + lower)}"/>')
    path = " ".join(f"{x.at(v):.1f},{y.at(share):.1f}" for v, share, _ in line.points)
    out.append(f'<polyline class="line {line.css}" points="{path}"><title>{escape(line.name)}</title></polyline>')
    if line.dots:
        for value, share, text in line.points:
            out.append(
                f'<circle class="dot {line.css}" cx="{x.at(value):.1f}" cy="{y.at(share):.1f}" r="2.6"><title>{escape(text)}</title></circle>'
            )
    return out + _labels(line, [(x.at(v), y.at(share)) for v, share, _ in line.points])


def _labels(line: Series, points: Sequence[Point]) -> list[str]:
    """Names beside points, where they meet neither the line nor each other as far as there is room."""
    out: list[str] = []
    ink = [point for ends in pairwise(points) for point in _between(*ends)]
    for index, text in sorted(line.labels, key=lambda label: points[label[0]][1]):
        at, height = points[index]
        width = _LETTER * len(text)
        places = [(at + 7, height + 14 + 13 * step) for step in range(6)] + [(at + 7, height - 6)]
        places += [(at - 7 - width, height + 14), (at - 7 - width, height - 6)]
        left, base = min(places, key=lambda place: sum(_covers(place, width, point) for point in ink))
        ink += [(left + width * i / 8, base - 4) for i in range(9)]
        out.append(f'<text class="marktext" x="{left:.1f}" y="{base:.1f}">{escape(text)}</text>')
    return out


def _between(start: Point, end: Point) -> list[Point]:
    """Points along a segment, at most two pixels apart."""
    steps = max(1, math.ceil(math.dist(start, end) / 2))
    return [
        (start[0] + (end[0] - start[0]) * i / steps, start[1] + (end[1] - start[1]) * i / steps)
        for i in range(steps + 1)
    ]


def _covers(place: Point, width: float, point: Point) -> bool:
    """Whether a text of one line that begins at `place` (left end of its base line) lies over a point, or nearly so."""
    return place[0] - 3 <= point[0] <= place[0] + width + 2 and place[1] - 12 <= point[1] <= place[1] + 5


def _share(value: float) -> str:
    return f"{min(max(value, 0.0), 1.0) * 100:.2f}%"
