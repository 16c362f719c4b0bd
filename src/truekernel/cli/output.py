"""Where commands print: people's text and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 140
"""Columns when the output is not a terminal: wide enough that tables keep one line a row."""


def console(*, error: bool = False) -> Console:
    """A console on standard output (or error); plain text when that is not a terminal or `NO_COLOR` is set."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PLAIN_WIDTH, highlight=False, markup=False)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(document, indent=2, ensure_ascii=False))
