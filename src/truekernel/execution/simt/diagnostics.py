"""Errors in the output of a compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|note|warning): (?P<message>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. `text`: everything of the log from this message up to the next error."""

    file: str
    line: int
    column: int
    severity: str
    message: str
    text: str


def errors(log: str, *, notes: bool = False) -> list[Diagnostic]:
    """All errors of a log, in order; `notes` adds notes and warnings."""
    matches = list(_LINE.finditer(log))
    starts = [m.start() for m in matches if "error" in m["severity"]] + [len(log)]
    found = []
    for match in matches:
        if "error" not in match["severity"] and not notes:
            continue
        end = next((s for s in starts if s > match.start()), len(log))
        column = int(match["column"] or 0)
        text = log[match.start() : end]
        found.append(Diagnostic(match["file"], int(match["line"]), column, match["severity"], match["message"], text))
    return found


def first_error(log: str, *, prefer: str = "") -> Diagnostic | None:
    """The first error in the file `prefer`, else the first of all, else None."""
    found = errors(log)
    return next((d for d in found if d.file == prefer), found[0] if found else None)
