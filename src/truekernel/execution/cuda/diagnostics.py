"""The compiler's log: its first error, with the line of the kernel file."""

from __future__ import annotations

import re

from truekernel.execution.cuda.nvrtc import FILE
from truekernel.execution.simt.library import CompileFailure

_ERROR = re.compile(
    r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<message>[^\n]*)", re.MULTILINE
)
_CARET = re.compile(r"\n[^\n]*\n(?P<indent> *)\^")
_PTXAS = re.compile(r"^ptxas (?:fatal|error)\s*: (?P<message>[^\n]*)", re.MULTILINE)
_NAMES = "__nv_name_map"


def failure(log: str) -> CompileFailure:
    """The first error in NVRTC's log, those of the kernel file first."""
    errors = list(_ERROR.finditer(log))
    mine = next((e for e in errors if e["file"] == FILE), None)
    if mine is not None:
        caret = _CARET.match(log, mine.end())
        # The source line is shown indented by two blanks.
        return CompileFailure(mine["message"].strip(), int(mine["line"]), len(caret["indent"]) - 1 if caret else 0)
    if errors:
        first = errors[0]
        if first["file"] == _NAMES:
            return CompileFailure(f"a launched kernel can't be used: {first['message'].strip()}")
        return CompileFailure(f"{first['file'].rsplit('/', 1)[-1]}:{first['line']}: {first['message'].strip()}")
    assembler = _PTXAS.search(log)
    if assembler is not None:
        return CompileFailure(assembler["message"].strip())
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return CompileFailure(lines[-1] if lines else "the compiler failed without a word")
