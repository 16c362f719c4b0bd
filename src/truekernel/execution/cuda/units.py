"""Several sources as one translation unit, each in a namespace of its own: a compilation has a fixed cost, and a module a cost to load.

Machine code is what it would be alone: kernels are compiled one by one, and names do not count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from truekernel.execution.cuda.machine_code import Variable

TOGETHER = 12
"""Sources of a unit. More gains little, and makes a failure dearer."""
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)[^\n]*(?:(?<=\\)\n[^\n]*)*", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)")
_NUMBER = 8
"""Bytes of the largest number."""
_HARMLESS = ("include", "define", "undef", "pragma", "unroll")
_GLOBAL = re.compile(r'extern\s*"C"|__constant__|\bnamespace\s+(?:std|cuda)\b')


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit; `starts`: the line at which each source's part begins."""

    text: str
    starts: tuple[int, ...]

    def source_at(self, line: int) -> int | None:
        """Number of the source that a line belongs to; None above them all."""
        number = bisect_right(self.starts, line) - 1
        return number if number >= 0 else None


def unit(sources: Sequence[str]) -> Unit | None:
    """A unit of some sources; None where a source can't share one: what it includes depends on conditions, or it has names that no namespace holds.

    Kernels of source number n are called as `name` says.
    """
    includes: dict[str, None] = {}
    parts: list[str] = []
    for number, source in enumerate(sources):
        directives = list(_DIRECTIVE.finditer(source))
        if _GLOBAL.search(source) or any(d[1] not in _HARMLESS for d in directives):
            return None
        includes |= dict.fromkeys(d[0].strip() for d in directives if d[1] == "include")
        body = _DIRECTIVE.sub(lambda d: "" if d[1] == "include" else d[0], source)
        macros = dict.fromkeys(m[1] for d in directives if (m := _DEFINED.match(d[0])))
        undone = "\n".join(f"#undef {macro}" for macro in macros)
        parts.append(f"namespace {space(number)} {{\n{body}\n}}\n{undone}\n")
    starts = [len(includes) + 1]
    for part in parts[:-1]:
        starts.append(starts[-1] + part.count("\n") + 1)
    return Unit("\n".join([*includes, *parts]), tuple(starts))


def name(number: int, kernel: str) -> str:
    """Name expression of a kernel of source `number`."""
    return f"{space(number)}::{kernel}"


def space(number: int) -> str:
    """The namespace of source `number`."""
    # Letters: in a mangled name, the length of the next name follows.
    return f"tk_unit_{chr(97 + number // 26)}{chr(97 + number % 26)}_"


def has_state(source: str, variables: Iterable[Variable]) -> bool:
    """Whether any of a source's global variables is more than a named number, which the compiler puts into the code."""
    return any(
        v.size > _NUMBER or not re.search(rf"\bconst(?:expr)?\b[^;(){{}}\[\]]*\b{re.escape(v.name)}\s*[={{]", source)
        for v in variables
    )
