"""Plain tables that fit the terminal: names are laid out more narrowly, then columns are left out, but no word is ever broken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table
from rich.text import Text

_SCALED = " (scaled)"
_BREAKS = re.compile(r"(?<=.)(?=[@-])|(?<=[:./_]) ?(?=.)| (?=.)")
"""Where a name may be broken in a heading: before "@" and "-", after ":", ".", "/" and "_", at blanks."""
_PART = 12
"""A heading's lines are filled up to so many letters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Heading and cells, both with line breaks where they have several lines. `spare`: columns with a higher number are left out first; 0 is always kept."""

    heading: str
    cells: Sequence[str]
    spare: int = 0
    number: bool = True
    style: str = ""

    @property
    def width(self) -> int:
        """Letters of the longest line."""
        return max(len(line) for text in (self.heading, *self.cells) for line in (text.split("\n")))


def needed(columns: Sequence[Column]) -> int:
    """Letters that a table of these columns takes."""
    return sum(column.width for column in columns) + len(columns) - 1


def kept(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that are left when those that are spared first are left out until the rest fits, or nothing more can be."""
    left = list(columns)
    while needed(left) > width and (most := max(column.spare for column in left)):
        left.remove(next(column for column in left if column.spare == most))
    return left


def parts(left: Sequence[Column], rest: Sequence[Column], width: int) -> list[list[Column]]:
    """The columns of several tables that fit, each with the `left` ones before as many of the rest as there is room for, one at least."""
    made: list[list[Column]] = []
    for column in rest:
        if not made or needed([*made[-1], column]) > width:
            made.append([*left])
        made[-1].append(column)
    return made


def table(title: str, columns: Sequence[Column]) -> Table:
    """A table without lines, as wide as its words."""
    made = Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.number else "left"
        made.add_column(column.heading, justify=justify, no_wrap=True, style=column.style)
    for cells in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*(Text(cell) for cell in cells))
    return made


def two_lines(title: str) -> str:
    """A checker's title with "(scaled)" on a line of its own."""
    return title.replace(_SCALED, _SCALED.replace(" ", "\n"))


def narrow(title: str) -> str:
    """A checker's title on short lines, broken between the parts of its name alone."""
    lines = [""]
    for part in _BREAKS.split(title):
        if lines[-1] and len(lines[-1]) + len(part) > _PART:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def letters(titles: Sequence[str]) -> list[str]:
    """A, B, C, ... for titles that are too long for a heading."""
    return [chr(ord("A") + i) if i < 26 else str(i) for i in range(len(titles))]
