"""Coverage source `functions`: native functions of a library that a case enters, each told once a run."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from truekernel.fuzz.coverage.breakpoints import NOBODY, Breakpoints
from truekernel.fuzz.coverage.elf import function_table

_numbers = itertools.count(1)


class NativeFunctions:
    """Native functions entered for the first time, by number. A `policy.CoverageSource`.

    Make one for each executor process, in their common parent. They share their breakpoints: what one executor enters first is news for no other, nor for one
    that takes a dead one's place. Since the log is in shared memory, the parent may call `end` for an executor that died within a case.

    Functions that are entered outside of `begin` and `end` (by oracles, by the executor itself) count in `entered` but are told to nobody.
    """

    kind = "functions"
    judging = False

    def __init__(self, libraries: tuple[Path, ...] = ()) -> None:
        """`libraries`: shared libraries that this process has loaded; by default `libtorch_cpu.so`. Raises MachineError or BadInputError where that can't be."""
        self.breakpoints = _breakpoints(libraries or (torch_library(),))
        self._owner = next(_numbers)
        self._start = np.frombuffer(mmap.mmap(-1, 8), np.int64)

    def start(self) -> None:
        """See `policy.CoverageSource.start`."""
        self.breakpoints.map()

    def forget(self, seen: Sequence[int | str]) -> None:
        """See `policy.CoverageSource.forget`. Only needed for what another run has seen."""
        self.breakpoints.disarm([function for function in seen if isinstance(function, int)])

    def begin(self) -> None:
        """See `policy.CoverageSource.begin`."""
        self._start[0] = self.breakpoints.logged
        self.breakpoints.own(self._owner)

    def end(self) -> list[int]:
        """See `policy.CoverageSource.end`; in the order of entry."""
        self.breakpoints.own(NOBODY)
        return self.breakpoints.log(int(self._start[0]), self._owner)

    def total(self) -> int:
        """How many functions have a breakpoint."""
        return self.breakpoints.armed

    def entered(self) -> int:
        """How many functions were entered so far, by all executors, within cases or not."""
        return int(np.count_nonzero(self.breakpoints.entered))

    def name(self, function: int) -> str:
        """A function's name, demangled."""
        return self.breakpoints.name(function)


@lru_cache(maxsize=4)
def _breakpoints(libraries: tuple[Path, ...]) -> Breakpoints:
    return Breakpoints(tuple(function_table(path) for path in libraries))


def torch_library() -> Path:
    """The library that holds torch's CPU kernels and dispatcher."""
    import torch

    return Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
