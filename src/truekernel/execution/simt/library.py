"""Compiled device code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import BadInputError
from truekernel.execution.simt.preparation import entry_symbol


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """Why a source does not compile: the first error, with its place in the source (1-based; 0 = not in the source)."""

    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class Library:
    """A shared object with the kernels of one or several variants of a source.

    `path` is loaded by the native server, `object_path` is what it was linked from. `kernels`: name expressions. `members`:
    separate copies by number (batch; single: member 0); `variants`: numbers that a schema's copy can be switched to.
    """

    path: Path
    object_path: Path
    kernels: tuple[str, ...]
    checked: bool
    members: tuple[int, ...] = (0,)
    variants: tuple[int, ...] = ()

    def select(self, variant: int) -> tuple[int, int]:
        """(value of the run-time switch, member) that make variant number `variant`; 0 is the original of a schema or single library."""
        if variant in self.variants or (variant == 0 and self.members == (0,)):
            return variant, 0
        if variant in self.members:
            return 0, variant
        raise BadInputError(f"library has no variant {variant}: it holds {sorted({*self.members, *self.variants})}")

    def code_hash(self, kernels: Iterable[str] | None = None, member: int = 0) -> str:
        """Hash of the machine code of `kernels` (default: all) and of all that they call, 16 hex digits.

        Names, addresses and line tables do not count; local constants and launch bounds do. Equal sources compiled alone, or as members of a batch,
        hash equal under the same compiler and options.
        """
        from truekernel.execution.simt.machine_code import code_hash

        wanted = self.kernels if kernels is None else tuple(kernels)
        entries = [entry_symbol(member, self.kernels.index(kernel)) for kernel in wanted]
        symbols = [f"{entry}_{part}" for entry in entries for part in ("entry", "bound")]
        return code_hash(self.object_path.read_bytes(), symbols)

    def close(self) -> None:
        """Remove the files. A server that has opened the library keeps it."""
        for path in (self.path, self.object_path):
            with contextlib.suppress(OSError):
                path.unlink()
