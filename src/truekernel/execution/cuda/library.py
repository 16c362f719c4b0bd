"""Compiled device code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from truekernel.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Library:
    """Machine code of one source's kernels, in a cubin that may hold other sources' too.

    `kernels`: name expressions; `symbols`: their mangled names. `arch`: "sm_90". `checked`: compiled for the sanitised pass. `unit`: names the cubin; `space`: the
    source's namespace there, "" for one that is alone. `stateful`: whether it has global variables, which keep their values from one launch to the next. `path`: a name that distinct codes don't share; nothing is read from there.
    """

    cubin: bytes = field(repr=False)
    kernels: tuple[str, ...]
    symbols: Mapping[str, str]
    arch: str
    checked: bool = False
    unit: str = ""
    space: str = ""
    stateful: bool = True

    def __post_init__(self) -> None:
        """Name the unit by its content where nobody has."""
        if not self.unit:
            object.__setattr__(self, "unit", hashlib.sha256(self.cubin).hexdigest()[:32])

    @property
    def path(self) -> Path:
        """As in the docstring of the class."""
        name = "\0".join((self.unit, *self.symbols.values()))
        return Path(f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.cubin")

    def select(self, variant: int) -> tuple[int, int]:
        """A library holds one variant, number 0; BadInputError for another."""
        if variant:
            raise BadInputError(f"library has no variant {variant}: it holds [0]")
        return 0, 0

    def code_hash(self, kernels: Iterable[str] | None = None, member: int = 0) -> str:
        """Hash of the machine code of `kernels` (default: all) and of all that they call, 16 hex digits.

        Names, addresses and line tables do not count. Equal sources hash equal under the same compiler and options.
        """
        from truekernel.execution.cuda.machine_code import code_hash

        self.select(member)
        wanted = self.kernels if kernels is None else tuple(kernels)
        return code_hash(self.cubin, [self.symbols[kernel] for kernel in wanted], self.space)

    def close(self) -> None:
        """Nothing to remove: machine code lies in memory."""
