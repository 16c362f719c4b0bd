"""How device code is compiled."""

from __future__ import annotations

from dataclasses import dataclass

STANDARD = "c++17"


@dataclass(frozen=True, slots=True)
class Options:
    """`fma`: contract a*b + c, as nvcc does by default. `arch`: "sm_90"; None is that of the first visible device. `checked`: for the sanitised
    pass, with source lines. `debug`: no optimisation (-G). `lineinfo`: source lines in optimised code."""

    fma: bool = True
    checked: bool = False
    arch: str | None = None
    debug: bool = False
    lineinfo: bool = False

    @property
    def has_lines(self) -> bool:
        """Whether machine code knows its source lines."""
        return self.checked or self.lineinfo or self.debug
