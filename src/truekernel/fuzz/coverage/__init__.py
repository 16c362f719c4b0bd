"""What a case reached, each kind behind `policy.CoverageSource` and in a file of its own; kinds are never added together.

    sources = make(("functions", "overloads"), libraries.load("torch"))    # in the parent of executors, one list for each executor

`functions`: native functions entered, by one-shot breakpoints (`native`). `overloads`: operator overloads that torch's dispatcher was asked for (`overloads`).
`lines`: Python lines of torch's compiler and decompositions (`lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekernel.errors import BadInputError, UnknownNameError

if TYPE_CHECKING:
    from truekernel.fuzz.policy import CoverageSource

KINDS = ("functions", "overloads", "lines")


def make(kinds: Sequence[str], library: Any) -> list[CoverageSource]:
    """Sources for one executor process. `library`: an adapter; native functions are those of the files that its `native_libraries()` names.

    Raises UnknownNameError for a kind that does not exist, BadInputError for one that the library does not have, MachineError for `functions` on another
    machine than Linux on x86-64.
    """
    return [_source(kind, library) for kind in kinds]


def _source(kind: str, library: Any) -> CoverageSource:
    if kind not in KINDS:
        raise UnknownNameError("kind of coverage", kind, list(KINDS))
    if kind == "functions":
        from truekernel.fuzz.coverage.native import NativeFunctions

        paths: tuple[Path, ...] = tuple(library.native_libraries()) if hasattr(library, "native_libraries") else ()
        if paths or library.name == "torch":
            return NativeFunctions(paths)
    elif library.name == "torch" and kind == "overloads":
        from truekernel.fuzz.coverage.overloads import Overloads

        return Overloads()
    elif library.name == "torch":
        from truekernel.fuzz.coverage.lines import PythonLines

        return PythonLines()
    raise BadInputError(f"coverage '{kind}' of {library.name} is not known: leave it out")
