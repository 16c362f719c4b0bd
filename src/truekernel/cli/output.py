"""Where commands print: people's text and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

LEAST_WIDTH = 20
"""Columns: the libraries that lay out help and tables hang or fail on fewer."""
PLAIN_WIDTH = 140
"""Columns when the output is not a terminal: wide enough that tables keep one line a row."""


def console(*, error: bool = False) -> Console:
    """A console on standard output (or error); plain text when that is not a terminal or `NO_COLOR` is set."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            """Whoever read our output has seen enough: that is no failure, as rich's own answer would say."""
            raise BrokenPipeError

    stream = sys.stderr if error else sys.stdout
    assert stream is not None, "see `open_streams`"
    return Ours(file=stream, width=None if stream.isatty() else PLAIN_WIDTH, highlight=False, markup=False)


def open_streams() -> None:
    """Make both streams usable whatever the caller did: closed ones go nowhere, characters that an encoding lacks are written as escapes, and no terminal is too narrow."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < LEAST_WIDTH:
        os.environ["COLUMNS"] = str(LEAST_WIDTH)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            stream.reconfigure(errors="backslashreplace")


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(document, indent=2, ensure_ascii=False))
