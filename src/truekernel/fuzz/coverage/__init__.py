"""What a case reached, each kind behind `policy.CoverageSource` and in a file of its own; kinds are never added together.

    sources = make(("functions", "overloads"), libraries.load("torch"))    # in the parent of executors, one list for each executor

`functions`: native functions entered, by one-shot breakpoints (`native`). `overloads`: operator overloads that torch's dispatcher was asked for (`overloads`).
`lines`: Python lines of torch's compiler and decompositions (`lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekernel.errors import UnknownNameError

if TYPE_CHECKING:
    from truekernel.fuzz.policy import CoverageSource

KINDS = ("functions", "overloads", "lines")


def make(kinds: Sequence[str], library: Any) -> list[CoverageSource]:
    """Sources for one executor process; kinds that the library does not have are left out. `library`: an adapter; native functions are those of the files that its
    `native_libraries()` names.

    Raises UnknownNameError for a kind that does not exist, MachineError for `functions` on another machine than Linux on x86-64.
    """
    sources = [_source(kind, library) for kind in kinds]
    return [source for source in sources if source is not None]


def _source(kind: str, library: Any) -> CoverageSource | None:
    if kind not in KINDS:
        raise UnknownNameError("kind of coverage", kind, list(KINDS))
    if kind == "functions":
        from truekernel.fuzz.coverage.native import NativeFunctions

        paths: tuple[Path, ...] = tuple(library.native_libraries()) if hasattr(library, "native_libraries") else ()
        return NativeFunctions(paths) if paths or library.name == "torch" else None
    if library.name != "torch":
        return None
    if kind == "overloads":
        from truekernel.fuzz.coverage.overloads import Overloads

        return Overloads()
    from truekernel.fuzz.coverage.lines import PythonLines

    return PythonLines()
