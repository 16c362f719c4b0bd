"""Places in compiled code as lines of the source."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

_SOURCES = (".cu", ".cpp", "launch plan")
"""Files that are no headers; clang calls a source by the name of its translation unit."""


def source_lines(library: Path, places: Iterable[int]) -> dict[int, int]:
    """1-based source line of each code offset of a library's file; what can't be told is left out.

    For code that was inlined from the shim, the line of the kernel that it was inlined into.
    """
    wanted = sorted({place for place in places if place})
    tool = _symboliser()
    if not wanted or tool is None or not library.exists():
        return {}
    is_llvm = "symbolizer" in tool
    command = [tool, "--output-style=GNU", "-i", "-s", "-e"] if is_llvm else [tool, "-i", "-a", "-s", "-e"]
    if is_llvm:
        command.insert(1, "--addresses")
    try:
        result = subprocess.run(
            [*command, str(library), *(hex(place) for place in wanted)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return _lines(result.stdout)


def _lines(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    place = 0
    for row in text.splitlines():
        if row.startswith("0x"):
            place = int(row.split(":")[0], 16)
            continue
        file, _, rest = row.rpartition(":")
        number = rest.split(" ")[0]
        if place not in found and number.isdigit() and number != "0" and file.endswith(_SOURCES):
            found[place] = int(number)
    return found


@lru_cache(maxsize=1)
def _symboliser() -> str | None:
    names = ["addr2line", "llvm-symbolizer", *(f"llvm-symbolizer-{n}" for n in range(24, 13, -1))]
    return next((path for path in map(shutil.which, names) if path), None)
